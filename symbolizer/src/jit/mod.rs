//! Names of code that programs generate at run time.
//!
//! There are three kinds of producers. Each one fills a [`CodeMap`]. Memory is reused, so a name belongs to an address *at a time*.
//!
//! | the producer writes | read by |
//! |---|---|
//! | `/tmp/perf-PID.map`: text, one line per function, without times | [`PerfMap`] |
//! | a jitdump file: binary records with times; its source lines are not kept | [`JitDump`] |
//! | its own memory, for GDB: a list of ELF files; in ART also one of dex files | [`JitDescriptor`] |

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

/// Longer names are cut, because a name is shown in a row.
const MAX_NAME: usize = 4096;

/// Prepares a name for a row of a report: cut, without control characters.
fn shown(name: &[u8]) -> String {
    let name = name.get(..MAX_NAME).unwrap_or(name);
    String::from_utf8_lossy(name)
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
