//! Writes and reads a session of many samples, and says how long a sample takes.
//!
//! usage: throughput SESSION [SAMPLES]
#![allow(clippy::arithmetic_side_effects)] // Its numbers are its user's.

use std::error::Error;
use std::time::{Duration, Instant};
use varid_model::{Address, MonotonicNs, Period, Pid, Precision, Rate};
use varid_recording::{
    CpuMode, EventDesc, Manifest, Sample, SampleSource, SessionReader, SessionRecord,
    SessionTarget, SessionWriter, TargetKind,
};

/// Frames of a callchain.
const FRAMES: u64 = 24;
const PID: Pid = Pid::new(4242);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let session = arguments
        .next()
        .ok_or("usage: throughput SESSION [SAMPLES]")?;
    let samples: u64 = arguments.next().as_deref().unwrap_or("1000000").parse()?;
    let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
    let target = SessionTarget {
        kind: TargetKind::All,
        value: String::new(),
    };
    let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
    let mut writer = SessionWriter::create(&session, manifest)?;
    let user: Vec<Address> = (0..FRAMES)
        .map(|depth| Address::new(0x7f00_0000_0000 + 64 * depth))
        .collect();
    let started = Instant::now();
    for time in 0..samples {
        writer.write_sample(&Sample {
            event: 0,
            time: MonotonicNs::new(time),
            pid: PID,
            tid: PID.main_thread(),
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: Address::new(0x7f00_0000_0000),
            interrupt: None,
            mode: CpuMode::User,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: &[],
            user: &user[..],
        })?;
    }
    writer.finish()?;
    let each = |what: &str, time: Duration| {
        println!(
            "{what}: {:.0} ns a sample",
            time.as_nanos() as f64 / samples as f64
        );
    };
    each("written", started.elapsed());
    let started = Instant::now();
    let mut read = 0;
    for record in SessionReader::open(&session)?.records()? {
        if let SessionRecord::Sample(sample) = record? {
            read += u64::from(sample.user.len() as u64 == FRAMES);
        }
    }
    each("read", started.elapsed());
    assert_eq!(read, samples);
    Ok(())
}
