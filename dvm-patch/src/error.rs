//! What can be wrong with a tunnel or with a VM's memory.

/// Why a VM's description of itself cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Memory of the process that should be there is not: it exits, or the address is a lie.
    #[error("cannot read {len} bytes at {address:#x}: {reason}")]
    Read {
        /// Where, in the process.
        address: u64,
        /// How many bytes were wanted.
        len: usize,
        /// What the kernel said.
        reason: String,
    },
    /// The word that the dynamic linker fills in holds no offset of thread-local storage.
    #[error(
        "{value:#x} at {address:#x} is no offset of thread-local storage: the VM is not started, \
         or is not the build it says"
    )]
    TlsWord {
        /// Where the word was read, in the process.
        address: u64,
        /// What it held.
        value: u64,
    },
}
