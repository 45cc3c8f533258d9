//! A VM's counts are not trusted. The reader holds no more entries than the file has, however it changes.

use crate::{MappedFile, bounded};
use varid_tunnel::abi::{CALLS_ENTRIES, CALLS_NAME, MAX_CALLS};
use varid_tunnel::calls::CallsFile;

/// Covers the entries as read and as returned. The memory map is covered by the constant of all targets.
const PER_BYTE: usize = 4;
/// The size of an entry in bytes.
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
        // The VM may change its file at any time.
        let (start, rest) = bytes.split_at(bytes.len() / 2);
        for bytes in [start, rest] {
            file.hold(bytes);
            look(&calls, bytes);
        }
    });
}
