//! VMs whose layout somebody describes: the VM itself in a tunnel, the table of builds, or its library.
//!
//! | question | file |
//! |---|---|
//! | what does a description say | [`Description`] |
//! | which description has a process, and which kind takes it | `find`, [`Described`], [`DescribedKind`] |
//! | what does a VM answer that follows from its description | [`DescribedVm`], `answers` |
//! | what do an interpreter loop's registers say | `interpreter_loop`, `executed`, `handlers` |
//! | which states does the code of frames like a compiler's have | `quick_code` |
//! | which method of a dex file is meant | `dex` |

mod answers;
mod description;
pub(crate) mod dex;
mod executed;
mod find;
mod handlers;
pub(crate) mod interpreter_loop;
mod kind;
mod quick_code;

pub use answers::{DescribedVm, refreshed};
pub use description::{Description, KnownBy};
pub use find::Described;
pub use kind::{AskedLibrary, DescribedKind};
