//! Reads and writes the session's `calls.tsv`: how often each method was called, where calls were counted.
//!
//! The file has a header line and then a line for each method and process. The fields are separated by tabs: process, address, time,
//! invokes, returns, unwinds. The address means what it means in a sample of that process and time.

use std::{
    fmt::Write as _,
    io::{self, Read},
    path::Path,
};

use varid_model::{Address, MonotonicNs, Pid};

use crate::{
    error::{Error, Result},
    regular::open_regular,
};

/// Name of the calls inside a session folder.
pub const CALLS_TSV: &str = "calls.tsv";
/// The prefix of the logs of calls in a session folder; `.` and the process's id follow.
pub const CALLS_LOG: &str = "calls.log";

/// The name of the next [`CALLS_TSV`] while it is written.
pub(crate) const CALLS_NEW: &str = "calls.tsv.new";
const HEADER: &str = "pid\taddress\ttime_ns\tinvokes\treturns\tunwinds";
/// The most bytes that are read, more than any session has. What follows them is not read.
const MAX_BYTES: u64 = 256 << 20;

/// How often a method was called and left in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// The process.
    pub pid: Pid,
    /// The method's first instruction, or its slot in the remap range.
    pub address: Address,
    /// A time at which the address meant that method.
    pub time: MonotonicNs,
    /// Calls.
    pub invokes: u64,
    /// Returns.
    pub returns: u64,
    /// Exits by an exception.
    pub unwinds: u64,
}

/// Returns true if a session's folder may have a file of this name because of calls.
pub(crate) fn is_ours(name: &str) -> bool {
    [CALLS_TSV, CALLS_NEW].contains(&name)
        || name
            .strip_prefix(CALLS_LOG)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the content of the file with these counts.
pub(crate) fn to_text(counts: &[CallCount]) -> String {
    let mut text = format!("{HEADER}\n");
    for count in counts {
        let CallCount {
            pid,
            address,
            time,
            invokes,
            returns,
            unwinds,
        } = count;
        // Writing to a String never fails.
        let _ = writeln!(
            text,
            "{pid}\t{address:#x}\t{time}\t{invokes}\t{returns}\t{unwinds}"
        );
    }
    text
}

/// Reads the counts of a session. The list is empty if calls were not counted.
pub(crate) fn read(dir: &Path) -> Result<Vec<CallCount>> {
    let path = dir.join(CALLS_TSV);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", path.clone()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().enumerate().skip(1);
    lines
        .map(|(index, line)| {
            parse(line).ok_or_else(|| {
                let reason = format!("line {} is no count", index.saturating_add(1));
                let invalid = io::Error::new(io::ErrorKind::InvalidData, reason);
                Error::io("read", path.clone())(invalid)
            })
        })
        .collect()
}

fn parse(line: &str) -> Option<CallCount> {
    let mut fields = line.split('\t');
    let pid = Pid::new(fields.next()?.parse().ok()?);
    let address = fields.next()?.strip_prefix("0x")?;
    let address = Address::new(u64::from_str_radix(address, 16).ok()?);
    let mut number = || fields.next()?.parse().ok();
    let count = CallCount {
        pid,
        address,
        time: MonotonicNs::new(number()?),
        invokes: number()?,
        returns: number()?,
        unwinds: number()?,
    };
    fields.next().is_none().then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
        let count = |pid, address| CallCount {
            pid: Pid::new(pid),
            address: Address::new(address),
            time: MonotonicNs::new(99),
            invokes: u64::MAX,
            returns: 3,
            unwinds: 0,
        };
        let counts = [count(1, 0x7f00_0000_1234), count(u32::MAX, 0)];
        std::fs::write(dir.path().join(CALLS_TSV), to_text(&counts)).unwrap();
        assert_eq!(read(dir.path()).unwrap(), counts);
    }

    #[test]
    fn a_pipe_in_their_place_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CALLS_TSV);
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        assert!(read(dir.path()).is_err());
    }

    #[test]
    fn a_line_that_is_no_count_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for line in [
            "",
            "1",
            "1\t2\t3\t4\t5\t6",
            "1\t0x2\t3\t4\t5",
            "1\t0x2\t3\t4\t5\t6\t7",
            "1\t0x2\t3\t-4\t5\t6",
        ] {
            let good = "1\t0x2\t3\t4\t5\t6";
            let path = dir.path().join(CALLS_TSV);
            std::fs::write(&path, format!("{HEADER}\n{good}\n{line}\n")).unwrap();
            let error = read(dir.path()).unwrap_err();
            assert!(
                format!("{error:?}").contains("line 3"),
                "{line:?}: {error:?}"
            );
        }
    }

    #[test]
    fn only_calls_own_files_are_ours() {
        for (name, ours) in [
            ("calls.tsv", true),
            ("calls.log.4711", true),
            ("calls.log", false),
            ("calls.log.", false),
            ("calls.log.x", false),
        ] {
            assert_eq!(is_ours(name), ours, "{name}");
        }
    }
}
