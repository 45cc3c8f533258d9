//! What is code called that a program makes while it runs?
//!
//! Three kinds of producers say so, and all of them end in a [`CodeMap`], which knows that
//! memory is reused: a name is that of an address *at a time*.
//!
//! | producer says it in | read by |
//! |---|---|
//! | `/tmp/perf-PID.map`: text, a line per function, without times | [`PerfMap`] |
//! | a jitdump file: binary records with times; its source lines are not kept | [`JitDump`] |
//! | its own memory, for GDB: a list of ELF files, of ART also dex files | [`JitDescriptor`] |

mod code_map;
mod dump;
mod gdb;
mod perf_map;
mod symfile;

pub use code_map::{CodeMap, JitFunction, Replacement};
pub use dump::JitDump;
pub use gdb::{JitAbi, JitDescriptor, JitEntry, JitList};
pub use perf_map::PerfMap;
pub(crate) use symfile::symbol_addresses;
pub use symfile::{JitDescriptors, descriptors_of, symfile_codes};

/// A longer name is cut: it is shown in a row.
const MAX_NAME: usize = 4096;

/// A name as a row of a report can show it: cut, without control characters.
fn shown(name: &[u8]) -> String {
    let name = name.get(..MAX_NAME).unwrap_or(name);
    String::from_utf8_lossy(name)
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
