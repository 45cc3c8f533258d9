//! Names are in the session's files before records that refer to them, at the cost of the new ones.

use super::*;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use varid_model::{Layer, Rate};
use varid_recording::{EventDesc, SampleSource, SessionReader, SessionTarget, TargetKind};
use varid_symbolizer::elf::ElfSymbols;
use varid_vm::VmKinds;
use varid_vm::seam::MethodInMemory;

/// A process whose samples are each of another method.
struct Recording {
    folder: tempfile::TempDir,
    recorder: Recorder,
    managed: ManagedProcess,
    written: Written,
    samples: u64,
}

impl Recording {
    fn new() -> Self {
        let target = SessionTarget {
            kind: TargetKind::All,
            value: String::new(),
        };
        let event = EventDesc::new("cycles", Rate::Frequency(997), 1, 0);
        let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("session");
        let cache = folder.path().join("cache");
        Self {
            recorder: Recorder::create(&session, manifest, None, &cache).unwrap(),
            folder,
            managed: ManagedProcess::new(Pid::new(1), VmKinds::default()),
            written: Written::default(),
            samples: 0,
        }
    }

    fn session(&self) -> std::path::PathBuf {
        self.folder.path().join("session")
    }

    /// Writes a sample of a new method.
    fn sample(&mut self) -> Result<(), RecorderError> {
        let method = Rc::new(MethodInMemory {
            layer: Layer::Framework,
            name: name(self.samples),
            signature: String::new(),
            code_size: 40,
            source: None,
        });
        let address = Address::new(self.recorder.remap.method(&method).unwrap());
        self.samples += 1;
        let sample = Sample::<&[Address]> {
            event: 0,
            time: MonotonicNs::new(self.samples),
            pid: Pid::new(1),
            tid: Tid::new(1),
            cpu: 0,
            period: Period::new(1),
            original_ip: address,
            interrupt: None,
            mode: CpuMode::User,
            uid: 0,
            frame: None,
            precision: Precision::Exact,
            kernel: &[],
            user: &[address],
        };
        let (managed, written) = (&mut self.managed, &mut self.written);
        self.recorder.sample(&sample, &(0..0), managed, written)
    }

    /// Asserts that all methods in perf.data have their names, as a reader sees both now. Returns their number.
    fn assert_named(&self) -> u64 {
        let records = SessionReader::open(self.session()).unwrap().records();
        let file = self.session().join("symbols/remap-framework.elf");
        let symbols = ElfSymbols::open(&file);
        let (mut mapped, mut samples) = (None, 0);
        for record in records.unwrap() {
            match record.unwrap() {
                SessionRecord::Mapping(mapping) if !mapping.kernel => mapped = Some(mapping),
                SessionRecord::Sample(sample) => {
                    let mapping = mapped.as_ref().unwrap();
                    let offset = sample.user[0].get() - mapping.start.get() + mapping.pgoff;
                    let symbol = symbols.as_ref().unwrap().lookup_offset(offset);
                    assert_eq!(symbol.unwrap().name(), name(samples));
                    samples += 1;
                }
                _ => {}
            }
        }
        samples
    }

    /// Returns what differs between two versions of the file of names.
    fn version(&self) -> Option<(u64, i64, i64)> {
        let file = self.session().join("symbols/remap-framework.elf");
        let file = file.metadata().ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec()))
    }
}

fn name(number: u64) -> String {
    format!("java.util.C{number}.run")
}

#[test]
fn names_are_written_before_each_batch_of_records_and_not_for_each_method() {
    const SAMPLES: u64 = 8_000;
    let mut recording = Recording::new();
    let (mut batches, mut versions) = (0, 0);
    let (mut size, mut version) = (0, None);
    for _ in 0..SAMPLES {
        recording.sample().unwrap();
        let now = recording.recorder.writer.bytes_written();
        if std::mem::replace(&mut size, now) != now {
            batches += 1;
            recording.assert_named();
        }
        let now = recording.version();
        versions += u32::from(std::mem::replace(&mut version, now) != now);
    }
    // The first is that of the session's start.
    assert!(batches > 3, "{batches} batches");
    assert_eq!(versions, batches - 1);
    recording.recorder.finish().unwrap();
    assert_eq!(recording.assert_named(), SAMPLES);
}

#[test]
fn records_wait_for_names_that_cannot_be_written() {
    const SAMPLES: u64 = 8_000;
    let mut recording = Recording::new();
    // No file can have this name now.
    let taken = recording.session().join("symbols/remap-framework.elf");
    std::fs::create_dir(&taken).unwrap();
    let size = recording.recorder.writer.bytes_written();
    let failed = (0..SAMPLES).filter(|_| recording.sample().is_err()).count();
    assert!((2..20).contains(&failed), "{failed} errors");
    assert!(recording.recorder.flush().is_err());
    assert_eq!(recording.recorder.writer.bytes_written(), size);
    std::fs::remove_dir(&taken).unwrap();
    recording.recorder.flush().unwrap();
    assert_eq!(recording.assert_named(), SAMPLES);
}
