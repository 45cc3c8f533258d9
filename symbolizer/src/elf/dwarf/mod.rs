//! Finds the functions at an address, inlined ones included, and the source line, from DWARF.
//!
//! The address ranges of all units are read at the first lookup. The functions of a unit are read at the first lookup
//! of an address in it, its lines at the first lookup that has lines. Both are kept as tables, so that a lookup is two binary searches.
//!
//! Nothing here recurses over the input. Parts of a file can be shared or overlap; the work that this causes is bounded by a
//! budget in proportion to the size of the file.

mod budget;
mod code_ranges;
mod file;
mod functions;
mod lines;
mod names;
mod sections;
mod split;
mod unit_input;
mod unit_tables;
mod units;

pub(super) use file::{DebugFile, FrameDetail};

use gimli::{EndianSlice, RunTimeEndian};

/// The reader type for DWARF: a slice of a section.
type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
