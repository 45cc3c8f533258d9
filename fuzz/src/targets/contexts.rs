//! A session's contexts are not trusted. They are read up to the first error, are equal when written and read again,
//! and can be reported.

use crate::{bounded, finished_session, with_session};
use std::io::sink;
use varid_recording::{
    CALLS_TSV, CONTEXTS_DATA, ContextWriter, Contexts, PERF_DATA, SessionReader, SessionWriter,
};
use varid_report::{Options, OutputFormat, Profile, View, render};

/// The smallest node takes two bytes and becomes 52. A growing list briefly exists twice, the second time with twice
/// its size.
const PER_BYTE: usize = 100;

/// The session of the contexts.
const SESSION: &[u8] = include_bytes!("../../seeds/report/session");

/// The first bytes of the contexts of an old session.
const OLD: &[u8] = b"pid\t";
/// The size of the file header: magic, version.
const FILE_HEAD: usize = 12;
/// The size of a chunk header: kind (u8), length (u32), checksum (u32).
const CHUNK_HEAD: usize = 9;

thread_local! {
    static COPY: (tempfile::TempDir, SessionWriter) = finished_session();
}

/// Runs the target on one input, once unchanged and once with corrected checksums. Without the correction, few
/// mutations get past them.
pub(super) fn fuzz(bytes: &[u8]) {
    if bytes.starts_with(OLD) {
        return file(CALLS_TSV, bytes);
    }
    file(CONTEXTS_DATA, bytes);
    file(CONTEXTS_DATA, &with_checksums(bytes));
}

/// Returns a file of chunks with the checksums of its chunks.
pub(super) fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = FILE_HEAD;
    while let Some(chunk) = bytes.get_mut(at..)
        && let Some((head, rest)) = chunk.split_at_mut_checked(CHUNK_HEAD)
    {
        let (named, checksum) = head.split_at_mut(5);
        let length = u32::from_le_bytes([named[1], named[2], named[3], named[4]]) as usize;
        let Some(payload) = rest.get(..length) else {
            break;
        };
        let mut sum = crc32fast::Hasher::new();
        sum.update(named);
        sum.update(payload);
        checksum.copy_from_slice(&sum.finalize().to_le_bytes());
        at += CHUNK_HEAD + length;
    }
    bytes
}

fn file(name: &str, bytes: &[u8]) {
    with_session(&[(PERF_DATA, SESSION), (name, bytes)], |session| {
        if let Ok(Some(contexts)) = bounded(bytes, PER_BYTE, || session.contexts()) {
            assert!(contexts.nodes().len() <= bytes.len() / 2);
            is_read_again(session, &contexts);
        }
        let profile = Profile::from_session(session, &Options::default()).expect("a profile");
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
            render(&profile, &View::default(), format, &mut sink())
                .expect("a sink takes everything");
        }
        std::fs::remove_file(session.dir().join(name)).expect("the file");
    });
}

/// Asserts that contexts are the same after they have been written and read again.
fn is_read_again(session: &SessionReader, contexts: &Contexts) {
    COPY.with(|(folder, writer)| {
        let counters = contexts.counters();
        let mut copy = writer.create_contexts(counters).expect("room for contexts");
        write(&mut copy, session, contexts).expect("what was read can be written");
        copy.finish().expect("room for contexts");
        let session_copy = SessionReader::open(folder.path()).expect("the copy");
        let copy = session_copy.contexts().expect("contexts");
        let copy = copy.expect("contexts");
        assert_eq!(copy.damage(), None);
        assert_eq!(copy.counters(), counters);
        assert_eq!(copy.processes(), contexts.processes());
        assert_eq!(copy.methods(), contexts.methods());
        assert_eq!(copy.sites(), contexts.sites());
        assert_eq!(copy.nodes(), contexts.nodes());
        assert_eq!(copy.switches(), contexts.switches());
        for node in contexts.node_ids() {
            assert_eq!(copy.counts(node), contexts.counts(node));
        }
        assert_eq!(copy.traces().len(), contexts.traces().len());
        for (copied, trace) in copy.traces().iter().zip(contexts.traces()) {
            assert_eq!((copied.pid, copied.tid), (trace.pid, trace.tid));
            let [copied, trace] = [(&session_copy, copied), (session, trace)]
                .map(|(session, trace)| session.read_trace(trace).expect("the bytes"));
            assert_eq!(copied, trace);
        }
    });
}

fn write(
    copy: &mut ContextWriter,
    session: &SessionReader,
    contexts: &Contexts,
) -> varid_recording::Result<()> {
    for process in contexts.processes() {
        copy.add_process(process.pid, &process.vm)?;
    }
    for method in contexts.methods() {
        copy.add_method(method)?;
    }
    for site in contexts.sites() {
        copy.add_site(site)?;
    }
    for node in contexts.nodes() {
        copy.add_node(node)?;
    }
    for node in contexts.node_ids() {
        for count in contexts.counts(node) {
            copy.set_count(node, count)?;
        }
    }
    for switch in contexts.switches() {
        copy.add_switch(switch)?;
    }
    for trace in contexts.traces() {
        let bytes = session.read_trace(trace)?;
        copy.add_trace(trace.pid, trace.tid, trace.compression, &bytes)?;
    }
    for process in contexts.processes() {
        copy.end_process(process.pid, process.incomplete.as_deref())?;
    }
    Ok(())
}
