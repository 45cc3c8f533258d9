//! A session's compiled code is not trusted: it is read up to the first error, and is equal when written and read again.

use super::contexts::with_checksums;
use crate::{bounded, finished_session};
use varid_model::Address;
use varid_recording::{COMPILED_CODE_DATA, CodeAtTime, SessionReader, SessionWriter};

/// A piece of code takes a hundred bytes beside its text and instructions, and at least 15 in the file. A growing list briefly exists
/// twice.
const PER_BYTE: usize = 40;

thread_local! {
    static SESSION: (tempfile::TempDir, SessionWriter) = finished_session();
}

/// Runs the target on one input, once unchanged and once with corrected checksums.
pub(super) fn fuzz(bytes: &[u8]) {
    file(bytes);
    file(&with_checksums(bytes));
}

fn file(bytes: &[u8]) {
    SESSION.with(|(folder, writer)| {
        std::fs::write(folder.path().join(COMPILED_CODE_DATA), bytes).expect("a file");
        let session = SessionReader::open(folder.path()).expect("the session");
        let read = bounded(bytes, PER_BYTE, || session.compiled_code());
        let Ok(Some(read)) = read else { return };
        let mut now = CodeAtTime::default();
        for code in read.codes() {
            let _ = now.at(&read, code.pid, code.since, code.start);
            let last = Address::new(code.start.get().wrapping_add(code.bytes.len() as u64));
            let _ = now.at(&read, code.pid, code.since, last);
        }
        let mut copy = writer.create_compiled_code().expect("a file");
        for code in read.codes() {
            assert!(copy.add(code).expect("room"));
        }
        copy.flush().expect("room");
        let copied = session.compiled_code().expect("the copy");
        let copied = copied.expect("the copy");
        assert_eq!(copied.codes(), read.codes());
        assert!(copied.damage().is_none());
    });
}
