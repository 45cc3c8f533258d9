//! Tests which parts can be added, and what survives a full disk.

use super::*;
use crate::error::Error;
use std::fs::OpenOptions;
use varid_model::CodeUnits;

#[test]
fn a_part_that_names_what_was_not_added_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 2);
    let [pid, other] = [7, 8].map(Pid::new);
    let refused = |result: crate::Result<()>, reason: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Contexts { .. }), "{error}");
        let error = error.to_string();
        assert!(
            error.contains(reason) && error.contains(CONTEXTS_DATA),
            "{error}"
        );
    };
    refused(
        writer.add_node(&root(pid, 1)).map(drop),
        "process was not added",
    );
    writer.add_process(pid, "ART").unwrap();
    writer.add_process(other, "ART").unwrap();
    let node = writer.add_node(&root(pid, 1)).unwrap();
    for parent in [NodeId(1), node] {
        let child = ContextNode {
            parent: Some(parent),
            ..root(other, 1)
        };
        refused(writer.add_node(&child).map(drop), "parent was not added");
    }
    let with_site = ContextNode {
        site: Some(SiteId(0)),
        ..root(pid, 1)
    };
    refused(
        writer.add_node(&with_site).map(drop),
        "call site was not added",
    );
    let site = ContextSite {
        method: MethodId(0),
        pc: CodeUnits::new(0),
        opcode: 0,
        target: Some(SiteTarget::Method(MethodId(1))),
    };
    refused(writer.add_site(&site).map(drop), "method was not added");
    refused(
        writer.set_count(NodeId(1), &count(0, None, 1)),
        "node was not added",
    );
    refused(
        writer.set_count(node, &count(2, None, 1)),
        "no such counter",
    );
    let large = vec![0; MAX_TRACE_PART + 1];
    let compression = TraceCompression::Plain;
    refused(writer.add_trace(pid, None, compression, &large), "512 KB");
    writer
        .add_trace(pid, None, compression, &large[1..])
        .unwrap();
    writer.end_process(pid, None).unwrap();
    refused(writer.set_count(node, &count(0, None, 1)), "has ended");
    refused(writer.end_process(pid, None), "has ended");
    writer.finish().unwrap();
    let found = read_folder(dir.path());
    assert_eq!((found.nodes().len(), found.damage()), (1, None));
    assert_eq!(found.traces()[0].len() as usize, MAX_TRACE_PART);
}

#[test]
fn too_many_counters_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(CONTEXTS_DATA);
    let counters = vec![
        ContextCounter {
            name: "x".repeat(5000),
            unit: String::new()
        };
        limits::COUNTERS + 1
    ];
    let file = File::create(&path).unwrap();
    let error = ContextWriter::create(path.clone(), file, &counters).unwrap_err();
    assert!(error.to_string().contains("too many"), "{error}");
    let file = File::create(&path).unwrap();
    ContextWriter::create(path, file, &counters[1..]).unwrap();
    let found = read_folder(dir.path());
    assert_eq!(
        (found.counters().len(), found.damage()),
        (limits::COUNTERS, None)
    );
    assert_eq!(found.counters()[0].name.len(), 4096);
}

#[test]
fn a_process_that_comes_back_is_continued_and_what_it_lacked_stays_missing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 1);
    let pid = Pid::new(7);
    writer.add_process(pid, "first").unwrap();
    let first = writer.add_node(&root(pid, 1)).unwrap();
    writer.set_count(first, &count(0, None, 5)).unwrap();
    writer.end_process(pid, Some("it lacks this")).unwrap();
    writer.add_process(pid, "second").unwrap();
    let second = writer.add_node(&root(pid, 1)).unwrap();
    writer.set_count(second, &count(0, None, 3)).unwrap();
    writer.end_process(pid, None).unwrap();
    writer.finish().unwrap();
    let found = read_folder(dir.path());
    let expected = ContextProcess {
        pid,
        vm: "second".into(),
        incomplete: Some("it lacks this".into()),
    };
    assert_eq!(found.processes(), [expected]);
    let values = found.node_ids().map(|node| found.value(node, CounterId(0)));
    assert_eq!(values.collect::<Vec<_>>(), [5, 3]);
    assert_eq!(found.method_of(first), found.method_of(second));
}

#[test]
fn times_never_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 0);
    let pid = Pid::new(7);
    writer.add_process(pid, "").unwrap();
    for time in [9, 3, 11].map(MonotonicNs::new) {
        writer
            .add_node(&ContextNode {
                time,
                ..root(pid, 1)
            })
            .unwrap();
        writer.flush().unwrap();
    }
    let found = read_folder(dir.path());
    let times = found.nodes().iter().map(|node| node.time.get());
    assert_eq!(times.collect::<Vec<_>>(), [9, 9, 11]);
}

#[test]
fn a_disk_that_is_full_keeps_the_file_readable_and_the_parts_for_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 1);
    let pid = Pid::new(7);
    writer.add_process(pid, "").unwrap();
    let node = writer.add_node(&root(pid, 1)).unwrap();
    writer.flush().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let real = std::mem::replace(&mut writer.file.file, full);
    writer.set_count(node, &count(0, None, 4)).unwrap();
    for _ in 0..2 {
        let error = writer.flush().unwrap_err();
        let is_full =
            matches!(&error, Error::Append { source, .. } if source.raw_os_error() == Some(28));
        assert!(is_full, "{error}");
    }
    assert_eq!(read_folder(dir.path()).value(node, CounterId(0)), 0);
    writer.file.file = real;
    writer.set_count(node, &count(0, Some(1), 5)).unwrap();
    writer.finish().unwrap();
    let found = read_folder(dir.path());
    assert_eq!((found.value(node, CounterId(0)), found.damage()), (9, None));
}

#[test]
fn a_disk_that_stays_full_costs_bounded_memory_and_the_tree_stays_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 1);
    let pid = Pid::new(7);
    writer.add_process(pid, "").unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let real = std::mem::replace(&mut writer.file.file, full);
    let mut added = 0;
    let part = vec![7; MAX_TRACE_PART];
    let add =
        |writer: &mut ContextWriter| writer.add_trace(pid, None, TraceCompression::Plain, &part);
    while added < 100 && add(&mut writer).is_ok() {
        added += 1;
    }
    assert!((20..60).contains(&added), "{added}");
    let error = writer.add_node(&root(pid, 1)).unwrap_err();
    assert!(matches!(error, Error::Append { .. }), "{error}");
    writer.file.file = real;
    let node = writer.add_node(&root(pid, 1)).unwrap();
    assert_eq!(node, NodeId(0));
    writer.finish().unwrap();
    let found = read_folder(dir.path());
    assert_eq!((found.nodes().len(), found.damage()), (1, None));
    assert_eq!(found.traces().len(), added);
}
