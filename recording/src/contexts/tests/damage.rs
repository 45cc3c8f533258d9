//! Tests that a cut or damaged file has everything before the damage, and reports it.

use super::kind::ChunkKind;
use super::*;
use crate::chunks::{CHUNK_HEAD, ChunkHead, FILE_HEAD};
use crate::error::Error;
use varid_model::{CodeUnits, Tid};

/// Makes a file with chunks of every kind, several of most.
fn example() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 2);
    for pid in [7, 8].map(Pid::new) {
        writer.add_process(pid, "ART 14").unwrap();
        for part in 0..3 {
            let mut node = root(pid, 0x1000 + part);
            let method = ContextMethod {
                pid,
                address: node.address,
                code: Some(CodeUnits::new(9)),
            };
            let site = ContextSite {
                method: writer.add_method(&method).unwrap(),
                pc: CodeUnits::new(3),
                opcode: 0x6e,
                target: Some(SiteTarget::Name("draw()V".into())),
            };
            let site = writer.add_site(&site).unwrap();
            let caller = writer.add_node(&node).unwrap();
            (node.parent, node.site) = (Some(caller), Some(site));
            writer.add_node(&node).unwrap();
            writer.set_count(caller, &count(1, Some(2), 300)).unwrap();
            writer.flush().unwrap();
        }
        let switch = ThreadSwitch {
            time: MonotonicNs::new(9),
            from: Tid::new(1),
            to: Tid::new(2),
        };
        writer.add_switch(&switch).unwrap();
        let compression = TraceCompression::Plain;
        writer.add_trace(pid, None, compression, b"trace").unwrap();
        writer.end_process(pid, Some("it was killed")).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(dir.path().join(CONTEXTS_DATA)).unwrap()
}

fn read_bytes(bytes: &[u8]) -> crate::Result<Contexts> {
    read_in(tempfile::tempdir().unwrap().path(), bytes)
}

fn read_in(dir: &Path, bytes: &[u8]) -> crate::Result<Contexts> {
    std::fs::write(dir.join(CONTEXTS_DATA), bytes).unwrap();
    reader::read(dir).map(Option::unwrap)
}

/// Returns the offsets of the chunks' ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![FILE_HEAD];
    while let Some(head) = bytes[ends[ends.len() - 1]..].first_chunk() {
        let length = ChunkHead::from_bytes(*head).length as usize;
        ends.push(ends[ends.len() - 1] + CHUNK_HEAD + length);
    }
    ends
}

/// Asserts that the part is a prefix of the whole.
fn assert_prefix(part: &Contexts, all: &Contexts) {
    assert!(all.counters().starts_with(part.counters()));
    assert!(all.methods().starts_with(part.methods()));
    assert!(all.sites().starts_with(part.sites()));
    assert!(all.nodes().starts_with(part.nodes()));
    assert!(all.switches().starts_with(part.switches()));
    assert!(all.traces().starts_with(part.traces()));
    assert!(part.processes().len() <= all.processes().len());
    for node in part.node_ids() {
        let counts = part.counts(node);
        assert!(counts.is_empty() || counts == all.counts(node));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_has_what_comes_before() {
    let bytes = example();
    let all = read_bytes(&bytes).unwrap();
    assert_eq!((all.damage(), all.nodes().len()), (None, 12));
    let ends = ends(&bytes);
    assert_eq!(ends.last(), Some(&bytes.len()));
    let (mut nodes, mut complete) = (0, 0);
    let dir = tempfile::tempdir().unwrap();
    for cut in 0..bytes.len() {
        let part = read_in(dir.path(), &bytes[..cut]).unwrap();
        assert_prefix(&part, &all);
        assert!(part.nodes().len() >= nodes, "cut at {cut}");
        nodes = part.nodes().len();
        // At the end of a chunk, only the missing ends of processes show the cut.
        let is_whole = ends[1..].contains(&cut);
        assert_eq!(part.damage().is_none(), is_whole, "cut at {cut}");
        let at = ends.iter().rev().find(|end| **end <= cut);
        if let (Some(damage), Some(at)) = (part.damage(), at.filter(|at| **at > FILE_HEAD)) {
            assert!(damage.contains(&format!("offset {at:#x}")), "{damage}");
        }
        complete += usize::from(is_whole);
        let is_open =
            |process: &ContextProcess| process.incomplete.as_deref() != Some("it was killed");
        let has_end = !part.processes().is_empty() && !part.processes().iter().any(is_open);
        assert!(!has_end || part.nodes().len() == 6 * part.processes().len());
    }
    assert_eq!(complete, ends.len() - 2);
}

#[test]
fn a_byte_that_has_changed_is_noticed() {
    let bytes = example();
    let all = read_bytes(&bytes).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            match read_in(dir.path(), &damaged) {
                Ok(part) => {
                    assert!(at >= FILE_HEAD && part.damage().is_some(), "byte {at}");
                    assert_prefix(&part, &all);
                }
                Err(_) => assert!(at < FILE_HEAD, "byte {at}"),
            }
        }
    }
}

#[test]
fn another_file_and_another_version_are_errors() {
    let mut bytes = example();
    bytes[8] = 2;
    let error = read_bytes(&bytes).unwrap_err();
    let expected = matches!(
        error,
        Error::Version {
            found: 2,
            known: 1,
            ..
        }
    );
    assert!(expected, "{error}");
    for bytes in [&b"PERFILE2 and more"[..], b"VARIDCTY", b"x"] {
        let error = read_bytes(bytes).unwrap_err();
        assert!(error.to_string().contains("not a contexts.data"), "{error}");
    }
}

/// Reads a file with a process, a method and a node, followed by one more chunk.
fn followed_by(kind: u8, payload: &[u8]) -> Contexts {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 1);
    let pid = Pid::new(7);
    writer.add_process(pid, "").unwrap();
    writer.add_node(&root(pid, 1)).unwrap();
    writer.finish().unwrap();
    let mut bytes = std::fs::read(dir.path().join(CONTEXTS_DATA)).unwrap();
    let start = bytes.len();
    ChunkKind::Nodes.put(&mut bytes, payload);
    // The chunk may have any kind, with a valid checksum.
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind]);
    sum.update(&bytes[start + 1..start + 5]);
    sum.update(payload);
    bytes[start] = kind;
    bytes[start + 5..start + 9].copy_from_slice(&sum.finalize().to_le_bytes());
    read_bytes(&bytes).unwrap()
}

#[test]
fn what_a_chunk_names_must_be_there() {
    for (kind, payload, reason) in [
        (ChunkKind::Counters, &[0, 0][..], "second list"),
        (ChunkKind::Process, &[5], "ends within one of its records"),
        (ChunkKind::Process, &[5, 1, 0xff], "not UTF-8"),
        (
            ChunkKind::Methods,
            &[2, 0, 0],
            "a process that is not there",
        ),
        (ChunkKind::Methods, &[1, 0, 0], "above 32 bits"),
        (
            ChunkKind::Sites,
            &[2, 0, 0, 0],
            "a method that is not there",
        ),
        (
            ChunkKind::Sites,
            &[0, 0, 0, 2, 1],
            "a method that is not there",
        ),
        (ChunkKind::Sites, &[0, 0, 0, 3], "unknown kind"),
        (ChunkKind::Nodes, &[16, 0], "unknown flags"),
        (ChunkKind::Nodes, &[8, 5, 2], "a method that is not there"),
        (ChunkKind::Nodes, &[10, 0, 5, 0], "not before it"),
        (ChunkKind::Nodes, &[10, 2, 5, 0], "not before it"),
        (
            ChunkKind::Nodes,
            &[12, 0, 5, 0],
            "a call site that is not there",
        ),
        (ChunkKind::Nodes, &[8, 4, 0], "before the time"),
        (ChunkKind::Counts, &[2, 2, 1], "a node that is not there"),
        (ChunkKind::Counts, &[4, 1], "a counter that is not there"),
        (ChunkKind::Counts, &[0], "ends within one of its records"),
        (ChunkKind::Switches, &[0, 1, 0], "above 32 bits"),
        (ChunkKind::Trace, &[1, 0, 0], "a process that is not there"),
        (ChunkKind::Trace, &[0, 0, 2], "unknown compression"),
        (
            ChunkKind::ProcessEnd,
            &[1, 0],
            "a process that is not there",
        ),
        (ChunkKind::ProcessEnd, &[0, 2], "unknown kind"),
    ] {
        let found = followed_by(kind as u8, payload);
        let damage = found.damage().unwrap_or_default();
        assert!(damage.contains(reason), "{kind:?} {payload:?}: {damage:?}");
        assert_eq!(found.nodes().len(), 1);
    }
}

#[test]
fn what_comes_before_an_error_in_a_chunk_is_kept() {
    let found = followed_by(ChunkKind::Nodes as u8, &[8, 5, 0, 8, 5, 2]);
    assert!(found.damage().is_some());
    assert_eq!(found.nodes().len(), 2);
}

#[test]
fn chunks_of_later_versions_are_skipped() {
    for kind in [0, 10, 255] {
        let found = followed_by(kind, b"anything");
        assert_eq!((found.damage(), found.nodes().len()), (None, 1));
    }
}
