//! Do other programs read the recording, and see the same?

use anyhow::{Context, Result, ensure};
use linux_perf_data::{PerfFileReader, PerfFileRecord, linux_perf_event_reader::EventRecord};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, record, skip_without_root, testbed};

/// Samples of each of the app's methods as leaf.
type Methods = BTreeMap<String, u64>;

/// `perf report`: samples and symbol.
fn by_perf(file: &Path) -> Result<Methods> {
    let mut perf = Command::new("perf");
    perf.args([
        "report",
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "-n",
        "-t",
        "|",
        "--sort",
        "symbol",
        "-i",
    ])
    .arg(file);
    let output = perf.output().context("perf")?;
    ensure!(
        output.status.success(),
        "{perf:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut found = Methods::new();
    for line in String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains("org.example."))
    {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, samples, symbol, ..] = fields[..] else {
            anyhow::bail!("{perf:?} printed {line:?}")
        };
        // [.] says that it is in user space.
        let symbol = symbol.split_once(' ').context("no symbol")?.1.trim();
        *found.entry(symbol.to_owned()).or_default() += samples.parse::<u64>()?;
    }
    Ok(found)
}

/// `varid report`: self of each symbol.
fn by_varid(session: &Path) -> Result<Methods> {
    let mut report = testbed()?.varid();
    report
        .args(["report", "--by", "symbol", "--format", "json", "-i"])
        .arg(session);
    let output = report.output()?;
    ensure!(
        output.status.success(),
        "{report:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let mut found = Methods::new();
    for row in report["rows"].as_array().context("no rows")? {
        let symbol = row["symbol"].as_str().unwrap_or("");
        let samples = row["self"].as_u64().context("no self")?;
        if symbol.starts_with("org.example.") && samples > 0 {
            *found.entry(symbol.to_owned()).or_default() += samples;
        }
    }
    Ok(found)
}

/// The linux-perf-data crate: samples, and how many have a callchain.
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

    let (perf, varid) = (by_perf(&file)?, by_varid(&session)?);
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
    Ok(())
}
