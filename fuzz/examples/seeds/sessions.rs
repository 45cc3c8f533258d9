//! What does a recording hold?

use crate::{ART, Result};
use std::path::Path;
use varid_fuzz::manifest;
use varid_model::{Address, Marker, MonotonicNs, Period, Pid, Precision, Reason, Tid};
use varid_recording::{
    CpuMode, MappingRecord, PERF_DATA, REMAP_BASE, REMAP_SIZE, Sample, SessionRecord, SessionWriter,
};

/// A recording of every kind of record.
pub fn session(folder: &Path) -> Result<Vec<u8>> {
    let mut writer = SessionWriter::create(folder, manifest())?;
    let (pid, tid) = (Pid::new(10), Tid::new(10));
    let (child, thread) = (Pid::new(11), Tid::new(11));
    let mapping = |start, len, path: &str, kernel| {
        let (pid, pgoff) = if kernel {
            (Pid::KERNEL, start)
        } else {
            (pid, 0)
        };
        SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::new(1),
            pid,
            tid,
            start: Address::new(start),
            len,
            pgoff,
            kernel,
            mode: None,
            path: path.into(),
            build_id: ART.to_vec(),
        })
    };
    let sample = |time, kernel: Vec<u64>, user: Vec<u64>| {
        let mode = if kernel.is_empty() {
            CpuMode::User
        } else {
            CpuMode::Kernel
        };
        SessionRecord::Sample(Sample {
            event: 0,
            time: MonotonicNs::new(time),
            pid,
            tid,
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: Address::new(0x2000),
            interrupt: None,
            mode,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: kernel.into_iter().map(Address::new).collect(),
            user: user.into_iter().map(Address::new).collect(),
        })
    };
    let torn = varid_recording::remap::address_of(Marker::Reason(Reason::TornFrames)).get();
    for record in [
        mapping(
            0xffff_ffff_8100_0000,
            0x100_0000,
            "[kernel.kallsyms]_text",
            true,
        ),
        SessionRecord::Comm {
            time: MonotonicNs::new(1),
            pid,
            tid,
            exec: true,
            name: "org.example".into(),
        },
        mapping(0x1000, 0x4000, "/nonexistent/app.elf", false),
        mapping(REMAP_BASE, REMAP_SIZE, "/nonexistent/remap.elf", false),
        sample(2, vec![], vec![0x2000, 0x3001]),
        SessionRecord::Fork {
            time: MonotonicNs::new(3),
            pid: child,
            ppid: pid,
            tid: thread,
            ptid: tid,
        },
        sample(4, vec![0xffff_ffff_8100_0010], vec![0x2000, torn + 1]),
        SessionRecord::Lost {
            time: MonotonicNs::new(5),
            count: 3,
        },
        SessionRecord::Exit {
            time: MonotonicNs::new(6),
            pid: child,
            ppid: pid,
            tid: thread,
            ptid: tid,
        },
    ] {
        writer.write(&record)?;
    }
    // Not finished: perf's features would hold this machine's name.
    writer.flush()?;
    Ok(std::fs::read(folder.join(PERF_DATA))?)
}

/// Counts of a method of the seed of a session, and of one in the remap range.
pub fn counts() -> String {
    let slot = REMAP_BASE + REMAP_SIZE / 2;
    format!(
        "pid\taddress\ttime_ns\tinvokes\treturns\tunwinds\n10\t0x2000\t2\t7\t6\t1\n10\t{slot:#x}\t4\t{}\t0\t0\n",
        u64::MAX
    )
}
