//! Which function is at this address of a library?
//!
//! Symbols come from `.symtab` and `.dynsym`; where a library has been stripped, the
//! functions without a name are told apart by `.eh_frame`: each is one row,
//! `libart.so+0x7b2d80`, and never takes the name of an exported neighbour.
//!
//! Addresses are those the file itself uses (ELF virtual addresses).
//! [`ElfSymbols::vaddr`] makes one of an offset in the file.

mod demangle;
mod functions;
mod load;
mod ranges;
mod symbols;

pub use demangle::demangle;
pub use symbols::{ElfSymbols, Origin, Symbol};
