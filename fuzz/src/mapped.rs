//! Maps a file into the target's own process, like the files of a VM that varid opens.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use varid_tunnel::abi::VmFile;

/// The maximum size of an input.
const SIZE: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// A memfd that is mapped. Its contents change with each input.
pub struct MappedFile {
    file: File,
    address: u64,
}

impl MappedFile {
    /// Makes an empty file with this name in the memory map.
    pub fn new(name: &str) -> Self {
        let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC).expect("a memfd"));
        // SAFETY: the mapping is new, and nothing reads through it.
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

    /// Replaces the contents. Returns the file's description as in a tunnel.
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

    /// Returns the contents.
    pub fn bytes(&self) -> Vec<u8> {
        let len = self.file.metadata().expect("its length").len();
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, 0).expect("its bytes");
        bytes
    }
}
