//! How does a fuzz target get a file that is mapped in a process, as a VM's are that varid opens? In its own.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use varid_tunnel::abi::VmFile;

/// Inputs are no longer.
const SIZE: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// A nameless file, mapped, with contents that change.
pub struct MappedFile {
    file: File,
    address: u64,
}

impl MappedFile {
    /// An empty one, as the memory map calls it.
    pub fn new(name: &str) -> Self {
        let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC).expect("a memfd"));
        // SAFETY: a new mapping, that nothing reads through.
        let mapped = unsafe {
            mmap(
                None,
                SIZE,
                ProtFlags::PROT_READ,
                MapFlags::MAP_SHARED,
                &file,
                0,
            )
        };
        let address = mapped.expect("a mapping").addr().get() as u64;
        Self { file, address }
    }

    /// Replaces what is in it; returns where a tunnel would say that it is.
    pub fn hold(&self, bytes: &[u8]) -> VmFile {
        let len = bytes.len() as u64;
        self.file.set_len(len).expect("room for the file");
        self.file.write_all_at(bytes, 0).expect("room for the file");
        VmFile {
            address: self.address,
            size: len.min(SIZE.get() as u64),
            fd: self.file.as_raw_fd() as u32,
            reserved: 0,
        }
    }

    /// What is in it.
    pub fn bytes(&self) -> Vec<u8> {
        let len = self.file.metadata().expect("its length").len();
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, 0).expect("its bytes");
        bytes
    }
}
