//! Errors of a tunnel or of a VM's memory.

/// An error that prevents the use of a VM's description or memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// Memory of the process cannot be read: it is exiting, or the address is wrong.
    #[error("cannot read {len} bytes at {address:#x}: {reason}")]
    Read {
        /// The address in the process.
        address: u64,
        /// The number of bytes requested.
        len: usize,
        /// The kernel's error.
        reason: String,
    },
    /// The word that the dynamic linker fills in is not an offset of thread-local storage.
    #[error(
        "{value:#x} at {address:#x} is no offset of thread-local storage: the VM is not started, \
         or is not the build it says"
    )]
    TlsWord {
        /// The address of the word in the process.
        address: u64,
        /// Its value.
        value: u64,
    },
    /// The mapping is smaller than a tunnel's header, or the tunnel larger than its mapping.
    #[error("a tunnel of {claimed} bytes in a mapping of {mapped}")]
    Size {
        /// Its size according to its header, or the smallest valid one, in bytes.
        claimed: u64,
        /// Size of the mapping in bytes.
        mapped: u64,
    },
    /// The mapping contains something other than a tunnel, or an unfinished one.
    #[error("no tunnel's magic, but {found:02x?}: it is not finished, or something else")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The VM uses another version of the ABI.
    #[error(
        "tunnel of version {found}, header of {header_size} bytes; versions 1 to {} are read: build the VM's part (dim, agent or patch) of this release",
        crate::abi::VERSION
    )]
    Version {
        /// The tunnel's version.
        found: u32,
        /// The size of its header.
        header_size: u32,
    },
    /// The writer was active at each attempt to read.
    #[error(
        "the tunnel changed at each of {attempts} attempts to read it (generation {generation}): try again, or its writer has died"
    )]
    Changing {
        /// The number of attempts.
        attempts: u32,
        /// The last generation seen.
        generation: u32,
    },
    /// A field contradicts the others or the ABI.
    #[error("at offset {offset:#x} of the tunnel: {what} ({value:#x})")]
    Malformed {
        /// Offset from the tunnel's start, in bytes.
        offset: u64,
        /// The problem.
        what: &'static str,
        /// The value found.
        value: u64,
    },
    /// A layout that the walker cannot use.
    #[error("the frame layout is not usable: {what} ({value:#x})")]
    Layout {
        /// The problem.
        what: &'static str,
        /// The value found.
        value: u64,
    },
    /// None of the listed threads is at its address.
    #[error("the layout does not fit the process: thread {tid} is not the one at {base:#x}")]
    Threads {
        /// The first of them.
        tid: u32,
        /// Its address according to the tunnel.
        base: u64,
    },
    /// A file of the VM's cannot be opened, or is not the one that it has mapped.
    #[error("the {name} of process {pid}: {reason}")]
    File {
        /// The process.
        pid: varid_model::Pid,
        /// The file's name.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// Another varid, or another session, controls this VM.
    #[error("another session controls process {pid}: stop that one first")]
    Controlled {
        /// The process.
        pid: varid_model::Pid,
    },
    /// An order does not fit into the VM's control page.
    #[error("{what}: at most {most}")]
    Order {
        /// The part that is too large.
        what: &'static str,
        /// Its maximum size.
        most: usize,
    },
    /// A pointer on the path from a method to its dex file is null.
    #[error("method {method:#x} leads to no dex file: its {what} is null")]
    Method {
        /// The VM's method pointer.
        method: u64,
        /// The null pointer.
        what: &'static str,
    },
}
