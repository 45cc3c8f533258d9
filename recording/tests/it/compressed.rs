//! Is a compressed recording the same recording, to varid and to perf, however it came to be and wherever it ends?

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::common::{DEX, comm, dex_mapping, manifest, perf, tiny_elf, user_sample};
use varid_recording::{
    PERF_DATA, RecordsForm, SessionReader, SessionRecord, SessionWriter, rewrite,
};

/// No process has it.
const PID: u32 = 5_000_000;

/// Samples of two rounds and more, with callchains that repeat.
fn write(dir: &Path, dex: &Path, compress: bool, samples: u64) -> SessionWriter {
    let mut writer = SessionWriter::create(dir, manifest()).unwrap();
    if compress {
        writer.compress();
    }
    writer.write(&comm(1_000, PID, "balls")).unwrap();
    writer.write(&dex_mapping(1_001, PID, dex)).unwrap();
    for number in 0..samples {
        let draw = DEX + 0x100 + number * 7 % 0x40;
        let stack = [draw, DEX + 0x201, DEX + 0x211, DEX + 0x221, DEX + 0x231];
        let time = 10_000 + number * 1_003_009;
        writer.write(&user_sample(time, PID, &stack)).unwrap();
        if number % 5_000 == 4_999 {
            writer.flush().unwrap();
        }
    }
    writer
}

fn dex(dir: &Path) -> PathBuf {
    let path = dir.join("test.elf");
    let functions = [
        ("org.example.Balls.draw", 0x100, 0x40),
        ("org.example.Balls.run(int)", 0x200, 0x40),
    ];
    fs::write(&path, tiny_elf(0x1000, &functions)).unwrap();
    path
}

/// A plain session of so many samples, in a folder that also has the file of their methods.
pub fn recorded(dir: &Path, samples: u64) -> PathBuf {
    let session = dir.join("session");
    let mut writer = write(&session, &dex(dir), false, samples);
    writer.finish().unwrap();
    session
}

pub fn read(dir: &Path) -> Vec<SessionRecord> {
    let session = SessionReader::open(dir).unwrap();
    let records = session.records().unwrap();
    records.collect::<Result<_, _>>().unwrap()
}

pub fn script(dir: &Path) -> String {
    perf(
        &[
            "script",
            "-F",
            "comm,pid,time,period,ip,sym,dso",
            "--show-mmap-events",
        ],
        &dir.join(PERF_DATA),
    )
}

#[test]
fn a_compressed_recording_is_the_plain_one_to_varid_and_perf_in_an_eighth_of_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let dex = dex(dir.path());
    let [plain, compressed] = ["plain", "compressed"].map(|name| dir.path().join(name));
    write(&plain, &dex, false, 30_000).finish().unwrap();
    write(&compressed, &dex, true, 30_000).finish().unwrap();
    assert!(read(&plain) == read(&compressed));
    let text = script(&plain);
    assert!(text.matches("org.example.Balls.draw").count() == 30_000);
    assert!(script(&compressed) == text);
    let size = |dir: &Path| dir.join(PERF_DATA).metadata().unwrap().len();
    assert!(
        size(&compressed) * 8 < size(&plain),
        "{}",
        size(&compressed)
    );
    assert!(size(&compressed) < 30_000 * 20);
}

#[test]
fn what_is_compressed_afterwards_is_the_same_and_comes_back_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let session = recorded(dir.path(), 12_345);
    let data = || fs::read(session.join(PERF_DATA)).unwrap();
    let (before, records, text) = (data(), read(&session), script(&session));
    for _ in 0..2 {
        // The second time nothing changes.
        let done = rewrite(&session, RecordsForm::Compressed).unwrap();
        assert!(done.after * 8 < before.len() as u64, "{done:?}");
        assert_eq!(done.after, data().len() as u64);
        assert!(read(&session) == records && script(&session) == text);
    }
    rewrite(&session, RecordsForm::Plain).unwrap();
    assert!(data() == before);
}

#[test]
fn a_session_that_is_recorded_or_damaged_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let dex = dex(dir.path());
    let session = dir.path().join("session");
    let mut writer = write(&session, &dex, false, 1_000);
    let error = rewrite(&session, RecordsForm::Compressed)
        .unwrap_err()
        .to_string();
    assert!(error.contains("is being recorded"), "{error}");
    writer.finish().unwrap();
    drop(writer);
    let path = session.join(PERF_DATA);
    let bytes = fs::read(&path).unwrap();
    let cut = &bytes[..bytes.len() / 2];
    fs::write(&path, cut).unwrap();
    assert!(rewrite(&session, RecordsForm::Compressed).is_err());
    assert!(fs::read(&path).unwrap() == cut && !session.join("perf.data.new").exists());
}

#[test]
fn a_killed_compressed_recording_is_readable_up_to_its_last_flush() {
    let dir = tempfile::tempdir().unwrap();
    let dex = dex(dir.path());
    let session = dir.path().join("session");
    // Dropped like that, it is as after a kill; the last ones were never flushed.
    drop(write(&session, &dex, true, 22_000));
    let samples = |records: &[SessionRecord]| {
        let is_sample = |record: &&SessionRecord| matches!(record, SessionRecord::Sample(_));
        records.iter().filter(is_sample).count()
    };
    let records = read(&session);
    let count = samples(&records);
    assert!((20_000..22_000).contains(&count), "{count}");
    assert_eq!(
        script(&session).matches("org.example.Balls.draw").count(),
        count
    );
    // And a file that was cut anywhere, up to the last whole record before.
    let path = session.join(PERF_DATA);
    let bytes = fs::read(&path).unwrap();
    for part in 1..20 {
        fs::write(&path, &bytes[..bytes.len() * part / 20]).unwrap();
        let Ok(found) = SessionReader::open(&session).unwrap().records() else {
            continue;
        };
        let (mut whole, mut errors) = (Vec::new(), 0);
        for record in found {
            match record {
                Ok(record) => whole.push(record),
                Err(_) => errors += 1,
            }
        }
        assert!(whole == records[..whole.len()], "{part}");
        assert!(errors == 1 || whole.len() == records.len(), "{part}");
    }
    // Those that were lost do not keep it from being compressed or made plain.
    fs::write(&path, &bytes).unwrap();
    rewrite(&session, RecordsForm::Plain).unwrap();
    assert!(read(&session) == records);
    assert_eq!(
        script(&session).matches("org.example.Balls.draw").count(),
        count
    );
}

/// Puts a thousand compressed records into a session's perf.data, and something behind each: 256 KB each that are no samples, in some
/// hundred bytes.
fn fill(session: &Path, behind_each: &[u8]) {
    // 64 bytes of a kind that no reader knows.
    let record = [72u32.to_le_bytes(), [0, 0, 64, 0]].concat();
    let record = [record, vec![0; 56]].concat();
    let frame = ruzstd::encoding::compress_to_vec(
        &record.repeat(4096)[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let size = u16::try_from(frame.len() + 8).unwrap();
    let header = u64::from(81u32) | u64::from(size) << 48;
    let bomb = [&header.to_le_bytes()[..], &frame, behind_each].concat();
    let bomb = bomb.repeat(1_000);
    let path = session.join(PERF_DATA);
    let mut bytes = fs::read(&path).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let data = word(&bytes, 40) as usize;
    bytes.truncate(data);
    bytes[48..56].copy_from_slice(&(bomb.len() as u64).to_le_bytes());
    bytes[72..104].fill(0);
    bytes.extend(bomb);
    fs::write(&path, &bytes).unwrap();
}

#[test]
fn a_small_file_of_many_records_ends_before_they_fill_memory() {
    let dir = tempfile::tempdir().unwrap();
    let session = recorded(dir.path(), 1);
    // Without an end of a round, and with them.
    let finished_round = (68u64 | 8 << 48).to_le_bytes();
    for (behind_each, refused) in [
        (&[][..], "more compressed records than a round has"),
        (
            &finished_round,
            "more records in fewer compressed bytes than varid writes",
        ),
    ] {
        fill(&session, behind_each);
        let records = SessionReader::open(&session).unwrap().records().unwrap();
        let last = records.last().unwrap().unwrap_err().to_string();
        assert!(last.contains(refused), "{last}");
    }
    // Nor the disk, when they are to become plain.
    let error = rewrite(&session, RecordsForm::Plain)
        .unwrap_err()
        .to_string();
    assert!(error.contains("than varid writes"), "{error}");
    assert!(!session.join("perf.data.new").exists());
}
