//! Reads another process's memory: by a system call, or from bytes that a test has made.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use crate::TunnelError;
use varid_model::Pid;

/// Memory that can be read by address. Every read may fail.
pub trait Memory {
    /// Fills `out` with the bytes at `address`. An error if not all of them can be read.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError>;

    /// Fills each of these buffers. Returns for each whether all of it could be read.
    fn read_each(&self, parts: &mut [MemoryPart<'_>]) -> Vec<bool> {
        let read = |part: &mut MemoryPart<'_>| self.read(part.address, part.out).is_ok();
        parts.iter_mut().map(read).collect()
    }

    /// The 32-bit number at `address`.
    fn read_u32(&self, address: u64) -> Result<u32, TunnelError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The number of `size` bytes (4 or 8) at `address`.
    fn read_word(&self, address: u64, size: u8) -> Result<u64, TunnelError> {
        if size == 4 {
            return self.read_u32(address).map(u64::from);
        }
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Bytes that are read together with others.
#[derive(Debug)]
pub struct MemoryPart<'o> {
    /// The first address.
    pub address: u64,
    /// What is filled.
    pub out: &'o mut [u8],
}

/// The most parts that the kernel reads at once: `UIO_MAXIOV`.
const MAX_PARTS: usize = 1 << 10;

/// The memory of a live process. It is not mapped here: if the process truncates its files or exits, reads fail and do not fault.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory {
    pid: Pid,
}

impl ProcessMemory {
    /// The process with this pid. Reading needs the permission to trace it.
    pub fn new(pid: Pid) -> Self {
        Self { pid }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let len = out.len();
        let failed = |reason: String| TunnelError::Read {
            address,
            len,
            reason: format!("process {}: {reason}", self.pid),
        };
        let pid = i32::try_from(self.pid.get()).map_err(|_| failed("no such pid".into()))?;
        let base = usize::try_from(address).map_err(|_| failed("no such address".into()))?;
        let remote = [RemoteIoVec { base, len }];
        match process_vm_readv(
            nix::unistd::Pid::from_raw(pid),
            &mut [IoSliceMut::new(out)],
            &remote,
        ) {
            Ok(read) if read == len => Ok(()),
            Ok(read) => Err(failed(format!("only {read} bytes are there"))),
            Err(errno) => Err(failed(errno.desc().into())),
        }
    }

    /// The kernel reads the parts in order, up to the first one that is not there.
    fn read_each(&self, parts: &mut [MemoryPart<'_>]) -> Vec<bool> {
        let mut outcomes = Vec::with_capacity(parts.len());
        while let Some(rest) = parts.get_mut(outcomes.len()..)
            && !rest.is_empty()
        {
            let most = rest.len().min(MAX_PARTS);
            let rest = rest.get_mut(..most).unwrap_or_default();
            let Ok(read) = self.read_in_order(rest) else {
                break;
            };
            let ends = rest.iter().scan(0_usize, |end, part| {
                *end = end.saturating_add(part.out.len());
                Some(*end)
            });
            let whole = ends.take_while(|end| *end <= read).count();
            outcomes.extend(std::iter::repeat_n(true, whole));
            if whole < most {
                outcomes.push(false);
            }
        }
        outcomes.resize(parts.len(), false);
        outcomes
    }
}

impl ProcessMemory {
    /// Fills the buffers one after the other until one cannot be filled. Returns the number of bytes that were read. An error if the process cannot
    /// be read at all.
    fn read_in_order(&self, parts: &mut [MemoryPart<'_>]) -> nix::Result<usize> {
        let pid = i32::try_from(self.pid.get()).map_err(|_| Errno::ESRCH)?;
        let remote: Vec<_> = parts
            .iter()
            .map(|part| RemoteIoVec {
                // Nothing is mapped at the last address.
                base: usize::try_from(part.address).unwrap_or(usize::MAX),
                len: part.out.len(),
            })
            .collect();
        let mut local: Vec<_> = parts
            .iter_mut()
            .map(|part| IoSliceMut::new(part.out))
            .collect();
        match process_vm_readv(nix::unistd::Pid::from_raw(pid), &mut local, &remote) {
            Err(Errno::EFAULT) => Ok(0),
            other => other,
        }
    }
}

/// Bytes that represent the memory from `start` on.
#[derive(Debug, Clone, Copy)]
pub struct ByteMemory<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// The contents.
    pub bytes: &'a [u8],
}

impl Memory for ByteMemory<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let found = address
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| self.bytes.get(at..at.checked_add(out.len())?));
        match found {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(TunnelError::Read {
                address,
                len: out.len(),
                reason: "outside of the bytes given".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the bytes at each of these addresses.
    fn read_bytes(pid: Pid, addresses: &[u64]) -> (Vec<bool>, Vec<u8>) {
        let mut bytes = vec![0; addresses.len()];
        let mut parts: Vec<_> = addresses
            .iter()
            .zip(bytes.chunks_mut(1))
            .map(|(address, out)| MemoryPart {
                address: *address,
                out,
            })
            .collect();
        let outcomes = ProcessMemory::new(pid).read_each(&mut parts);
        (outcomes, bytes)
    }

    #[test]
    fn a_part_that_is_not_there_hides_no_other_one() {
        let own = Pid::new(std::process::id());
        let there: Vec<u8> = (1..=255).cycle().take(2 * MAX_PARTS + 5).collect();
        let address = |at: usize| there.as_ptr().addr() as u64 + at as u64;
        let missing = |at: usize| at % 700 == 3 || at == MAX_PARTS;
        let addresses: Vec<_> = (0..there.len())
            .map(|at| match missing(at) {
                true => 8,
                false => address(at),
            })
            .collect();
        let (outcomes, bytes) = read_bytes(own, &addresses);
        for (at, byte) in there.iter().enumerate() {
            let expected = if missing(at) { 0 } else { *byte };
            assert_eq!((outcomes[at], bytes[at]), (!missing(at), expected), "{at}");
        }
        assert_eq!(read_bytes(own, &[]).0, []);
    }

    #[test]
    fn nothing_of_a_process_that_is_not_there_is_read() {
        let no_process = Pid::new(u32::MAX >> 1);
        assert_eq!(read_bytes(no_process, &[8, 16]).0, [false, false]);
    }
}
