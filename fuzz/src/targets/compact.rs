//! Compact records are not trusted: they are read up to the first error. Those without one are the same when they are plain.

use super::contexts::with_checksums;
use crate::finished_session;
use varid_recording::{
    PERF_DATA, RECORDS_DATA, RecordsForm, Result, SessionReader, SessionRecord, rewrite,
};

/// The most records that are compared.
const COMPARED: usize = 1 << 12;

thread_local! {
    static FOLDER: tempfile::TempDir = finished_session().0;
}

/// Runs the target on one input, once unchanged and once with corrected checksums.
pub(super) fn fuzz(bytes: &[u8]) {
    file(bytes);
    file(&with_checksums(bytes));
}

fn file(bytes: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.path();
        // It would be read instead.
        let _ = std::fs::remove_file(folder.join(PERF_DATA));
        std::fs::write(folder.join(RECORDS_DATA), bytes).expect("room for the file");
        let session = || SessionReader::open(folder).expect("the session");
        let Ok(mut records) = session().records() else {
            return;
        };
        let (mut count, mut failed) = (0usize, false);
        while let Some(record) = records.next_ref() {
            assert!(!failed, "a record after the error that ends them");
            failed = record.is_err();
            count += 1;
        }
        if failed || count > COMPARED {
            return;
        }
        let all = || -> Result<Vec<SessionRecord>> { session().records()?.collect() };
        let compact = all().expect("what was read before");
        if rewrite(folder, RecordsForm::Plain).is_ok() {
            assert_eq!(all().expect("the plain records"), compact);
        }
    });
}
