//! Writes ELF files that provide the names of methods to other tools.
//!
//! A substitute is an ELF file that stands for something that is not one. There is one for each bytecode file, whose addresses are offsets
//! in that file, and one for the remap range, which contains markers and methods whose bytecode is in no file. A substitute has symbols, a build-id,
//! and no-ops in place of the code. perf, gdb, addr2line, readelf and Hotspot read it.
//!
//! A file appears under its name only when it is complete. One to which methods are added while others read it is a
//! [`GrowingSubstitute`].

mod atomic;
mod bytes;
mod cache;
mod dwarf;
mod elf;
mod growing;
mod machine;
mod name;
mod places;
mod sparse;
mod table;
mod text;
mod write;

pub use cache::{Cache, Provided};
pub use growing::GrowingSubstitute;
pub use machine::TargetMachine;
pub use table::{MethodSlot, MethodSource, Slot, SlotLine, Substitute};
pub use text::{append_slots_sym, read_descriptors, sym_file_of, write_sym, write_sym_text};
