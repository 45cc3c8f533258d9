//! Does a session survive what happens to it, and does the reader return what was written?

use std::{
    fs,
    os::unix::{ffi::OsStringExt, fs::DirBuilderExt},
};

use crate::common::{DEX, comm, manifest, user_sample};
use proptest::{collection::vec, prelude::*};
use varid_model::{Address, Marker, Mode, MonotonicNs, Period, Pid, Precision, Reason, Tid};
use varid_recording::remap::address_of;
use varid_recording::{
    CpuMode, Error, MappingRecord, NO_UID, Sample, SessionReader, SessionRecord, SessionState,
    SessionWriter,
};

fn address() -> impl Strategy<Value = Address> {
    (0..4095u64.wrapping_neg()).prop_map(Address::new)
}

fn sample() -> impl Strategy<Value = SessionRecord> {
    let ids = (any::<u32>(), any::<u32>(), any::<u32>());
    let rest = (any::<u64>(), address(), any::<bool>());
    let frame = prop::option::of((1..=u64::MAX).prop_map(Address::new));
    let precision = prop::bool::ANY.prop_map(|approximate| match approximate {
        true => Precision::Approximate,
        false => Precision::Exact,
    });
    let extra = (any::<u32>(), frame, precision);
    (
        ids,
        rest,
        extra,
        vec(address(), 0..20),
        vec(address(), 0..200),
    )
        .prop_map(
            |(
                (pid, tid, cpu),
                (period, original_ip, in_kernel),
                (uid, frame, precision),
                kernel,
                user,
            )| {
                // The leaf is of the part that the sample was in.
                let kernel = match in_kernel && !user.is_empty() {
                    true => kernel,
                    false => Vec::new(),
                };
                let in_kernel = !kernel.is_empty();
                SessionRecord::Sample(Sample {
                    event: 0,
                    time: MonotonicNs::ZERO,
                    pid: Pid::new(pid),
                    tid: Tid::new(tid),
                    cpu,
                    period: Period::new(period),
                    original_ip,
                    interrupt: None,
                    mode: if in_kernel {
                        CpuMode::Kernel
                    } else {
                        CpuMode::User
                    },
                    uid,
                    frame,
                    precision,
                    kernel,
                    user,
                })
            },
        )
}

fn mapping() -> impl Strategy<Value = SessionRecord> {
    let path = vec(1..=255u8, 0..300);
    let numbers = (
        any::<u32>(),
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    );
    let mode = any::<Option<(bool, bool, bool, bool)>>().prop_map(|mode| {
        mode.map(|(read, write, execute, shared)| Mode {
            read,
            write,
            execute,
            shared,
        })
    });
    let what = (any::<bool>(), mode);
    (numbers, what, path, vec(any::<u8>(), 0..=20)).prop_map(
        |((pid, tid, start, len, pgoff), (kernel, mode), path, build_id)| {
            SessionRecord::Mapping(MappingRecord {
                time: MonotonicNs::ZERO,
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                start: Address::new(start),
                len,
                pgoff,
                kernel,
                mode,
                path: std::ffi::OsString::from_vec(path).into(),
                build_id,
            })
        },
    )
}

fn other() -> impl Strategy<Value = SessionRecord> {
    let numbers = (
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u64>(),
    );
    (numbers, any::<bool>(), "[^\0]{0,60}", 0..4).prop_map(
        |((pid, ppid, tid, ptid, count), exec, name, kind)| match kind {
            0 => SessionRecord::Comm {
                time: MonotonicNs::ZERO,
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                exec,
                name,
            },
            1 => SessionRecord::Fork {
                time: MonotonicNs::ZERO,
                pid: Pid::new(pid),
                ppid: Pid::new(ppid),
                tid: Tid::new(tid),
                ptid: Tid::new(ptid),
            },
            2 => SessionRecord::Exit {
                time: MonotonicNs::ZERO,
                pid: Pid::new(pid),
                ppid: Pid::new(ppid),
                tid: Tid::new(tid),
                ptid: Tid::new(ptid),
            },
            _ => SessionRecord::Lost {
                time: MonotonicNs::ZERO,
                count,
            },
        },
    )
}

/// Gives records times in the order of the vector.
fn at_times(mut records: Vec<SessionRecord>) -> Vec<SessionRecord> {
    for (now, record) in (1_000..).zip(&mut records) {
        match record {
            SessionRecord::Mapping(MappingRecord { time, .. })
            | SessionRecord::Sample(Sample { time, .. })
            | SessionRecord::Comm { time, .. }
            | SessionRecord::Fork { time, .. }
            | SessionRecord::Exit { time, .. }
            | SessionRecord::Lost { time, .. } => *time = MonotonicNs::new(now),
        }
    }
    records
}

fn read(dir: &std::path::Path) -> Result<Vec<SessionRecord>, Error> {
    SessionReader::open(dir)?.records()?.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        records in vec(prop_oneof![4 => sample(), 1 => mapping(), 1 => other()], 0..60),
        batch in 1..20usize,
    ) {
        let records = at_times(records);
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SessionWriter::create(dir.path(), manifest()).unwrap();
        for (index, record) in records.iter().enumerate() {
            writer.write(record).unwrap();
            if index % batch == 0 {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
        prop_assert_eq!(&read(dir.path()).unwrap(), &records);
        writer.finish().unwrap();
        prop_assert_eq!(&read(dir.path()).unwrap(), &records);
    }

    #[test]
    fn damaged_recordings_end_in_records_or_an_error_with_an_offset(
        records in vec(prop_oneof![sample(), mapping(), other()], 1..10),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SessionWriter::create(dir.path(), manifest()).unwrap();
        for record in at_times(records) {
            writer.write(&record).unwrap();
        }
        writer.finish().unwrap();
        let path = dir.path().join("perf.data");
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for len in [bytes.len(), cut.index(bytes.len())] {
            fs::write(&path, &bytes[..len]).unwrap();
            match read(dir.path()) {
                Ok(_) | Err(Error::Data { .. }) => {}
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}

#[test]
fn of_a_file_that_was_cut_the_first_part_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SessionWriter::create(dir.path(), manifest()).unwrap();
    for time in 0..100 {
        writer.write(&user_sample(time, 1, &[DEX])).unwrap();
    }
    writer.finish().unwrap();
    let path = dir.path().join("perf.data");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let mut records = SessionReader::open(dir.path()).unwrap().records().unwrap();
    let read = records.by_ref().take_while(Result::is_ok).count();
    assert!((20..80).contains(&read), "{read}");
    assert!(records.next().is_none());
    let said = self::read(dir.path()).unwrap_err().to_string();
    assert!(
        said.contains("the file ends before its records do"),
        "{said}"
    );
}

#[test]
fn a_chain_too_long_for_a_record_is_cut_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SessionWriter::create(dir.path(), manifest()).unwrap();
    let deep: Vec<u64> = (0..20_000).map(|depth| DEX + depth).collect();
    writer.write(&user_sample(1, 1, &deep)).unwrap();
    writer.write(&user_sample(2, 1, &deep[..8_000])).unwrap();
    writer.finish().unwrap();
    let records = read(dir.path()).unwrap();
    let [SessionRecord::Sample(cut), SessionRecord::Sample(whole)] = &records[..] else {
        panic!("two samples");
    };
    assert_eq!(cut.user.len(), 8_000);
    let deep: Vec<Address> = deep.into_iter().map(Address::new).collect();
    assert_eq!(cut.user[..7_999], deep[..7_999]);
    assert_eq!(
        cut.user[7_999],
        address_of(Marker::Reason(Reason::Truncated))
    );
    assert_eq!(whole.user, deep[..8_000]);
    let manifest = SessionReader::open(dir.path()).unwrap().manifest().clone();
    assert_eq!(
        (manifest.counts.samples, manifest.counts.attributed),
        (2, 1)
    );
    assert_eq!(manifest.counts.unattributed["truncated"], 1);
    assert_eq!(manifest.state, SessionState::Complete);
}

#[test]
fn a_tracepoint_s_data_leaves_room_for_a_chain_and_is_no_data_of_varid_s() {
    let dir = tempfile::tempdir().unwrap();
    let mut manifest = manifest();
    manifest.events.first.kind = 2;
    let mut writer = SessionWriter::create(dir.path(), manifest).unwrap();
    let chain: Vec<_> = (0x1000..0x1000 + 8_000).collect();
    let SessionRecord::Sample(sample) = user_sample(5, 100, &chain) else {
        unreachable!("it is a sample")
    };
    let sample = Sample {
        original_ip: Address::new(0x1000),
        interrupt: None,
        ..sample
    };
    // The kernel's say 8 KB at most.
    for content in [&b"twelve bytes"[..], &[7; 70_000]] {
        writer
            .write_recorded_sample(&sample.borrowed(), Some(content))
            .unwrap();
    }
    // A kernel's chain that leaves room for none of the user's but the marker.
    let below = Sample {
        kernel: sample.user.clone(),
        user: sample.user.iter().take(3).copied().collect(),
        mode: varid_recording::CpuMode::Kernel,
        ..sample.clone()
    };
    writer
        .write_recorded_sample(&below.borrowed(), Some(&[7; 70_000]))
        .unwrap();
    writer.finish().unwrap();
    let records = read(dir.path()).unwrap();
    let lengths: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            SessionRecord::Sample(sample) => Some((
                sample.kernel.len(),
                sample.user.len(),
                sample.uid,
                sample.frame,
            )),
            _ => None,
        })
        .collect();
    let user = |len| (0, len, NO_UID, None);
    assert_eq!(
        lengths,
        [user(8_000), user(7_154), (7_154, 1, NO_UID, None)]
    );
}

#[test]
fn the_manifest_counts_what_was_written_and_keeps_the_callers_counts() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SessionWriter::create(dir.path(), manifest()).unwrap();
    let torn = address_of(Marker::Reason(Reason::TornFrames)).get();
    let native = address_of(Marker::Native).get();
    for (time, chain) in [&[DEX, native, DEX][..], &[DEX, torn], &[DEX, torn, torn]]
        .iter()
        .enumerate()
    {
        writer.write(&user_sample(time as u64, 1, chain)).unwrap();
    }
    writer
        .write(&SessionRecord::Lost {
            time: MonotonicNs::new(9),
            count: 5,
        })
        .unwrap();
    writer.manifest_mut().counts.throttled = 2;
    writer.finish().unwrap();
    let counts = SessionReader::open(dir.path())
        .unwrap()
        .manifest()
        .counts
        .clone();
    assert_eq!((counts.samples, counts.attributed, counts.lost), (3, 1, 5));
    assert_eq!(
        (counts.unattributed["torn-frames"], counts.throttled),
        (2, 2)
    );
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("thesis.tex");
    fs::write(&path, "years").unwrap();
    let error = SessionWriter::create(dir.path(), manifest()).unwrap_err();
    assert!(matches!(error, Error::NotASession { .. }), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    // A perf.data of perf itself, and a session with a stranger in it.
    fs::rename(&path, dir.path().join("perf.data")).unwrap();
    assert!(matches!(
        SessionWriter::create(dir.path(), manifest()),
        Err(Error::NotASession { .. })
    ));
    let session = dir.path().join("session");
    drop(SessionWriter::create(&session, manifest()).unwrap());
    fs::write(session.join("notes.txt"), "mine").unwrap();
    assert!(matches!(
        SessionWriter::create(&session, manifest()),
        Err(Error::NotASession { .. })
    ));
    assert!(session.join("perf.data").exists());
}

#[test]
fn a_session_is_replaced_but_not_while_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = SessionWriter::create(dir.path(), manifest()).unwrap();
    fs::write(first.symbols().join("old.elf"), "").unwrap();
    first.write(&comm(1, 1, "first")).unwrap();
    first.finish().unwrap();
    assert!(matches!(
        SessionWriter::create(dir.path(), manifest()),
        Err(Error::Busy { .. })
    ));
    assert_eq!(read(dir.path()).unwrap().len(), 1);
    drop(first);
    let second = SessionWriter::create(dir.path(), manifest()).unwrap();
    assert!(read(dir.path()).unwrap().is_empty());
    assert!(!second.symbols().join("old.elf").exists());
}

#[test]
fn what_a_kill_at_its_start_left_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let begun = dir.path().join("begun");
    drop(SessionWriter::create(&begun, manifest()).unwrap());
    let whole = ["session.json", "symbols", "perf.data"];
    let left: [(&[&str], &[&str]); 4] = [
        (&[], &["session.json.new"]),
        (&whole[..1], &[]),
        (&whole[..2], &["perf.data.new"]),
        (&whole[..3], &["session.json.new"]),
    ];
    for (number, (names, news)) in left.into_iter().enumerate() {
        let session = dir.path().join(number.to_string());
        // As it was made, whatever the umask.
        fs::DirBuilder::new().mode(0o700).create(&session).unwrap();
        for name in names {
            match *name {
                "symbols" => fs::create_dir(session.join(name)).unwrap(),
                _ => drop(fs::copy(begun.join(name), session.join(name)).unwrap()),
            }
        }
        for name in news {
            fs::write(session.join(name), "{").unwrap();
        }
        drop(SessionWriter::create(&session, manifest()).unwrap());
        assert!(read(&session).unwrap().is_empty());
        let found = fs::read_dir(&session).unwrap();
        let mut found: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, ["perf.data", "session.json", "symbols"]);
    }
}

#[test]
fn errors_say_which_folder_and_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        SessionReader::open(dir.path()),
        Err(Error::NoSession { .. })
    ));
    drop(SessionWriter::create(dir.path(), manifest()).unwrap());
    let json = dir.path().join("session.json");
    let text = fs::read_to_string(&json).unwrap();
    fs::write(&json, text.replacen("\"version\": 1", "\"version\": 2", 1)).unwrap();
    let error = SessionReader::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("session.json has version 2"), "{error}");
    fs::write(&json, "{\"version\": 1,\n oops").unwrap();
    let error = SessionReader::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("session.json, line 2"), "{error}");
}
