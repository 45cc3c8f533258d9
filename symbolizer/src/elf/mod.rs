//! Which functions and which source line are at this address of a library?
//!
//! Symbols come from `.symtab` and `.dynsym`; where a library has been stripped, the
//! functions without a name are told apart by `.eh_frame`: each is one row,
//! `libart.so+0x7b2d80`, and never takes the name of an exported neighbour. A stripped program of Go
//! has names in a table of its own.
//!
//! Which source lines are there, and which functions were inlined, [`ElfSource`] answers; it
//! finds debug information that is kept apart in [`DebugFiles`].
//!
//! What of a file names its addresses, [`SymbolFile`] writes as a file by itself: a session keeps it.
//!
//! What a function's bytes are, [`MachineCode`] reads. Where in the file a function of a name lies, [`CodePlaces`] says.
//!
//! Addresses are those the file itself uses (ELF virtual addresses).
//! [`ElfSymbols::vaddr`] makes one of an offset in the file.

mod code;
mod data;
mod debug_files;
mod demangle;
mod dwarf;
mod dynamic;
mod functions;
mod go;
mod headers;
mod list;
mod load;
mod minidebug;
mod name;
mod near;
mod package;
mod parts;
mod place;
mod ranges;
mod reader;
mod source;
mod symbol_file;
mod symbols;
mod tables;

pub use code::{CodeKind, InstructionSet, MachineCode};
pub use data::FileBytes;
pub use debug_files::{DebugFiles, MissingDebug};
pub use demangle::demangle;
pub use package::library_in;
pub use place::{CodePlaces, PlaceError};
pub use source::ElfSource;
pub use symbol_file::{SymbolFile, SymbolFileLimits};
pub use symbols::{ElfSymbol, ElfSymbols, SymbolOrigin};
