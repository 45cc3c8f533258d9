//! Do sessions have the samples that another reader of perf.data finds?

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use crate::{
    common::{Imported, fixture, import_bytes},
    perf_file::{CONTEXT_KERNEL, CONTEXT_USER, Event, IN_KERNEL, IN_USER, PerfFile, bytes, field},
};
use linux_perf_data::{
    PerfFileReader, PerfFileRecord,
    linux_perf_event_reader::{EventRecord, Mmap2FileId, constants::PERF_CONTEXT_MAX},
};
use varid_model::Address;
use varid_recording::SessionRecord;

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;

/// Time, process, thread, and the callchain without contexts.
type Found = (u64, u32, u32, Vec<u64>);

/// The linux-perf-data crate.
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

/// A report believes a file without a build-id only if it is the one that was mapped.
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
            // simpleperf's callers lie within their calls, a session's behind them.
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

/// The sampled instruction, the kernel's and the user's frames of each sample.
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
        // The interrupt came in the kernel.
        (IN_USER, user, &of_both),
        (IN_KERNEL, kernel, &of_both),
        // The kernel had been left, or its chain was not asked for.
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
        // Readers of perf.data find what its recorder has written.
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
    // perf's registers of --call-graph dwarf: the stack pointer is bit 7, the instruction bit 8.
    const REGISTERS: u64 = 0xff_0fff;
    let (ip, heap) = (0x40_1cc1, 0x7000_1010);
    let event = Event {
        registers: REGISTERS,
        ..Event::new(7, "cycles", field::REGS_USER | field::STACK_USER)
    };
    for (prot, frames) in [
        (PROT_READ | PROT_WRITE, 1),
        // Code that was made at run time.
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
        assert_eq!(symbols[0], "numbers+0x1cc1", "{symbols:?}");
        assert_eq!(*symbols.last().unwrap(), "[no-unwind-info]");
        assert_eq!(symbols.len(), frames + 1, "{symbols:?}");
    }
}
