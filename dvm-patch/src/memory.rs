//! Reads another process's memory: by a system call, or from bytes that a test has made.

use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use crate::TunnelError;
use varid_model::Pid;

/// Memory that can be read by address. Every read may fail.
pub trait Memory {
    /// Fills `out` with the bytes at `address`. An error if not all of them can be read.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError>;

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
