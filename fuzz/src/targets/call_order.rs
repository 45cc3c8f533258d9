//! A session's order of calls is not trusted: it is read up to the first error, and is equal when written and read again.

use super::contexts::with_checksums;
use crate::{bounded, manifest};
use varid_recording::{CALL_ORDER_DATA, CallEvent, CallOrder, SessionWriter};

/// The number of nodes of the contexts.
const NODES: u32 = 1 << 16;
/// A place in memory for each chunk, of which the smallest takes nine bytes; a thread takes nine times as much.
const PER_BYTE: usize = 100;

/// The events of a thread.
type Thread = Vec<CallEvent>;

thread_local! {
    static SESSION: (tempfile::TempDir, SessionWriter) = {
        let folder = tempfile::tempdir().expect("a folder for the session");
        let writer = SessionWriter::create(folder.path(), manifest()).expect("an empty session");
        writer.create_contexts(&[]).expect("room").finish().expect("room");
        (folder, writer)
    };
}

/// Runs the target on one input, once unchanged and once with corrected checksums.
pub(super) fn fuzz(bytes: &[u8]) {
    file(bytes);
    file(&with_checksums(bytes));
}

fn file(bytes: &[u8]) {
    SESSION.with(|(folder, writer)| {
        std::fs::write(folder.path().join(CALL_ORDER_DATA), bytes).expect("a file");
        let order = bounded(bytes, PER_BYTE, || CallOrder::open(folder.path()));
        let Ok(Some(order)) = order else { return };
        let threads = order.threads().to_vec();
        let events: Vec<Thread> = threads
            .iter()
            .map(|thread| {
                order
                    .events(thread)
                    .take(1 << 16)
                    .map_while(Result::ok)
                    .collect()
            })
            .collect();
        let mut copy = writer.create_call_order(NODES).expect("a file");
        for (thread, events) in threads.iter().zip(&events) {
            copy.start_thread(thread.pid, thread.tid).expect("a thread");
            for event in events.iter().filter(|event| event.node().0 < NODES) {
                copy.add(*event).expect("an event");
            }
            copy.end_thread(thread.incomplete.as_deref())
                .expect("an end");
        }
        copy.finish().expect("the file");
        let copied = CallOrder::open(folder.path()).expect("the copy");
        let copied = copied.expect("the copy");
        assert_eq!(copied.threads().len(), threads.len());
        for (thread, events) in copied.threads().iter().zip(&events) {
            let again: Result<Thread, _> = copied.events(thread).collect();
            let events = events.iter().copied();
            let events: Thread = events.filter(|event| event.node().0 < NODES).collect();
            assert_eq!(again.expect("events"), events);
        }
    });
}
