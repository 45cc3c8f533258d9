//! The agent that makes a HotSpot VM count each call by its calling context.
//!
//! The VM loads it by `-agentpath`. It receives each class before the VM parses it, and hands it to [`varid_instrument`], which adds the
//! counting. The counts are in a file that the VM's process has mapped; what they are counts of is in a second file. Both are complete at
//! any moment, so that a reader needs no help of a process that was killed.
//!
//! | question | file |
//! |---|---|
//! | how is the agent told what to do | `options` |
//! | the file of counts, and the roots of its trees | `tree_file` |
//! | the file that says what is counted | `tables`, `record` |
//! | the file of the order of calls | `order` |
//! | the VM's events | `events` |
//! | which classes are rewritten, where do threads count | `agent` |
//! | when does counting start | `start` |
//! | is counting switched off and on | `switch` |
//! | classes that the VM does not show to agents | `hidden` |
//! | what rewritten dex code calls in ART | `art` |
//! | the array through which that code accesses the tree | `word_array` |
//! | where files are mapped | `mapping` |
//!
//! ART has no such events on all devices: dex files are rewritten before, and the library is one of JNI there, whose functions keep the
//! tree.
//!
//! Nothing here writes to standard output, which is the program's. A panic does not reach the VM: the event is then as if there were
//! no agent.

mod agent;
pub mod art;
mod events;
mod hidden;
mod mapping;
mod options;
pub mod order;
pub mod record;
mod start;
mod switch;
mod tables;
mod tree_file;
mod word_array;

pub use options::{Options, OptionsError};
pub use switch::{Counting, SWITCH, create_switch, read_switch, write_switch};
