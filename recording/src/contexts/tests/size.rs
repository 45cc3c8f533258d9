//! Tests how much disk space contexts take.

use super::*;
use varid_model::{CodeUnits, Pid};

/// Reproducible pseudo-random numbers (the upper half of a 64-bit LCG).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn size(dir: &Path) -> u64 {
    dir.join(CONTEXTS_DATA).metadata().unwrap().len()
}

/// Writes a tree like that of a VM: methods of 10 to 200 code units, each with six sites. Calls and returns are random,
/// at most 60 deep. Three of four calls go to a nearby method.
#[test]
fn a_node_takes_less_than_ten_bytes() {
    const METHODS: u64 = 10_000;
    const SITES: u64 = 6;
    const NODES: u64 = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 2);
    let mut numbers = Numbers(1);
    let pid = Pid::new(1234);
    writer.add_process(pid, "ART 14").unwrap();
    let mut address = 0x7f12_3456_7890;
    let methods: Vec<(u64, MethodId)> = (0..METHODS)
        .map(|_| {
            let units = 10 + numbers.below(190);
            address += 32 + 2 * units;
            let method = ContextMethod {
                pid,
                address: Address::new(address),
                code: Some(CodeUnits::new(units as u32)),
            };
            (address, writer.add_method(&method).unwrap())
        })
        .collect();
    for (_, method) in &methods {
        for site in 0..SITES {
            let site = ContextSite {
                method: *method,
                pc: CodeUnits::new(3 * site as u32),
                opcode: 0x6e,
                target: Some(SiteTarget::Method(*method)),
            };
            writer.add_site(&site).unwrap();
        }
    }
    writer.flush().unwrap();
    let before = size(dir.path());
    let mut stack = vec![(writer.add_node(&root(pid, methods[0].0)).unwrap(), 0)];
    let mut time = 5;
    for number in 1..NODES {
        while stack.len() > 60 || (stack.len() > 1 && numbers.below(2) == 0) {
            stack.pop();
        }
        let (parent, caller) = stack[stack.len() - 1];
        // Most calls are local because the methods of a class are adjacent.
        let callee = match numbers.below(4) {
            0 => numbers.below(METHODS),
            _ => (caller + numbers.below(40)) % METHODS,
        };
        // Counts are read ten times in all.
        time += u64::from(number % (NODES / 10) == 0) * 5_000_000_000;
        let node = ContextNode {
            parent: Some(parent),
            site: Some(SiteId((caller * SITES + numbers.below(SITES)) as u32)),
            time: MonotonicNs::new(time),
            ..root(pid, methods[callee as usize].0)
        };
        stack.push((writer.add_node(&node).unwrap(), callee));
    }
    writer.flush().unwrap();
    let nodes = (size(dir.path()) - before) as f64 / NODES as f64;
    let before = size(dir.path());
    for node in 0..NODES as u32 {
        let calls = 1 << numbers.below(12);
        writer
            .set_count(NodeId(node), &count(0, None, calls))
            .unwrap();
        writer
            .set_count(NodeId(node), &count(1, None, calls * 37))
            .unwrap();
    }
    writer.flush().unwrap();
    let counts = (size(dir.path()) - before) as f64 / NODES as f64;
    println!("{nodes:.2} bytes a node, {counts:.2} bytes for two counters of it");
    assert!(nodes < 10.0, "{nodes}");
    assert!(counts < 10.0, "{counts}");
    assert_eq!(read_folder(dir.path()).nodes().len() as u64, NODES);
}

/// Writes what a session of `count-calls` writes.
#[test]
fn only_counts_that_change_are_written_again() {
    const METHODS: u32 = 5_000;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 3);
    let pid = Pid::new(1234);
    writer.add_process(pid, "ART 14").unwrap();
    for method in 0..METHODS {
        let address = 0x7f12_3456_7890 + u64::from(method) * 83 % 100_000;
        let node = writer.add_node(&root(pid, address)).unwrap();
        for counter in 0..2 {
            writer.set_count(node, &count(counter, None, 1000)).unwrap();
        }
    }
    writer.flush().unwrap();
    let flat = size(dir.path());
    println!(
        "{:.2} bytes a method with two counts",
        flat as f64 / f64::from(METHODS)
    );
    assert!(flat < u64::from(METHODS) * 16, "{flat}");
    writer.set_count(NodeId(70), &count(0, None, 1001)).unwrap();
    writer.flush().unwrap();
    let changed = size(dir.path()) - flat;
    println!("{changed} bytes for a count that has changed");
    assert!(changed < 20, "{changed}");
}
