//! Tests that contexts are read as they were written, also after a kill, a full disk or damage.

mod damage;
mod model;
mod size;
mod writing;

use std::{fs::File, path::Path};

use varid_model::{Address, MonotonicNs, Pid};

use super::*;

/// Starts the contexts in a folder, with this number of counters.
fn writer(dir: &Path, counters: u32) -> ContextWriter {
    let counters: Vec<_> = (0..counters)
        .map(|number| ContextCounter {
            name: format!("counter {number}"),
            unit: "bytecodes".into(),
        })
        .collect();
    let path = dir.join(CONTEXTS_DATA);
    let file = File::create(&path).unwrap();
    ContextWriter::create(path, file, &counters).unwrap()
}

fn read_folder(dir: &Path) -> Contexts {
    reader::read(dir).unwrap().unwrap()
}

/// Makes a root of a process's tree over all threads.
fn root(pid: Pid, address: u64) -> ContextNode {
    ContextNode {
        pid,
        tid: None,
        parent: None,
        address: Address::new(address),
        site: None,
        time: MonotonicNs::new(5),
    }
}

fn count(counter: u32, place: Option<u32>, value: u64) -> ContextCount {
    ContextCount {
        counter: CounterId(counter),
        place,
        value,
    }
}
