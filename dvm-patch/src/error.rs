//! What can be wrong with a tunnel or with a VM's memory.

/// Why a VM's description of itself, or its memory, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
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
    /// The mapping is smaller than a tunnel's header, or the tunnel larger than its mapping.
    #[error("a tunnel of {claimed} bytes in a mapping of {mapped}")]
    Size {
        /// Bytes it says it has, or must have.
        claimed: u64,
        /// Bytes that are mapped.
        mapped: u64,
    },
    /// The mapping holds something else than a tunnel, or one that is not finished yet.
    #[error("no tunnel's magic, but {found:02x?}: it is not finished, or something else")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The VM speaks another version of the ABI.
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
    /// The writer was at work at each attempt to read.
    #[error(
        "the tunnel changed at each of {attempts} attempts to read it (generation {generation}): try again, or its writer has died"
    )]
    Changing {
        /// How often it was read.
        attempts: u32,
        /// The last generation seen.
        generation: u32,
    },
    /// A field contradicts the others or the ABI.
    #[error("at offset {offset:#x} of the tunnel: {what} ({value:#x})")]
    Malformed {
        /// Bytes from the tunnel's start.
        offset: u64,
        /// What is wrong.
        what: &'static str,
        /// What was found.
        value: u64,
    },
    /// A layout that no walker can use.
    #[error("the frame layout is not usable: {what} ({value:#x})")]
    Layout {
        /// What is wrong.
        what: &'static str,
        /// What was found.
        value: u64,
    },
    /// None of the threads that the tunnel lists is where it says.
    #[error("the layout does not fit the process: thread {tid} is not the one at {base:#x}")]
    Threads {
        /// The first of them.
        tid: u32,
        /// Where it was said to be.
        base: u64,
    },
    /// A file of the VM's cannot be had, or is not the one that it has mapped.
    #[error("the {name} of process {pid}: {reason}")]
    File {
        /// The process.
        pid: varid_model::Pid,
        /// The file's name.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Another varid, or another session, tells this VM what to do.
    #[error("another session controls process {pid}: stop that one first")]
    Controlled {
        /// The process.
        pid: varid_model::Pid,
    },
    /// What is wanted of a VM does not fit into its control page.
    #[error("{what}: at most {most}")]
    Order {
        /// What is too much.
        what: &'static str,
        /// What there is room for.
        most: usize,
    },
    /// The way from a method to its dex file ends in nothing.
    #[error("method {method:#x} leads to no dex file: its {what} is null")]
    Method {
        /// The VM's method pointer.
        method: u64,
        /// Which step ended.
        what: &'static str,
    },
}
