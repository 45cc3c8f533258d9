//! Tests that other programs read the recording, with the same results.

use anyhow::{Context, Result, ensure};
use linux_perf_data::{PerfFileReader, PerfFileRecord, linux_perf_event_reader::EventRecord};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use varid_tests::{
    App, methods_by_perf, methods_by_varid, perf_annotates_as_varid_reports, record,
    skip_without_root,
};

/// Returns the number of samples, and of those with a callchain, by the linux-perf-data crate.
fn by_crate(file: &Path) -> Result<(u64, u64)> {
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(BufReader::new(File::open(file)?))?;
    let (mut samples, mut with_chain) = (0, 0);
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        if let PerfFileRecord::EventRecord { record, .. } = record
            && let EventRecord::Sample(sample) = record.parse()?
        {
            samples += 1;
            with_chain += u64::from(sample.callchain.is_some_and(|chain| !chain.is_empty()));
        }
    }
    Ok((samples, with_chain))
}

#[test]
fn perf_and_the_linux_perf_data_crate_read_what_varid_reports() -> Result<()> {
    if skip_without_root("readers") {
        return Ok(());
    }
    let recording = record(&App::new("math", "run", 60)?, &["-F", "1999"])?;
    let session = recording.session();
    let file = session.join("perf.data");
    let recorded = recording.counts()?["samples"]
        .as_u64()
        .context("no count")?;

    let (samples, with_chain) = by_crate(&file)?;
    ensure!(
        samples == recorded && with_chain == recorded,
        "{recorded} samples; the crate reads {samples}, {with_chain} with a callchain"
    );

    let script = Command::new("perf")
        .args(["script", "-G", "-F", "tid,ip", "-i"])
        .arg(&file)
        .output()?;
    let lines = String::from_utf8_lossy(&script.stdout)
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count() as u64;
    ensure!(
        script.status.success() && lines == recorded,
        "{recorded} samples, perf script prints {lines}"
    );

    let (perf, varid) = (methods_by_perf(&file, &[])?, methods_by_varid(&session)?);
    println!(
        "readers: {recorded} samples, {} methods: {perf:?}",
        perf.len()
    );
    ensure!(
        perf == varid,
        "perf report says\n{perf:?}\nvarid report\n{varid:?}"
    );
    ensure!(
        perf.values().sum::<u64>() * 2 > recorded,
        "too few samples in methods: {perf:?}"
    );
    let lines = perf_annotates_as_varid_reports(&session, "org.example.math.LU.factor")?;
    ensure!(lines.len() > 2, "the lines of a method: {lines:?}");
    Ok(())
}
