//! How do other tools learn the names of methods?
//!
//! From ELF files that stand in for what is no ELF file: one per file of bytecode, whose
//! addresses are offsets in that file, and one for the remap range, where methods
//! without bytecode and markers live. They hold symbols and a build-id, and instructions that do nothing
//! where the code would be. perf, gdb, addr2line, readelf and Hotspot read them.
//!
//! A file appears under its name only when it is whole.

mod atomic;
mod bytes;
mod cache;
mod dwarf;
mod elf;
mod machine;
mod name;
mod sparse;
mod table;
mod text;
mod write;

pub use cache::{Cache, Provided};
pub use machine::TargetMachine;
pub use table::{Slot, Substitute};
pub use text::{write_sym, write_sym_text};
