//! Reads the number of calls of each method of a VM. The VM counts in a file that can be read after the process has ended.

use std::fs::File;
use std::mem::size_of;
use std::os::unix::fs::FileExt;

use crate::abi::{self, CALLS_ENTRIES, CALLS_MAGIC, CALLS_VERSION, Call, MAX_CALLS, VmFile};
use crate::bytes::Fields;
use crate::{TunnelError, file};
use varid_model::Pid;

/// The file in which a VM counts calls.
#[derive(Debug)]
pub struct CallsFile {
    file: File,
    pid: Pid,
}

/// The counts of a VM at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The session whose order has reset the counts. 0: they have not been reset since the VM's start.
    pub session: u64,
    /// The methods that were called. Entry i is that of remapped address `abi::REMAP_FIRST` + i.
    pub calls: Vec<Call>,
    /// Events of methods without an entry, for lack of space.
    pub uncounted: u64,
    /// Events that could not be written to the log.
    pub unlogged: u64,
    /// Orders that the VM could not read or carry out.
    pub refused: u32,
}

impl CallsFile {
    /// Opens the file of a process that its tunnel names.
    pub fn open(pid: Pid, calls: &VmFile) -> Result<Self, TunnelError> {
        Ok(Self::of(file::open(pid, calls, file::Kind::Calls)?, pid))
    }

    /// The calls of a process, in a file that was opened by [`file::open`].
    pub fn of(file: File, pid: Pid) -> Self {
        Self { file, pid }
    }

    /// Reads the counts.
    pub fn read(&self) -> Result<Counted, TunnelError> {
        let failed = |reason: String| TunnelError::File {
            pid: self.pid,
            name: abi::CALLS_NAME,
            reason,
        };
        let read = |bytes: &mut [u8], at| {
            self.file
                .read_exact_at(bytes, at)
                .map_err(|error| failed(error.to_string()))
        };
        let mut head = [0; size_of::<abi::CallsHeader>()];
        read(&mut head, 0)?;
        let head = parse_head(&head);
        if head.magic != CALLS_MAGIC
            || head.version != CALLS_VERSION
            || head.entry_size as usize != size_of::<Call>()
            || head.count > head.capacity
            || head.capacity > MAX_CALLS
        {
            return Err(failed(format!("its header is not valid: {head:x?}")));
        }
        // At most 4 MB, and not more than the file contains.
        let len = (head.count as usize).saturating_mul(size_of::<Call>());
        let held = self.file.metadata();
        let held = held.map_err(|error| failed(error.to_string()))?.len();
        if held.saturating_sub(CALLS_ENTRIES) < len as u64 {
            let count = head.count;
            return Err(failed(format!("{count} entries in {held} bytes")));
        }
        let mut entries = vec![0; len];
        read(&mut entries, CALLS_ENTRIES)?;
        Ok(Counted {
            session: head.session,
            calls: entries
                .chunks_exact(size_of::<Call>())
                .map(parse_call)
                .collect(),
            uncounted: head.uncounted,
            unlogged: head.unlogged,
            refused: head.refused,
        })
    }
}

fn parse_head(bytes: &[u8]) -> abi::CallsHeader {
    let mut fields = Fields::new(bytes);
    abi::CallsHeader {
        magic: fields.take(),
        version: fields.u32(),
        entry_size: fields.u32(),
        capacity: fields.u32(),
        count: fields.u32(),
        session: fields.u64(),
        uncounted: fields.u64(),
        unlogged: fields.u64(),
        refused: fields.u32(),
        reserved: fields.u32(),
    }
}

fn parse_call(bytes: &[u8]) -> Call {
    let mut fields = Fields::new(bytes);
    Call {
        method: fields.u64(),
        insns: fields.u64(),
        dex: fields.u64(),
        index: fields.u32(),
        flags: fields.u32(),
        invokes: fields.u64(),
        returns: fields.u64(),
        unwinds: fields.u64(),
        reserved: fields.u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8]) -> Result<Counted, TunnelError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let pid = Pid::new(1);
        CallsFile { file, pid }.read()
    }

    fn calls(count: u32) -> Vec<u8> {
        let mut bytes = CALLS_MAGIC.to_vec();
        for word in [CALLS_VERSION, 64, MAX_CALLS, count] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for word in [7u64, 8, 9, 10] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.resize(CALLS_ENTRIES as usize, 0);
        for entry in 0..u64::from(count) {
            for field in 0..8 {
                bytes.extend_from_slice(&(entry * 8 + field).to_le_bytes());
            }
        }
        bytes
    }

    #[test]
    fn entries_are_read_in_order() {
        let counted = read(&calls(3)).unwrap();
        assert_eq!((counted.session, counted.uncounted), (7, 8));
        assert_eq!((counted.unlogged, counted.refused), (9, 10));
        let invokes: Vec<u64> = counted.calls.iter().map(|call| call.invokes).collect();
        assert_eq!(invokes, [4, 12, 20]);
        assert_eq!(counted.calls[2].method, 16);
    }

    #[test]
    fn lies_about_sizes_are_refused() {
        let whole = calls(2);
        for len in 0..whole.len() {
            assert!(read(&whole[..len]).is_err(), "{len} bytes");
        }
        for (at, lie) in [
            (0, 0u32),
            (8, 2),
            (12, 65),
            (16, MAX_CALLS + 1),
            (20, MAX_CALLS),
            (20, u32::MAX),
        ] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            assert!(read(&bytes).is_err(), "{at}: {lie:#x}");
        }
    }
}
