//! What does the kernel's perf interface look like (linux/perf_event.h)?
//!
//! What the kernel takes and gives, and what perf.data has of it. It is alike on every processor but for the size of pointers.
//! Each constant and offset is compared with the kernel's header, of every processor that a compiler is installed for.
//!
//! | question | file |
//! |---|---|
//! | which numbers does it use | `abi` |
//! | what is asked for when an event is opened | `attr` |
//! | which numbers of perf.data are perf's own | `file` |
//! | how are a record's fields taken from its bytes | `fields` |
//! | what are events called | `names` |
//! | what does a record say that is no sample | `record` |
//! | what does a sample say | `sample` |

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
