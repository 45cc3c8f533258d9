//! Reads `calls.tsv`, the predecessor of contexts.data: the number of calls of each method, without callers.
//!
//! The file has a header line and then a line for each method and process. The fields are separated by tabs: process, address, time,
//! invokes, returns, unwinds.

use std::{
    io::{self, Read},
    path::Path,
};

use varid_model::{Address, MonotonicNs, Pid};

use super::{
    Contexts,
    cells::Cells,
    ids::{CounterId, MethodId, NodeId},
    limits,
    parts::{ContextCount, ContextCounter, ContextMethod, ContextNode, ContextProcess},
};
use crate::{
    calls::CALLS_TSV,
    error::{Error, Result},
    regular::open_regular,
};

/// The names of the counters, in the order of the fields.
const COUNTERS: [&str; 3] = ["calls", "returns", "unwinds"];

/// The maximum number of bytes to read, more than any session has. The rest is ignored.
const MAX_BYTES: u64 = 256 << 20;

/// A line.
struct Line {
    pid: Pid,
    address: Address,
    time: MonotonicNs,
    values: [u64; COUNTERS.len()],
}

/// Reads the counts of a session as nodes without parents, by time. Reading ends at the first invalid line. None if
/// there is no such file.
pub fn read(dir: &Path) -> Result<Option<Contexts>> {
    let path = dir.join(CALLS_TSV);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", &*path))?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut lines, mut damage) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate().skip(1) {
        let Some(line) = parse(line).filter(|_| lines.len() < limits::NODES) else {
            let number = index.saturating_add(1);
            damage = Some(format!("{}, line {number}: not a count", path.display()));
            break;
        };
        lines.push(line);
    }
    lines.sort_by_key(|line| line.time);
    Ok(Some(contexts(&lines, damage)))
}

fn parse(line: &str) -> Option<Line> {
    let mut fields = line.split('\t');
    let pid = Pid::new(fields.next()?.parse().ok()?);
    let address = fields.next()?.strip_prefix("0x")?;
    let address = Address::new(u64::from_str_radix(address, 16).ok()?);
    let mut number = || fields.next()?.parse().ok();
    let line = Line {
        pid,
        address,
        time: MonotonicNs::new(number()?),
        values: [number()?, number()?, number()?],
    };
    fields.next().is_none().then_some(line)
}

fn contexts(lines: &[Line], damage: Option<String>) -> Contexts {
    let mut contexts = Contexts {
        counters: COUNTERS.map(counter).to_vec(),
        damage,
        ..Contexts::default()
    };
    let mut cells = Cells::default();
    let mut processes = std::collections::HashSet::new();
    for line in lines {
        let (pid, address) = (line.pid, line.address);
        if processes.insert(pid) {
            contexts.processes.push(ContextProcess {
                pid,
                vm: String::new(),
                incomplete: None,
            });
        }
        let place = contexts.nodes.len();
        contexts.methods.push(ContextMethod {
            pid,
            address,
            code: None,
        });
        contexts.node_methods.push(MethodId::at(place));
        contexts.nodes.push(ContextNode {
            pid,
            tid: None,
            parent: None,
            address,
            site: None,
            time: line.time,
        });
        for (counter, value) in line.values.into_iter().enumerate() {
            let count = ContextCount {
                counter: CounterId::at(counter),
                place: None,
                value,
            };
            // The limit of lines is below that of cells.
            let _ = cells.set(NodeId::at(place), count);
        }
    }
    contexts.counts = cells.finish(contexts.nodes.len());
    contexts
}

fn counter(name: &str) -> ContextCounter {
    ContextCounter {
        name: name.to_owned(),
        unit: "calls".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "pid\taddress\ttime_ns\tinvokes\treturns\tunwinds";

    fn read_text(text: &str) -> Contexts {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(CALLS_TSV), text).unwrap();
        read(dir.path()).unwrap().unwrap()
    }

    #[test]
    fn counts_of_old_sessions_are_nodes_without_parents_by_time() {
        let max = u64::MAX;
        let text = format!(
            "{HEADER}\n7\t0x7f0000001234\t99\t{max}\t3\t0\n4294967295\t0x0\t5\t1\t0\t1\n7\t0x10\t99\t0\t0\t0\n"
        );
        let contexts = read_text(&text);
        let names = contexts.counters().iter().map(|counter| &*counter.name);
        assert_eq!(names.collect::<Vec<_>>(), COUNTERS);
        let pids = contexts.processes().iter().map(|process| process.pid);
        assert_eq!(pids.collect::<Vec<_>>(), [u32::MAX, 7].map(Pid::new));
        let found = contexts.node_ids().map(|id| {
            let node = *contexts.node(id).unwrap();
            assert_eq!((node.tid, node.parent, node.site), (None, None, None));
            let values = [0, 1, 2].map(|counter| contexts.value(id, CounterId(counter)));
            (node.pid.get(), node.address.get(), node.time.get(), values)
        });
        let expected = [
            (u32::MAX, 0, 5, [1, 0, 1]),
            (7, 0x7f00_0000_1234, 99, [max, 3, 0]),
            (7, 0x10, 99, [0, 0, 0]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(contexts.damage(), None);
    }

    #[test]
    fn a_line_that_is_not_a_count_is_named_and_those_before_it_are_kept() {
        for line in [
            "",
            "1",
            "1\t2\t3\t4\t5\t6",
            "1\t0x2\t3\t4\t5",
            "1\t0x2\t3\t4\t5\t6\t7",
            "1\t0x2\t3\t-4\t5\t6",
        ] {
            let good = "1\t0x2\t3\t4\t5\t6";
            let contexts = read_text(&format!("{HEADER}\n{good}\n{line}\n{good}\n"));
            assert_eq!(contexts.nodes().len(), 1);
            let damage = contexts.damage().unwrap();
            assert!(
                damage.ends_with("calls.tsv, line 3: not a count"),
                "{damage}"
            );
        }
    }

    #[test]
    fn a_pipe_in_its_place_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        let path = dir.path().join(CALLS_TSV);
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        assert!(read(dir.path()).is_err());
    }
}
