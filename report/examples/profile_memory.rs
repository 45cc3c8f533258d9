//! Measures the memory of a profile's tables, and the duration of its exports.
//!
//!     profile_memory SAMPLES STACKS [EVENTS [FOLDER]]
//!
//! Writes a session of SAMPLES samples with at most STACKS distinct stacks of 24 frames in eight threads. Reads it with
//! sums only, and with its samples. Prints the size of each table, and the size and duration of each export. A FOLDER
//! keeps the session for 'varid report'.
#![allow(missing_docs)]
// Its input is not from outside.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::{io::Write, path::Path, time::Instant};
use varid_model::{Address, Layer, MonotonicNs, Period, Pid, Precision, Rate, Tid};
use varid_recording::{
    CpuMode, EventDesc, ImageKind, Manifest, MappingRecord, Sample, SampleSource, SessionImage,
    SessionReader, SessionRecord, SessionTarget, SessionWriter, TargetKind,
};
use varid_report::{ExportFormat, ExportRequest, Options, Profile, SampleTable, export};
use varid_symbolizer::substitute::{Slot, Substitute};

const APP: u64 = 0x7000_0000_0000;
const PID: Pid = Pid::new(100);
const METHODS: u64 = 4_000;
const METHOD_SIZE: u64 = 0x40;
const DEPTH: u64 = 24;
const BUILD_ID: [u8; 20] = [0xaa; 20];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        let argument = arguments.next();
        argument.map_or(default, |text| text.parse().unwrap())
    };
    let (samples, stacks, events) = (number(1_000_000), number(10_000), number(1));
    let temporary = tempfile::tempdir().unwrap();
    let folder = arguments
        .next()
        .map_or_else(|| temporary.path().join("session"), Into::into);
    write_session(&folder, samples, stacks, events as usize);
    let session = SessionReader::open(&folder).unwrap();
    for sample_table in [false, true] {
        let options = Options {
            sample_table,
            ..Options::default()
        };
        let start = Instant::now();
        let profile = Profile::from_session(&session, &options).unwrap();
        let samples = profile.samples.as_ref();
        println!(
            "{} nodes of stacks {} bytes, {} rows of weights {} bytes, {} samples {} bytes, read in {} ms, peak {} KB",
            profile.stacks.len(),
            profile.stacks.bytes(),
            profile.weights.len(),
            profile.weights.bytes(),
            samples.map_or(0, SampleTable::len),
            samples.map_or(0, SampleTable::bytes),
            start.elapsed().as_millis(),
            peak(),
        );
        if sample_table {
            for format in ExportFormat::all() {
                let (start, mut counted) = (Instant::now(), Counted(0));
                export(&profile, &ExportRequest::default(), format, &mut counted).unwrap();
                println!(
                    "{} {} bytes, written in {} ms, peak {} KB",
                    format.name,
                    counted.0,
                    start.elapsed().as_millis(),
                    peak(),
                );
            }
        }
    }
}

/// Counts written bytes without storing them.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The peak memory of this process in KB.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap().trim().trim_end_matches(" kB").to_owned()
}

fn write_session(folder: &Path, samples: u64, stacks: u64, events: usize) {
    let event = |name: &str| EventDesc::new(name, Rate::Frequency(997), 1, 0);
    let target = SessionTarget {
        kind: TargetKind::App,
        value: "org.example".into(),
    };
    let mut manifest = Manifest::new(
        event("cpu-clock"),
        SampleSource::Bpf,
        target,
        MonotonicNs::ZERO,
    );
    for number in 1..events {
        manifest
            .events
            .others
            .push(event(&format!("event-{number}")));
    }
    let mut writer = SessionWriter::create(folder, manifest).unwrap();
    let elf = writer.symbols().join("app.elf");
    let slots = (1..=METHODS).map(|method| Slot {
        offset: method * METHOD_SIZE,
        size: METHOD_SIZE,
        name: format!("org.example.Class{}.method{method}", method / 20),
    });
    Substitute::remap(slots, (METHODS + 2) * METHOD_SIZE, &BUILD_ID)
        .unwrap()
        .write(&elf)
        .unwrap();
    writer.manifest_mut().images = vec![SessionImage {
        path: "/data/app/app.apk".into(),
        build_id: String::new(),
        kind: ImageKind::Dex,
        layer: Layer::App,
        substitute: Some("symbols/app.elf".into()),
        location: None,
    }];
    let write = |writer: &mut SessionWriter, record| writer.write(&record).unwrap();
    write(
        &mut writer,
        SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::new(1),
            pid: PID,
            tid: PID.main_thread(),
            start: Address::new(APP),
            len: 0x100_0000,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: elf,
            build_id: BUILD_ID.to_vec(),
        }),
    );
    for number in 0..samples {
        let stack = scattered(number) % stacks;
        // The outer frames of stacks are similar: the digits of the stack's number in base 3 select the frames from the
        // leaf on.
        let frame = |depth: u64| {
            let rest = stack / 3u64.pow((DEPTH - 1 - depth).min(39) as u32 / 2);
            let method = 1 + scattered(rest * DEPTH + depth) % METHODS;
            Address::new(APP + method * METHOD_SIZE + 0x11)
        };
        let mut user: Vec<Address> = (0..DEPTH).rev().map(frame).collect();
        user[0] = Address::new(user[0].get() - 1);
        let tid = Tid::new(PID.get() + (number / 50 % 8) as u32);
        write(
            &mut writer,
            SessionRecord::Sample(Sample {
                event: (scattered(number + 7) % events as u64) as usize,
                time: MonotonicNs::new(1_000 + number * 1_000),
                pid: PID,
                tid,
                cpu: 0,
                period: Period::new(1_000_000 + number % 7),
                original_ip: Address::new(APP),
                interrupt: None,
                mode: CpuMode::User,
                uid: 10_001,
                frame: Some(Address::new(0x7f00_0000_1000)),
                precision: Precision::Exact,
                kernel: Vec::new(),
                user,
            }),
        );
    }
    writer.finish().unwrap();
}

/// A pseudo-random number (splitmix64).
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
