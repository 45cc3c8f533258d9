//! Writes a session with a sample at each address of standard input, for measuring what reads them.
//!
//! usage: samples SESSION IMAGE BUILD-ID OFFSET LENGTH < ADDRESSES
//!
//! LENGTH bytes of IMAGE from OFFSET on are mapped; an address is an offset in the file, in hexadecimal, one a line.
#![allow(clippy::arithmetic_side_effects)] // Its numbers are its user's.

use std::error::Error;
use std::io::stdin;
use varid_model::{Address, MonotonicNs, Period, Pid, Precision, Rate};
use varid_recording::{
    CpuMode, EventDesc, Manifest, MappingRecord, Sample, SampleSource, SessionRecord,
    SessionTarget, SessionWriter, TargetKind,
};

/// Where the image is mapped.
const START: u64 = 0x7f00_0000_0000;
const PID: Pid = Pid::new(4242);

fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [session, image, build_id, offset, length] = &arguments[..] else {
        return Err("usage: samples SESSION IMAGE BUILD-ID OFFSET LENGTH < ADDRESSES".into());
    };
    let (offset, length) = (number(offset)?, number(length)?);
    let build_id: Result<Vec<u8>, _> = (0..build_id.len() / 2)
        .map(|at| u8::from_str_radix(&build_id[2 * at..2 * at + 2], 16))
        .collect();
    let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
    let target = SessionTarget {
        kind: TargetKind::All,
        value: String::new(),
    };
    let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
    let mut writer = SessionWriter::create(session, manifest)?;
    writer.write(&SessionRecord::Comm {
        time: MonotonicNs::new(1),
        pid: PID,
        tid: PID.main_thread(),
        exec: true,
        name: "samples".into(),
    })?;
    writer.write(&SessionRecord::Mapping(MappingRecord {
        time: MonotonicNs::new(1),
        pid: PID,
        tid: PID.main_thread(),
        start: Address::new(START),
        len: length,
        pgoff: offset,
        kernel: false,
        mode: None,
        path: image.into(),
        build_id: build_id?,
    }))?;
    for (time, line) in (2..).zip(stdin().lines()) {
        let address = Address::new(START + (number(&line?)? - offset));
        writer.write(&SessionRecord::Sample(Sample {
            event: 0,
            time: MonotonicNs::new(time),
            pid: PID,
            tid: PID.main_thread(),
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: address,
            interrupt: None,
            mode: CpuMode::User,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: Vec::new(),
            user: vec![address],
        }))?;
    }
    writer.finish()?;
    Ok(())
}
