//! A recording is the same with and without the cache of callchains.

use super::*;
use proptest::prelude::*;
use varid_model::Machine;
use varid_model::MonotonicNs;
use varid_model::{Rate, Regs};
use varid_recording::{
    EventDesc, Manifest, SampleSource, SessionReader, SessionRecord, SessionTarget, TargetKind,
    remap,
};
use varid_sampler::decode::{RingEvent, SamplePool};

#[path = "../../../vm/src/attribution/tests/sequence.rs"]
mod sequence;
#[path = "../../../vm/src/attribution/tests/world.rs"]
#[allow(dead_code)] // most of it is for the tests of attribution
mod world;
use sequence::Twice;

/// The index of a sampled event, and whether another event was read with it.
type Events = (usize, bool);

/// A recording under construction.
struct Recording {
    folder: tempfile::TempDir,
    recorder: Recorder,
    samples: SampleWriter,
    known: Written,
    spare: SamplePool,
}

impl Recording {
    fn new(stack: Stack) -> Self {
        let event = EventDesc::new("cycles", Rate::Frequency(997), 1, 0);
        let target = SessionTarget {
            kind: TargetKind::All,
            value: String::new(),
        };
        let mut manifest =
            Manifest::new(event.clone(), SampleSource::Bpf, target, MonotonicNs::ZERO);
        manifest.events.others.extend([event.clone(), event]);
        let folder = tempfile::tempdir().unwrap();
        let recorder =
            Recorder::create(folder.path(), manifest, None, &folder.path().join("cache")).unwrap();
        Self {
            folder,
            recorder,
            samples: SampleWriter::new(stack),
            known: Written::default(),
            spare: SamplePool::default(),
        }
    }

    fn sample(&mut self, bytes: &[u8], (event, reads): Events, managed: &mut ManagedProcess) {
        let stamped = self.spare.sample(event, bytes);
        let RingEvent::Sample(mut sampled) = stamped.event else {
            panic!("a sample was read")
        };
        sampled.read.extend(reads.then_some((2, 5)));
        let (recorder, samples) = (&mut self.recorder, &mut self.samples);
        let written = samples.write(&mut sampled, managed, &mut self.known, None, recorder);
        written.unwrap();
        self.spare.put(sampled);
    }

    /// Returns all records, without random values and names of the folder.
    fn records(mut self) -> Vec<SessionRecord> {
        self.recorder.finish().unwrap();
        let reader = SessionReader::open(self.folder.path()).unwrap();
        let mut records: Vec<_> = reader.records().unwrap().map(Result::unwrap).collect();
        for record in &mut records {
            if let SessionRecord::Mapping(mapping) = record {
                let name = mapping.path.file_name().unwrap().to_owned();
                if remap::contains(mapping.start) || name.to_string_lossy().starts_with("jit-") {
                    mapping.build_id.clear();
                }
                mapping.path = name.into();
            }
        }
        records
    }
}

/// Returns a record in the shim's format.
fn bytes(record: &varid_shim::CapturedSample) -> Vec<u8> {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let lengths = record.stack.len() as u64
        | (record.frames.packed().len() as u64) << 32
        | (record.kernel.len() as u64) << 48;
    let mut words = vec![
        record.time.get(),
        pair(record.pid.get(), record.tid.get()),
        pair(record.cpu, record.flags),
        record.period.get(),
        record.ip.get(),
        record.stack_addr.get(),
        lengths,
    ];
    let known = Machine::NATIVE.regs().iter();
    words.extend(known.map(|reg| record.regs.get(reg.dwarf).unwrap_or(0)));
    // The registers, no class, no interrupted stack, nothing outside of the copies, and no Java frames.
    words.resize(7 + 16 + 1 + 2 + 1 + 1, 0);
    let bytes = |words: &[u64]| -> Vec<u8> {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.collect()
    };
    let kernel: Vec<u64> = record.kernel.iter().map(|address| address.get()).collect();
    let (head, kernel) = (bytes(&words), bytes(&kernel));
    [
        &head,
        record.frames.packed().as_flattened(),
        &kernel,
        &record.stack,
    ]
    .concat()
}

proptest! {
    // Each case writes two sessions, which takes some time.
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn a_recording_is_the_one_without_a_memory(
        samples in prop::collection::vec(sequence::samples(), 8),
        events in prop::collection::vec((0usize..2, prop::bool::weighted(0.1)), 512),
        stack in prop::sample::select(vec![Stack::Vertical, Stack::Vertical, Stack::None, Stack::Full]),
    ) {
        let mut twice = Twice::new();
        let (mut with, mut without) = (Recording::new(stack), Recording::new(stack));
        for (sample, events) in samples.concat().into_iter().zip(events) {
            let mut record = twice.next(sample);
            if record.has(flags::IN_KERNEL) {
                record.kernel = [0xffff_ffff_8100_0010, 0xffff_ffff_8100_1000]
                    .map(Address::new)
                    .to_vec();
            }
            let bytes = bytes(&record);
            with.sample(&bytes, events, &mut twice.remembers.process);
            without.sample(&bytes, events, &mut twice.forgets.process);
        }
        prop_assert_eq!(with.samples.transitions, without.samples.transitions);
        let (with, without) = (with.records(), without.records());
        for (with, without) in with.iter().zip(&without) {
            prop_assert_eq!(with, without);
        }
        prop_assert_eq!(with.len(), without.len());
    }
}

#[test]
fn a_precise_event_s_instruction_is_the_leaf_though_registers_are_those_of_the_interrupt() {
    let mut twice = Twice::new();
    let mut recording = Recording::new(Stack::Full);
    let mut regs = Regs::unknown(Machine::NATIVE);
    regs.set(Machine::NATIVE.ip(), Some(0x5020));
    let record = varid_shim::CapturedSample {
        time: MonotonicNs::new(1),
        flags: flags::NO_WALK,
        ip: Address::new(0x5010),
        regs,
        ..Default::default()
    };
    recording.sample(&bytes(&record), (0, false), &mut twice.remembers.process);
    let leaves: Vec<_> = recording
        .records()
        .into_iter()
        .filter_map(|record| match record {
            SessionRecord::Sample(sample) => sample.user.first().copied(),
            _ => None,
        })
        .collect();
    assert_eq!(leaves, [Address::new(0x5010)]);
}
