//! Why a file is not an executable that can be run or read.

use varid_model::Address;

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file is not an executable that can be run or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not an ELF file, or its tables are damaged.
    #[error("not a readable ELF file: {0}")]
    Elf(String),
    /// It is for another machine.
    #[error("an ELF file for {0}, not for RISC-V")]
    Machine(String),
    /// It is for RISC-V with the highest byte of a word first.
    #[error("a big-endian ELF file; RISC-V programs are little-endian")]
    BigEndian,
    /// It is not linked: an object file, or a library.
    #[error("{0}, not a linked executable")]
    NotExecutable(&'static str),
    /// It needs a loader and libraries.
    #[error("a dynamically linked executable: link it with -static")]
    Dynamic,
    /// It has nothing to load.
    #[error("no segment to load")]
    NoSegment,
    /// A segment's data is not within the file.
    #[error("the data of the segment at {0} is not within the file")]
    CutOff(Address),
    /// A segment is smaller than its data, or ends beyond the address space.
    #[error("the segment at {0} does not fit: its size in memory is {1} bytes")]
    SegmentSize(Address, u64),
    /// Two segments have the same addresses.
    #[error("the segments at {0} and {1} overlap")]
    Overlap(Address, Address),
    /// It has more segments or symbols than are read.
    #[error("more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are read.
        limit: usize,
    },
    /// The entry point is not in a segment that may be executed.
    #[error("the entry point {0} is not in an executable segment")]
    Entry(Address),
}
