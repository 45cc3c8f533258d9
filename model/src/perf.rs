//! The kernel's perf interface (linux/perf_event.h).
//!
//! Contains the structures and constants of the interface, and those of perf.data. They are the same on every processor, except for the
//! size of pointers. Tests compare each constant and offset with the kernel's header, for every processor with an installed compiler.
//!
//! | question | file |
//! |---|---|
//! | which constants does it have | `abi` |
//! | how is an event opened | `attr` |
//! | which constants of perf.data are perf's own | `file` |
//! | how are the fields of a record read | `fields` |
//! | what are the names of events | `names` |
//! | how are records other than samples parsed | `record` |
//! | how are samples parsed | `sample` |

mod abi;
mod attr;
mod fields;
pub mod file;
mod names;
mod record;
mod sample;

pub use abi::*;
pub use attr::EventAttr;
pub use fields::{Fields, Malformed};
pub use names::{EVENT_NAMES, event_name};
pub use record::{CommRecord, Header, KernelRecord, MappedFile, Mmap2Record, TaskRecord};
pub use sample::{CallchainEntries, GroupValues, SampleFields, SampleLayout};

#[cfg(test)]
mod tests;
