//! Compares the samples of sessions with those that another reader of perf.data finds.

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use crate::{
    common::{Imported, fixture, import_bytes, import_with},
    perf_file::{
        CONTEXT_KERNEL, CONTEXT_USER, Event, IN_KERNEL, IN_USER, PerfFile, bytes, feature, field,
        raw, tracing_data,
    },
};
use linux_perf_data::{
    PerfFileReader, PerfFileRecord,
    linux_perf_event_reader::{EventRecord, Mmap2FileId, constants::PERF_CONTEXT_MAX},
};
use varid_import::Input;
use varid_model::Address;
use varid_recording::SessionRecord;

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;

/// Time, process, thread, and the callchain without context entries.
type Found = (u64, u32, u32, Vec<u64>);

/// Reads the samples with the linux-perf-data crate.
fn by_crate(path: &Path) -> Vec<Found> {
    let file = BufReader::new(File::open(path).unwrap());
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(file).unwrap();
    let mut found = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        if let PerfFileRecord::EventRecord { record, .. } = record
            && let EventRecord::Sample(sample) = record.parse().unwrap()
        {
            let chain = sample.callchain.unwrap();
            let chain = (0..chain.len()).filter_map(|place| chain.get(place));
            found.push((
                sample.timestamp.unwrap(),
                sample.pid.unwrap().cast_unsigned(),
                sample.tid.unwrap().cast_unsigned(),
                chain
                    .filter(|address| *address < PERF_CONTEXT_MAX)
                    .collect(),
            ));
        }
    }
    found
}

/// A report uses a file without a build-id only if it is the one that was mapped.
#[test]
fn the_inodes_of_files_without_build_ids_are_those_that_the_crate_reads() {
    let path = fixture("simpleperf/perf.data");
    let file = BufReader::new(File::open(&path).unwrap());
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(file).unwrap();
    let mut expected = BTreeMap::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        if let PerfFileRecord::EventRecord { record, .. } = record
            && let EventRecord::Mmap2(mapping) = record.parse().unwrap()
            && let Mmap2FileId::InodeAndVersion(id) = mapping.file_id
        {
            let path = String::from_utf8_lossy(&mapping.path.as_slice()).into_owned();
            expected.insert(path, (id.inode, (id.major, id.minor)));
        }
    }
    let imported = import_bytes(&std::fs::read(&path).unwrap(), None).unwrap();
    let session = imported.session();
    let files = &session.manifest().files;
    assert!(!files.is_empty());
    for file in files {
        assert_eq!(
            Some(&(file.inode, file.device.unwrap())),
            expected.get(&file.path)
        );
    }
}

#[test]
fn samples_are_those_that_the_linux_perf_data_crate_reads() {
    let path = fixture("simpleperf/perf.data");
    let imported = import_bytes(&std::fs::read(&path).unwrap(), None).unwrap();
    let expected = by_crate(&path);
    let records = imported.session().records().unwrap();
    let samples = records
        .map(Result::unwrap)
        .filter_map(|record| match record {
            SessionRecord::Sample(sample) => Some(sample),
            _ => None,
        });
    let found: Vec<Found> = samples
        .map(|sample| {
            // simpleperf has addresses within the calls, a session has return addresses.
            let parts = [&sample.kernel, &sample.user];
            let chain = parts.into_iter().flat_map(|part| {
                let addresses = part.iter().enumerate();
                addresses.map(|(depth, address)| address.get() - u64::from(depth > 0))
            });
            let (pid, tid) = (sample.pid.get(), sample.tid.get());
            (sample.time.get(), pid, tid, chain.collect())
        })
        .collect();
    assert!(expected.len() > 50);
    assert_eq!(found, expected);
}

/// The sampled instruction, the kernel frames and the user frames of each sample.
fn frames(imported: &Imported) -> Vec<(u64, Vec<u64>, Vec<u64>)> {
    let numbers = |chain: &[Address]| chain.iter().map(|address| address.get()).collect();
    let records = imported.session().records().unwrap();
    records
        .filter_map(|record| match record.unwrap() {
            SessionRecord::Sample(sample) => Some((
                sample.original_ip.get(),
                numbers(&sample.kernel),
                numbers(&sample.user),
            )),
            _ => None,
        })
        .collect()
}

#[test]
fn a_precise_event_s_instruction_is_the_leaf_and_its_callchain_stays() {
    let event = Event::new(7, "cycles:pp", field::PERIOD | field::CALLCHAIN);
    let mut file = PerfFile::new(&[event]);
    file.comm(5, "calc");
    let (kernel, user) = (0xffff_ffff_8100_0000, 0x40_1100);
    let of_user = [CONTEXT_USER, 0x40_2200, 0x40_3300];
    let of_both = [
        &[CONTEXT_KERNEL, kernel + 0x20, kernel + 0x30],
        &of_user[..],
    ]
    .concat();
    let samples = [
        (IN_USER, user, &of_user[..]),
        // The interrupt occurred in the kernel.
        (IN_USER, user, &of_both),
        (IN_KERNEL, kernel, &of_both),
        // The kernel had already returned, or its callchain was not requested.
        (IN_KERNEL, kernel, &of_user),
    ];
    for (time, (misc, ip, chain)) in (1..).zip(samples) {
        let rest = bytes(&[&[1_000, chain.len() as u64], chain].concat());
        file.sample(7, misc, (5, time), ip, &rest);
    }
    for source in [file.to_bytes(), file.to_pipe()] {
        let imported = import_bytes(&source, None).unwrap();
        let expected = [
            (user, vec![], vec![user, 0x40_3300]),
            (user, vec![], vec![user, 0x40_3300]),
            (kernel, vec![kernel, kernel + 0x30], of_user[1..].to_vec()),
            (kernel, vec![kernel], of_user[1..].to_vec()),
        ];
        assert_eq!(frames(&imported), expected);
        // Readers of the session's perf.data find the callchains of the recorder.
        let session = imported.folder().join("perf.data");
        let chains = by_crate(&session).into_iter().map(|(.., chain)| chain);
        let recorded = samples.map(|(_, _, chain)| {
            let is_address = |word: &&u64| **word < PERF_CONTEXT_MAX;
            chain.iter().filter(is_address).copied().collect::<Vec<_>>()
        });
        assert_eq!(chains.collect::<Vec<_>>(), recorded);
    }
}

#[test]
fn data_is_not_taken_for_code_that_a_stack_returns_into() {
    // The registers of perf's --call-graph dwarf: the stack pointer is bit 7, the instruction pointer is bit 8.
    const REGISTERS: u64 = 0xff_0fff;
    let (ip, heap) = (0x40_1cc1, 0x7000_1010);
    let event = Event {
        registers: REGISTERS,
        ..Event::new(7, "cycles", field::REGS_USER | field::STACK_USER)
    };
    for (prot, frames) in [
        (PROT_READ | PROT_WRITE, 1),
        // Code that was generated at run time.
        (PROT_READ | PROT_EXEC, 2),
    ] {
        let mut file = PerfFile::new(std::slice::from_ref(&event));
        file.comm(5, "numbers");
        file.map(
            5,
            0x40_0000,
            0x4000,
            PROT_READ | PROT_EXEC,
            "/nowhere/numbers",
        );
        file.map(5, 0x7000_0000, 0x10_0000, prot, "//anon");
        let registers = (0..64).filter(|bit| REGISTERS >> bit & 1 == 1);
        let registers = registers.map(|bit| match bit {
            7 => 0x7fff_0000,
            8 => ip,
            _ => 0,
        });
        let rest = [&[2], &registers.collect::<Vec<_>>()[..], &[16, heap, 0, 16]].concat();
        file.sample(7, IN_USER, (5, 1), ip, &bytes(&rest));
        let imported = import_bytes(&file.to_bytes(), None).unwrap();
        let samples = imported.samples();
        let symbols = samples[0].symbols();
        assert_eq!(symbols[0], "numbers+0x?", "{symbols:?}");
        assert_eq!(*symbols.last().unwrap(), "[no-unwind-info]");
        assert_eq!(symbols.len(), frames + 1, "{symbols:?}");
    }
}

/// The read format for `PERF_SAMPLE_READ` of a group, with ids.
const READS_GROUP: u64 = 1 << 3 | 1 << 2;

/// The number of samples and the sum of their periods for each event.
fn weights(imported: &Imported) -> Vec<(String, u64, u64)> {
    let session = imported.session();
    let events = session.manifest().events.iter();
    let mut weights: Vec<_> = events.map(|event| (event.name.clone(), 0, 0)).collect();
    for record in session.records().unwrap() {
        if let SessionRecord::Sample(sample) = record.unwrap() {
            let (_, samples, sum) = &mut weights[sample.event];
            *samples += 1;
            *sum += sample.period.get();
        }
    }
    weights
}

#[test]
fn counts_that_are_read_with_another_event_s_samples_are_samples() {
    let leader = Event {
        read_format: READS_GROUP,
        ..Event::new(7, "cycles", field::PERIOD | field::READ)
    };
    // perf's '{a,b}:S', and simpleperf's --add-counter.
    for period in [0, 1 << 62] {
        let member = Event {
            period,
            id: 8,
            name: "instructions",
            ..leader.clone()
        };
        let mut file = PerfFile::new(&[leader.clone(), member]);
        file.comm(5, "work");
        for (time, (cycles, instructions)) in
            (1..).zip([(1_000, 1_500), (2_500, 1_500), (3_000, 4_000)])
        {
            let rest = bytes(&[1_000, 2, cycles, 7, instructions, 8]);
            file.sample(7, IN_USER, (5, time), 0x40_1000, &rest);
        }
        let imported = import_bytes(&file.to_bytes(), None).unwrap();
        // As in perf script: the difference from the previous count. A count that has not grown is not a sample.
        let expected = [("cycles", 3, 3_000), ("instructions", 2, 4_000)];
        let expected = expected.map(|(name, samples, sum)| (name.to_owned(), samples, sum));
        assert_eq!(weights(&imported), expected);
        assert!(imported.summary.notes.is_empty());
    }
    // An event whose counts are in no other event's samples gets a note, and is not an event of the session.
    let alone = Event::new(7, "cycles", field::PERIOD);
    let member = Event {
        period: 0,
        ..Event::new(8, "instructions", field::PERIOD)
    };
    let mut file = PerfFile::new(&[alone, member]);
    file.sample(7, IN_USER, (5, 1), 0x40_1000, &bytes(&[1_000]));
    let imported = import_bytes(&file.to_bytes(), None).unwrap();
    assert_eq!(weights(&imported), [("cycles".to_owned(), 1, 1_000)]);
    let notes = &imported.summary.notes;
    assert!(notes[0].starts_with("instructions is counted"), "{notes:?}");
}

#[test]
fn tracepoints_keep_what_they_say_and_what_that_means() {
    let event = Event {
        kind: 2,
        config: 314,
        ..Event::new(7, "sched:sched_switch", field::PERIOD | field::RAW)
    };
    let mut file = PerfFile::new(&[event, Event::new(8, "cycles", field::PERIOD | field::RAW)]);
    let formats = tracing_data(314, "sched", "sched_switch");
    file.features.insert(feature::TRACING_DATA, formats.clone());
    file.comm(5, "app");
    for (time, id) in [(1, 7), (2, 8), (3, 7)] {
        let content = raw(format!("fields {time}").as_bytes());
        file.sample(
            id,
            IN_KERNEL,
            (5, time),
            0xffff_ffff_8100_0000,
            &[bytes(&[1]), content].concat(),
        );
    }
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|at| at == part);
    for source in [file.to_bytes(), file.to_pipe()] {
        let imported = import_bytes(&source, None).unwrap();
        let names = weights(&imported)
            .into_iter()
            .map(|(name, samples, _)| (name, samples));
        let expected = [("sched:sched_switch", 2), ("cycles", 1)];
        assert_eq!(
            names.collect::<Vec<_>>(),
            expected.map(|(name, samples)| (name.to_owned(), samples))
        );
        let session = std::fs::read(imported.folder().join("perf.data")).unwrap();
        assert!(find(&session, &formats));
        assert!(find(&session, b"fields 1") && find(&session, b"fields 3"));
        let kinds = imported
            .session()
            .manifest()
            .events
            .iter()
            .map(|event| event.kind)
            .collect::<Vec<_>>();
        assert_eq!(kinds, [2, 0]);
    }
    // If the source has no event names, as with pipes of older versions of perf, the name of a tracepoint comes from the formats.
    let mut unnamed = file.clone();
    unnamed.features.remove(&feature::EVENT_DESC);
    let imported = import_bytes(&unnamed.to_pipe(), None).unwrap();
    assert_eq!(weights(&imported)[0].0, "sched:sched_switch");
    // Without the formats, perf can read the session, but shows no fields.
    file.features.remove(&feature::TRACING_DATA);
    let imported = import_bytes(&file.to_bytes(), None).unwrap();
    assert_eq!(imported.session().manifest().events.first.kind, 1);
    assert_eq!(weights(&imported)[0].1, 2);
}

#[test]
fn a_folder_of_several_files_has_the_samples_of_all() {
    let event = Event::new(7, "cycles", field::PERIOD);
    let mut file = PerfFile::new(&[event]);
    file.features.insert(feature::DIR_FORMAT, bytes(&[1]));
    file.comm(5, "work");
    file.sample(7, IN_USER, (5, 1), 0x40_1000, &bytes(&[1_000]));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data"), file.to_bytes()).unwrap();
    for (part, times) in [(0, [2, 5]), (1, [3, 4])] {
        let mut records = PerfFile::new(&file.events);
        for time in times {
            records.sample(7, IN_USER, (5, time), 0x40_1000, &bytes(&[1_000]));
        }
        std::fs::write(folder.path().join(format!("data.{part}")), records.records).unwrap();
    }
    // The last file of a recording is written at its end. The folder is created at its start.
    let hour = std::time::Duration::from_secs(3_600);
    let end = std::time::SystemTime::UNIX_EPOCH + 400_000 * hour + hour / 7_200;
    for (part, modified) in [
        ("data", end - 2 * hour),
        ("data.0", end),
        ("data.1", end - hour),
    ] {
        let file = File::options().write(true).open(folder.path().join(part));
        file.unwrap().set_modified(modified).unwrap();
    }
    let imported = import_with(Input::open(folder.path()).unwrap(), |_| {}).unwrap();
    let wall_start = imported.session().manifest().wall_start.clone();
    assert_eq!(wall_start, "2015-08-19T16:00:00Z");
    let times: Vec<_> = imported
        .samples()
        .iter()
        .map(|sample| sample.time)
        .collect();
    assert_eq!(times, [0, 1, 2, 3, 4]);
    assert!(
        imported.summary.notes.is_empty(),
        "{:?}",
        imported.summary.notes
    );
    // If one of its files is missing, those after it are still read.
    std::fs::rename(folder.path().join("data.0"), folder.path().join("data.2")).unwrap();
    let gap = import_with(Input::open(folder.path()).unwrap(), |_| {}).unwrap();
    let notes = &gap.summary.notes;
    assert!(
        notes[0].contains("no file data.0, though it has data.2"),
        "{notes:?}"
    );
    assert_eq!(gap.summary.samples, 5);
    // A single file of the folder is incomplete, which is noted.
    let imported = import_bytes(&file.to_bytes(), None).unwrap();
    let notes = &imported.summary.notes;
    assert!(notes[0].contains("perf record --threads"), "{notes:?}");
    let error = Input::open(imported.folder().as_path()).err().unwrap();
    assert!(error.to_string().contains("it is a session"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = Input::open(empty.path()).err().unwrap();
    assert!(
        error.to_string().contains("perf record --threads"),
        "{error}"
    );
}
