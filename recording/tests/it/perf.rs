//! Do unmodified perf and the linux-perf-data crate read what is written?

use crate::common;

use std::{env, fs, path::Path, process::Command};

use crate::common::{DEX, comm, dex_mapping, manifest, perf, tiny_elf, user_sample};
use linux_perf_data::{PerfFileReader, PerfFileRecord, linux_perf_event_reader::EventRecord};
use varid_model::{Address, Marker, MonotonicNs, Period, Pid, Precision, Reason, Tid};
use varid_recording::remap::address_of;
use varid_recording::{
    CpuMode, MappingRecord, REMAP_BASE, REMAP_SIZE, Sample, SessionReader, SessionRecord,
    SessionWriter,
};

/// No process has it: perf looks for the files of one that runs in that one's root.
const PID: u32 = 5_000_000;
const DRAW: u64 = 0x100;
const RUN: u64 = 0x200;

/// A writer with one process, its dex file and the remap range mapped; nothing flushed.
fn session(dir: &Path) -> SessionWriter {
    let mut writer = SessionWriter::create(dir, manifest()).unwrap();
    let name = writer.symbol_file("0a", Path::new("/data/app/base.apk!test.dex"));
    let dex = writer.symbols().join(name.unwrap());
    fs::write(
        &dex,
        tiny_elf(
            0x1000,
            &[
                ("org.example.Balls.draw", DRAW, 0x40),
                ("org.example.Balls.run(int)", RUN, 0x40),
            ],
        ),
    )
    .unwrap();
    let remap = writer.symbols().join("remap.elf");
    let markers: Vec<_> = Marker::all()
        .map(|marker| (marker.symbol(), address_of(marker).get() - REMAP_BASE, 16))
        .collect();
    fs::write(&remap, tiny_elf(0x1000, &markers)).unwrap();
    writer.write(&comm(1_000, PID, "balls")).unwrap();
    writer.write(&dex_mapping(1_001, PID, &dex)).unwrap();
    writer
        .write(&SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::new(1_002),
            pid: Pid::new(PID),
            tid: Tid::new(PID),
            start: Address::new(REMAP_BASE),
            len: REMAP_SIZE,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: remap,
            build_id: common::BUILD_ID.to_vec(),
        }))
        .unwrap();
    writer
}

/// A leaf in draw, called by run.
fn draw(time: u64) -> SessionRecord {
    user_sample(time, PID, &[DEX + DRAW + 8, DEX + RUN + 0x11])
}

/// The number of samples that perf script prints.
fn samples(data: &Path) -> usize {
    perf(&["script", "-F", "time", "-G"], data).lines().count()
}

#[test]
fn perf_report_names_methods_markers_and_callers() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = session(dir.path());
    for time in 0..3 {
        writer.write(&draw(2_000 + time)).unwrap();
    }
    let torn = address_of(Marker::Reason(Reason::TornFrames)).get();
    writer
        .write(&user_sample(3_000, PID, &[DEX + RUN, torn]))
        .unwrap();
    writer.finish().unwrap();

    let data = dir.path().join("perf.data");
    let report = perf(
        &["report", "--stdio", "-g", "caller", "--no-children"],
        &data,
    );
    assert!(report.contains("of event 'cpu-clock'"), "{report}");
    let draw = report
        .lines()
        .find(|line| line.contains("Balls.draw"))
        .unwrap();
    assert!(
        draw.contains("75.00%") && draw.contains("balls"),
        "{report}"
    );
    assert!(report.contains("org.example.Balls.run(int)"), "{report}");
    assert!(report.contains("[torn-frames]"), "{report}");
    let images = perf(
        &[
            "report",
            "--stdio",
            "-g",
            "none",
            "--no-children",
            "--sort",
            "dso",
        ],
        &data,
    );
    let of_dex = images
        .lines()
        .find(|line| line.trim_end().ends_with(" base.apk-test.dex"));
    assert!(
        of_dex.is_some_and(|line| line.contains("100.00%")),
        "{images}"
    );

    let fields = "comm,tid,cpu,time,event,ip,sym,period,addr";
    let script = perf(&["script", "-F", fields], &data);
    let first: Vec<_> = script.lines().take_while(|line| !line.is_empty()).collect();
    assert!(
        first[0].contains("balls") && first[0].contains(&PID.to_string()),
        "{script}"
    );
    assert!(
        first[0].contains("[001]") && first[0].contains("1003009"),
        "{script}"
    );
    assert!(
        first[0].contains("12345678") && first[0].contains("cpu-clock:"),
        "{script}"
    );
    assert!(first[1].contains(" 108 org.example.Balls.draw"), "{script}");
    assert!(
        first[2].contains(" 211 org.example.Balls.run(int)"),
        "{script}"
    );

    let header = perf(&["report", "--header-only"], &data);
    for line in [
        "# hostname : ",
        "# os release : ",
        "# arch : ",
        "# nrcpus online : ",
        "# cmdline : ",
    ] {
        assert!(header.contains(line), "{line} in {header}");
    }
    assert!(
        header.contains("name = cpu-clock") && header.contains("clockid = 1"),
        "{header}"
    );
}

#[test]
fn perf_puts_kernel_frames_under_the_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = session(dir.path());
    let build_id = varid_recording::host::kernel_build_id();
    writer
        .write(&SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::new(1_003),
            pid: Pid::KERNEL,
            tid: Tid::new(0),
            start: Address::new(0xffff_ffff_8100_0000),
            len: 0x100_0000,
            pgoff: 0xffff_ffff_8100_0000,
            kernel: true,
            mode: None,
            path: "[kernel.kallsyms]_text".into(),
            build_id: build_id.clone(),
        }))
        .unwrap();
    writer
        .write(&SessionRecord::Sample(Sample {
            event: 0,
            time: MonotonicNs::new(2_000),
            pid: Pid::new(PID),
            tid: Tid::new(PID),
            cpu: 0,
            period: Period::new(1),
            original_ip: Address::new(0xffff_ffff_8100_1234),
            interrupt: None,
            mode: CpuMode::Kernel,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: vec![Address::new(0xffff_ffff_8100_1234)],
            user: vec![Address::new(DEX + DRAW)],
        }))
        .unwrap();
    writer.finish().unwrap();
    let data = dir.path().join("perf.data");
    let script = perf(&["script", "-F", "ip,dso,sym"], &data);
    let lines: Vec<_> = script.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].contains("ffffffff81001234"), "{script}");
    assert!(lines[0].contains("kernel"), "{script}");
    assert!(
        lines[1].contains("Balls.draw") && lines[1].contains("/symbols/0a/base.apk-test.dex)"),
        "{script}"
    );
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let ids = perf(&["buildid-list"], &data);
    assert!(ids.contains(&format!("{hex} [kernel.kallsyms]")), "{ids}");
}

#[test]
fn a_kill_at_any_flush_or_within_one_leaves_what_was_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    let scratch = tempfile::tempdir().unwrap();
    let killed = scratch.path().join("perf.data");
    let mut writer = session(dir.path());
    assert_eq!(samples(&data), 0, "before the first flush");
    writer.flush().unwrap();
    for flushes in 1..=5 {
        let before = fs::read(&data).unwrap();
        for sample in 0..7 {
            writer.write(&draw(2_000 + 10 * flushes + sample)).unwrap();
        }
        writer.flush().unwrap();
        let after = fs::read(&data).unwrap();
        assert_eq!(samples(&data), 7 * flushes as usize);

        // Killed between the batch and the header: the old header, more bytes behind it.
        for bytes in [1, 7, 100, after.len() - before.len()] {
            let mut torn = before.clone();
            torn.extend(&after[before.len()..before.len() + bytes]);
            fs::write(&killed, &torn).unwrap();
            assert_eq!(
                samples(&killed),
                7 * (flushes - 1) as usize,
                "{bytes} bytes more"
            );
        }
    }
    // Killed while features are written: their bits are not set yet.
    let live = fs::read(&data).unwrap();
    writer.finish().unwrap();
    let complete = fs::read(&data).unwrap();
    assert!(complete.len() > live.len());
    for len in [live.len() + 1, live.len() + 30, complete.len()] {
        let mut torn = complete[..len].to_vec();
        torn[..live.len()].copy_from_slice(&live);
        fs::write(&killed, &torn).unwrap();
        assert_eq!(samples(&killed), 35);
    }
    assert_eq!(samples(&data), 35);
}

#[test]
fn records_after_finish_are_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    let mut writer = session(dir.path());
    writer.write(&draw(2_000)).unwrap();
    writer.finish().unwrap();
    for time in 3_000..3_100 {
        writer.write(&draw(time)).unwrap();
    }
    writer.flush().unwrap();
    assert_eq!(samples(&data), 101);
    writer.finish().unwrap();
    assert_eq!(samples(&data), 101);
}

#[test]
fn linux_perf_data_reads_live_and_complete_recordings() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = session(dir.path());
    for time in 0..10 {
        writer.write(&draw(2_000 + time)).unwrap();
    }
    writer.flush().unwrap();
    let live = read_with_linux_perf_data(&dir.path().join("perf.data"));
    writer.finish().unwrap();
    let complete = read_with_linux_perf_data(&dir.path().join("perf.data"));
    assert_eq!(live.chains, complete.chains);
    assert_eq!(live.chains.len(), 10);
    let user = 512u64.wrapping_neg();
    assert_eq!(live.chains[0], [user, DEX + DRAW + 8, DEX + RUN + 0x11]);
    assert_eq!(live.mappings.len(), 2);
    assert!(live.mappings[0].ends_with("symbols/0a/base.apk-test.dex"));
    assert_eq!(complete.event.as_deref(), Some("cpu-clock"));
}

struct Independent {
    event: Option<String>,
    chains: Vec<Vec<u64>>,
    mappings: Vec<String>,
}

fn read_with_linux_perf_data(data: &Path) -> Independent {
    let file = std::io::BufReader::new(fs::File::open(data).unwrap());
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(file).unwrap();
    let mut read = Independent {
        event: perf_file.event_attributes()[0].name().map(str::to_owned),
        chains: vec![],
        mappings: vec![],
    };
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let PerfFileRecord::EventRecord { record, .. } = record else {
            continue;
        };
        match record.parse().unwrap() {
            EventRecord::Sample(sample) => {
                let chain = sample.callchain.unwrap();
                let addresses = (0..chain.len()).map(|i| chain.get(i).unwrap());
                read.chains.push(addresses.collect());
            }
            EventRecord::Mmap2(mapping) => {
                let path = mapping.path.as_slice().into_owned();
                read.mappings.push(String::from_utf8(path).unwrap());
            }
            _ => {}
        }
    }
    read
}

#[test]
fn our_reader_agrees_with_perf_script_on_every_sample() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = session(dir.path());
    for (index, time) in [5, 3, 4, 9, 7, 8, 2].into_iter().enumerate() {
        writer.write(&draw(10_000_000 + 1_000 * time)).unwrap();
        if index == 3 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
    let script = perf(
        &["script", "-F", "time", "--ns", "-G"],
        &dir.path().join("perf.data"),
    );
    let theirs: Vec<u64> = script
        .lines()
        .map(|line| {
            line.trim()
                .trim_end_matches(':')
                .replace('.', "")
                .parse()
                .unwrap()
        })
        .collect();
    let ours: Vec<u64> = SessionReader::open(dir.path())
        .unwrap()
        .records()
        .unwrap()
        .filter_map(|record| match record.unwrap() {
            SessionRecord::Sample(sample) => Some(sample.time.get()),
            _ => None,
        })
        .collect();
    assert_eq!(ours, theirs);
    assert!(ours.is_sorted() && ours.len() == 7);
}

/// Set in the child of the next test: where it records until it is killed.
const RECORD_INTO: &str = "VARID_TEST_RECORD_INTO";

#[test]
fn a_writer_killed_at_any_moment_leaves_every_flushed_sample() {
    if let Some(dir) = env::var_os(RECORD_INTO) {
        let mut writer = session(Path::new(&dir));
        for time in 2_000.. {
            writer.write(&draw(time)).unwrap();
            if time % 100 == 99 {
                writer.flush().unwrap();
            }
        }
    }
    for kill in 0..20u64 {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("perf.data");
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "perf::a_writer_killed_at_any_moment_leaves_every_flushed_sample",
            ])
            .env(RECORD_INTO, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The child is somewhere in its loop whenever the file has reached a size.
        let size = 2_000 + kill * 3_777;
        while fs::metadata(&data).map_or(0, |data| data.len()) < size {
            assert!(child.try_wait().unwrap().is_none(), "the writer ended");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let records = SessionReader::open(dir.path()).unwrap().records().unwrap();
        let ours = records
            .filter(|r| matches!(r.as_ref().unwrap(), SessionRecord::Sample(_)))
            .count();
        assert_eq!(ours % 100, 0);
        assert_eq!(samples(&data), ours);
        if ours > 0 {
            let report = perf(&["report", "--stdio", "-g", "none"], &data);
            assert!(report.contains("org.example.Balls.draw"), "{report}");
        }
    }
}
