//! Tests that contexts.data has the counts of a VM, and that only changed counts are written again.

use super::*;
use varid_model::Rate;
use varid_recording::{
    Contexts, EventDesc, Manifest, SampleSource, SessionReader, SessionTarget, SessionWriter,
    TargetKind,
};

const PID: Pid = Pid::new(7);

fn writer(dir: &std::path::Path) -> SessionWriter {
    let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
    let target = SessionTarget {
        kind: TargetKind::All,
        value: String::new(),
    };
    let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
    SessionWriter::create(dir, manifest).unwrap()
}

/// Makes a VM that has called methods at these addresses.
fn counting(addresses: &[u64]) -> Counting {
    let mut counting = Counting::new(1, "a VM".into(), None);
    // Only the presence of the file matters.
    let file = std::fs::File::open("/dev/null").unwrap();
    counting.file = Some(CallsFile::of(file, PID));
    counting.methods = addresses
        .iter()
        .map(|address| {
            Some(NamedMethod {
                address: Address::new(*address),
                time: MonotonicNs::new(5),
                code: Some(CodeUnits::new(9)),
            })
        })
        .collect();
    counting
}

fn call(invokes: u64, returns: u64, flags: u32) -> Call {
    Call {
        invokes,
        returns,
        flags,
        ..Call::default()
    }
}

/// Returns the calls and returns of each node.
fn counts(contexts: &Contexts) -> Vec<(u64, [u64; 2])> {
    let nodes = contexts.node_ids().zip(contexts.nodes());
    nodes
        .map(|(id, node)| {
            let values = [0, 1].map(|counter| contexts.value(id, CounterId(counter)));
            (node.address.get(), values)
        })
        .collect()
}

#[test]
fn counts_that_change_are_written_until_the_process_ends() {
    let dir = tempfile::tempdir().unwrap();
    let session = writer(dir.path());
    let mut contexts = session.create_contexts(&counters()).unwrap();
    let size = || {
        let file = dir.path().join(varid_recording::CONTEXTS_DATA);
        file.metadata().unwrap().len()
    };
    let mut vm = counting(&[0x1000, 0x2000]);
    // The third method could not be named.
    vm.methods.push(None);
    vm.counted.calls = vec![call(5, 4, 0), call(2, 2, 0), call(8, 8, 0)];
    let save = |vm: &mut Counting, contexts: &mut ContextWriter| {
        vm.add_methods(PID, contexts).unwrap();
        vm.write_counts(contexts).unwrap();
        contexts.flush().unwrap();
    };
    save(&mut vm, &mut contexts);
    let before = size();
    save(&mut vm, &mut contexts);
    assert_eq!(size(), before);
    vm.counted.calls[0].invokes = 6;
    // The second method has been excluded.
    vm.counted.calls[1].flags = abi::CALL_LEFT_OUT;
    vm.end(PID, &mut contexts).unwrap();
    // The process returns to the session.
    let mut again = counting(&[0x1000]);
    again.counted.calls = vec![call(1, 1, 0)];
    again.end(PID, &mut contexts).unwrap();
    contexts.finish().unwrap();

    let session = SessionReader::open(dir.path()).unwrap();
    let contexts = session.contexts().unwrap().unwrap();
    let expected = [(0x1000, [6, 4]), (0x2000, [0, 0]), (0x1000, [1, 1])];
    assert_eq!(counts(&contexts), expected);
    let [process] = contexts.processes() else {
        panic!("{:?}", contexts.processes());
    };
    assert_eq!((process.pid, &*process.vm), (PID, "a VM"));
    let missing = process.incomplete.as_deref().unwrap();
    assert!(missing.starts_with("16 calls, returns"), "{missing}");
}

#[test]
fn a_vm_whose_counts_were_never_found_is_in_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let session = writer(dir.path());
    let mut contexts = session.create_contexts(&counters()).unwrap();
    let mut vm = Counting::new(1, "a VM".into(), None);
    vm.end(PID, &mut contexts).unwrap();
    contexts.finish().unwrap();
    let session = SessionReader::open(dir.path()).unwrap();
    let contexts = session.contexts().unwrap().unwrap();
    assert_eq!(contexts.processes(), []);
    assert_eq!(contexts.counters(), counters());
}
