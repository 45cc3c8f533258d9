//! Which functions, inlined ones among them, and which source line are at an address, by DWARF?
//!
//! The units' address ranges are read once, at the first question; a unit's functions and
//! lines when an address in it is first asked for. What has been read is kept as plain
//! tables, in which an answer takes two searches.
//!
//! Nothing here recurses over the input, and the work that shared or overlapping parts of
//! a file can cause is bounded by a budget in proportion to the file.

mod budget;
mod covers;
mod file;
mod lines;
mod names;
mod sections;
mod split;
mod tree;
mod unit;
mod units;

pub(super) use file::DebugFile;

use gimli::{EndianSlice, RunTimeEndian};

/// How DWARF is read: as a slice of a section.
type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
