//! Finds the functions and the source line at an address of a library.
//!
//! Symbols come from `.symtab` and `.dynsym`. If a library has been stripped, its functions without a name are distinguished by
//! `.eh_frame`: each is one row, `libart.so+0x7b2d80`, and never has the name of an exported neighbour. A stripped Go program has names in
//! a table of its own.
//!
//! [`ElfSource`] finds source lines and inlined functions. Separate debug information is found through [`DebugFiles`].
//!
//! [`SymbolFile`] writes the parts of a file that name its addresses into a separate file, which a session keeps.
//!
//! [`MachineCode`] reads the bytes of a function. [`CodePlaces`] finds the file offset of a function by its name.
//!
//! Addresses are those that the file itself uses (ELF virtual addresses). [`ElfSymbols::vaddr`] converts an offset in the file into one.

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
pub use place::{CodePlaces, Overload, PlaceError};
pub use source::ElfSource;
pub use symbol_file::{SymbolFile, SymbolFileLimits};
pub use symbols::{ElfSymbol, ElfSymbols, SymbolOrigin};
