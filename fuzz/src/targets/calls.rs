//! A VM's counts are never believed: nobody holds more of them than the file does, however it changes.

use crate::{MappedFile, bounded};
use varid_tunnel::abi::{CALLS_ENTRIES, CALLS_NAME, MAX_CALLS};
use varid_tunnel::calls::CallsFile;

/// The entries as they are in the file, and again as they are told; the memory map is in what all targets may hold.
const PER_BYTE: usize = 4;
/// Bytes of an entry.
const ENTRY: usize = 64;

thread_local! {
    static FILE: MappedFile = MappedFile::new(CALLS_NAME);
}

fn look(calls: &CallsFile, bytes: &[u8]) {
    let Ok(counted) = bounded(bytes, PER_BYTE, || calls.read()) else {
        return;
    };
    assert!(counted.calls.len() <= MAX_CALLS as usize);
    let entries = bytes.get(CALLS_ENTRIES as usize..).unwrap_or_default();
    let entries = entries.as_chunks::<ENTRY>().0;
    assert!(
        counted.calls.len() <= entries.len(),
        "more entries than there is room for"
    );
    for (call, entry) in counted.calls.iter().zip(entries) {
        assert!(entry.starts_with(&call.method.to_le_bytes()));
    }
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    FILE.with(|file| {
        let place = file.hold(bytes);
        let calls = CallsFile::open(varid_model::Pid::new(std::process::id()), &place)
            .expect("the file that is mapped");
        look(&calls, bytes);
        // The VM does with its file what it wants.
        let (start, rest) = bytes.split_at(bytes.len() / 2);
        for bytes in [start, rest] {
            file.hold(bytes);
            look(&calls, bytes);
        }
    });
}
