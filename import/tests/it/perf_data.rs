//! Do sessions have the samples that another reader of perf.data finds?

use std::{fs::File, io::BufReader, path::Path};

use crate::common::{fixture, import_bytes};
use linux_perf_data::{
    PerfFileReader, PerfFileRecord,
    linux_perf_event_reader::{EventRecord, constants::PERF_CONTEXT_MAX},
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
