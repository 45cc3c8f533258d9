//! Tests that events are read as they were written, and that a cut or damaged file is an error.

use std::{fs, path::Path};

use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;
use varid_model::{Pid, Tid};

use super::*;
use crate::{
    chunks::{CHUNK_HEAD, ChunkHead, FILE_HEAD},
    contexts::CONTEXTS_DATA,
    error::Result,
};

const NODES: u32 = 1_000_000;
const PID: Pid = Pid::new(7);

fn block(node: u32, start: u32) -> CallEvent {
    CallEvent::Block {
        node: NodeId(node),
        start: CodeUnits::new(start),
    }
}

fn enter(node: u32) -> CallEvent {
    CallEvent::Enter(NodeId(node))
}

/// Makes a folder with contexts.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(CONTEXTS_DATA), "contexts").unwrap();
    dir
}

fn writer(dir: &Path) -> CallOrderWriter {
    let path = dir.join(CALL_ORDER_DATA);
    let file = fs::File::create(&path).unwrap();
    CallOrderWriter::create(path, file, ContextsKey::of(dir, NODES).unwrap()).unwrap()
}

/// Writes threads with these ids, events, and reasons why they are incomplete.
fn write(dir: &Path, threads: &[(Option<Tid>, &[CallEvent], Option<&str>)]) {
    let mut writer = writer(dir);
    for (tid, events, incomplete) in threads {
        writer.start_thread(PID, *tid).unwrap();
        for event in *events {
            writer.add(*event).unwrap();
        }
        writer.end_thread(*incomplete).unwrap();
    }
    writer.finish().unwrap();
}

fn read_all(dir: &Path) -> Result<Vec<Vec<CallEvent>>> {
    let order = CallOrder::open(dir)?.unwrap();
    let threads = order.threads().iter();
    threads
        .map(|thread| order.events(thread).collect())
        .collect()
}

/// Makes an example of three threads, and returns its file.
fn example(dir: &Path) -> Vec<u8> {
    let events = [enter(0), enter(5), block(5, 77), enter(NODES - 1), enter(2)];
    let tid = Some(Tid::new(9));
    let threads = [
        (tid, &events[..], None),
        (tid, &[], Some("it was killed")),
        (None, &events[..1], None),
    ];
    write(dir, &threads);
    fs::read(dir.join(CALL_ORDER_DATA)).unwrap()
}

#[test]
fn threads_have_their_events() {
    let dir = folder();
    assert!(CallOrder::open(dir.path()).unwrap().is_none());
    example(dir.path());
    let order = CallOrder::open(dir.path()).unwrap().unwrap();
    let threads = order.threads().iter();
    let threads: Vec<_> = threads
        .map(|it| (it.pid, it.tid, it.events, it.incomplete.as_deref()))
        .collect();
    let tid = Some(Tid::new(9));
    let expected = [
        (PID, tid, 5, None),
        (PID, tid, 0, Some("it was killed")),
        (PID, None, 1, None),
    ];
    assert_eq!(threads, expected);
    let events = read_all(dir.path()).unwrap();
    assert_eq!(events[0][2..4], [block(5, 77), enter(NODES - 1)]);
    assert_eq!(events[2], [enter(0)]);
}

#[test]
fn many_events_take_several_chunks_and_little_room() {
    let dir = folder();
    let events: Vec<_> = (0..500_000_u32)
        .flat_map(|call| [enter(call % 100 * 1000), block(call % 100 * 1000, 70_000)])
        .collect();
    write(dir.path(), &[(None, &events, None)]);
    assert!(read_all(dir.path()).unwrap() == [events]);
    let length = fs::metadata(dir.path().join(CALL_ORDER_DATA))
        .unwrap()
        .len();
    assert!(length < 30_000, "{length}");
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error() {
    let dir = folder();
    let bytes = example(dir.path());
    for cut in 0..bytes.len() {
        fs::write(dir.path().join(CALL_ORDER_DATA), &bytes[..cut]).unwrap();
        let error = CallOrder::open(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(CALL_ORDER_DATA)
                && (error.contains("ends within") || error.contains("cut")),
            "{error}"
        );
    }
}

#[test]
fn a_byte_that_has_changed_is_noticed() {
    let dir = folder();
    let bytes = example(dir.path());
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            fs::write(dir.path().join(CALL_ORDER_DATA), damaged).unwrap();
            assert!(CallOrder::open(dir.path()).is_err(), "{at}");
        }
    }
}

#[test]
fn another_sessions_order_is_an_error() {
    let dir = folder();
    example(dir.path());
    fs::write(dir.path().join(CONTEXTS_DATA), "conteXts").unwrap();
    let error = read_all(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("it is not of the contexts.data beside it"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_added_is_refused() {
    let dir = folder();
    let mut writer = writer(dir.path());
    let refused = |result: Result<()>, reason: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(writer.add(enter(0)), "no thread was started");
    refused(writer.end_thread(None), "none was started");
    writer.start_thread(PID, None).unwrap();
    refused(writer.start_thread(PID, None), "has not ended");
    refused(writer.add(enter(NODES)), "its node was not added");
    refused(writer.finish(), "has not ended");
}

/// Replaces the payload of the first chunk of a kind, and its checksum.
fn with_payload(bytes: &[u8], kind: format::ChunkKind, payload: &[u8]) -> Vec<u8> {
    let mut at = FILE_HEAD;
    while bytes[at] != kind as u8 {
        let head = ChunkHead::from_bytes(*bytes[at..].first_chunk().unwrap());
        at += CHUNK_HEAD + head.length as usize;
    }
    let head = ChunkHead::from_bytes(*bytes[at..].first_chunk().unwrap());
    let mut changed = bytes[..at].to_vec();
    kind.put(&mut changed, payload);
    changed.extend(&bytes[at + CHUNK_HEAD + head.length as usize..]);
    changed
}

#[test]
fn hostile_chunks_are_errors() {
    use format::ChunkKind as Kind;
    let dir = folder();
    let bytes = example(dir.path());
    // Stored blocks of deflate: the last one, its length and the complement of that.
    let stored = |count: u8, raw: &[u8]| {
        let length = u16::try_from(raw.len()).unwrap();
        let (length, inverse) = (length.to_le_bytes(), (!length).to_le_bytes());
        [&[count, 1][..], &length, &inverse, raw].concat()
    };
    let mut huge = vec![5];
    let mut encoder = flate2::write::DeflateEncoder::new(&mut huge, flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &vec![0; format::MAX_EVENTS + 1]).unwrap();
    encoder.finish().unwrap();
    let cases = [
        (
            Kind::Events,
            stored(5, &[0; 4]),
            "ends within one of its records",
        ),
        (
            Kind::Events,
            stored(5, &[0; 6]),
            "other events than it says",
        ),
        (
            Kind::Events,
            stored(5, &[0, 0, 2, 0, 0]),
            "node that is not there",
        ),
        (
            Kind::Events,
            stored(4, &[0; 4]),
            "as many events as its end",
        ),
        (Kind::Events, vec![5, 7, 7], "cannot be decompressed"),
        (Kind::Events, huge, "cannot be decompressed"),
        (Kind::ThreadEnd, vec![5, 2], "unknown kind"),
        (Kind::ThreadEnd, vec![4, 0], "as many events as its end"),
        (Kind::End, vec![2], "as many threads as its end"),
        (Kind::Thread, vec![7], "ends within one of its records"),
        (
            Kind::Contexts,
            vec![8, 1, 1],
            "not of the contexts.data beside it",
        ),
    ];
    for (kind, payload, reason) in cases {
        let changed = with_payload(&bytes, kind, &payload);
        fs::write(dir.path().join(CALL_ORDER_DATA), changed).unwrap();
        // The difference -1 from node 0 is `2`.
        let error = read_all(dir.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error} is not {reason}");
    }
}

proptest! {
    #[test]
    fn events_come_back(events in vec((0..NODES, proptest::option::of(any::<u32>())), 0..300)) {
        let events: Vec<_> = events
            .into_iter()
            .map(|(node, start)| start.map_or(enter(node), |start| block(node, start)))
            .collect();
        let dir = folder();
        write(dir.path(), &[(None, &events, None)]);
        prop_assert_eq!(read_all(dir.path()).unwrap(), vec![events]);
    }
}
