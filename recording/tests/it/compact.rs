//! Is a compact recording the same recording, whatever it was before, and does what it becomes differ from that?

use std::{fs, path::Path};

use crate::compressed::{read, recorded, script};
use varid_recording::{
    PERF_DATA, RECORDS_DATA, RecordsForm, SessionReader, SessionRecord, rewrite, session_files,
};

fn is_there(session: &Path, file: &str) -> bool {
    session.join(file).exists()
}

#[test]
fn a_compact_recording_has_the_same_records_and_becomes_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let session = recorded(dir.path(), 12_345);
    let data = || fs::read(session.join(PERF_DATA)).unwrap();
    let (before, records, text) = (data(), read(&session), script(&session));
    for _ in 0..2 {
        // The second time nothing changes.
        let done = rewrite(&session, RecordsForm::Compact).unwrap();
        assert!(done.after < 12_345 * 4, "{done:?}");
        assert!(!is_there(&session, PERF_DATA) && is_there(&session, RECORDS_DATA));
        assert!(read(&session) == records);
    }
    let opened = SessionReader::open(&session).unwrap();
    assert!(opened.has_records());
    let files = session_files(&session).unwrap();
    assert!(files.contains(&RECORDS_DATA.into()), "{files:?}");
    rewrite(&session, RecordsForm::Plain).unwrap();
    assert!(data() == before && !is_there(&session, RECORDS_DATA));
    // By way of compressed records, too.
    rewrite(&session, RecordsForm::Compressed).unwrap();
    let compressed = data();
    rewrite(&session, RecordsForm::Compact).unwrap();
    assert!(read(&session) == records);
    rewrite(&session, RecordsForm::Compressed).unwrap();
    assert!(data() == compressed && script(&session) == text);
}

#[test]
fn a_compact_recording_that_is_cut_or_damaged_has_the_records_before_and_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let session = recorded(dir.path(), 22_000);
    let records = read(&session);
    rewrite(&session, RecordsForm::Compact).unwrap();
    let path = session.join(RECORDS_DATA);
    let bytes = fs::read(&path).unwrap();
    let found = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let opened = SessionReader::open(&session).unwrap().records();
        opened.map_or((Vec::new(), 1), |found| {
            let (whole, errors): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
            let whole: Vec<SessionRecord> = whole.into_iter().flatten().collect();
            (whole, errors.len())
        })
    };
    for part in 0..20 {
        let at = bytes.len() * part / 20;
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        for changed in [&bytes[..at], &damaged] {
            let (whole, errors) = found(changed);
            assert!(whole == records[..whole.len()], "{part}");
            assert_eq!(errors, 1, "{part}");
            for form in [RecordsForm::Plain, RecordsForm::Compact] {
                assert!(rewrite(&session, form).is_err());
            }
            assert!(fs::read(&path).unwrap() == changed && !is_there(&session, PERF_DATA));
        }
    }
    assert_eq!(found(&bytes), (records, 0));
}

#[test]
fn a_session_is_whole_between_the_steps_that_change_its_form() {
    let dir = tempfile::tempdir().unwrap();
    let session = recorded(dir.path(), 100);
    let records = read(&session);
    let before = fs::read(session.join(PERF_DATA)).unwrap();
    rewrite(&session, RecordsForm::Compact).unwrap();
    // As after a kill before one of the two files was removed, with a part of a third.
    fs::write(session.join(PERF_DATA), &before).unwrap();
    fs::write(session.join("records.data.new"), "VARID").unwrap();
    assert!(read(&session) == records);
    rewrite(&session, RecordsForm::Compact).unwrap();
    assert!(read(&session) == records && !is_there(&session, PERF_DATA));
    rewrite(&session, RecordsForm::Plain).unwrap();
    assert!(fs::read(session.join(PERF_DATA)).unwrap() == before);
    assert!(!is_there(&session, "records.data.new"));
}
