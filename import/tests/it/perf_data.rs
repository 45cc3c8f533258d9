//! Do sessions have the samples that another reader of perf.data finds?

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use crate::common::{fixture, import_bytes};
use linux_perf_data::{
    PerfFileReader, PerfFileRecord,
    linux_perf_event_reader::{EventRecord, Mmap2FileId, constants::PERF_CONTEXT_MAX},
};
use varid_recording::SessionRecord;

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
