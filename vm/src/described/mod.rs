//! VMs with a layout description: from a tunnel, from the table of builds, or derived from the VM's library.
//!
//! | file | purpose |
//! |---|---|
//! | `description` | [`Description`]: the layout and the code ranges |
//! | `find`, `kind` | [`Described`] finds the description of a process and the [`DescribedKind`] that it belongs to |
//! | `answers` | [`DescribedVm`]: what follows from the description alone |
//! | `interpreter_loop`, `executed`, `handlers` | the frame and the bytecode pc in an interpreter loop's registers |
//! | `quick_code` | the states of the code of an interpreter whose frames are native ones |
//! | `dex` | method pointers to methods of dex files |

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
pub use description::{Description, LayoutSource};
pub use find::Described;
pub use kind::{DerivedLayout, DescribedKind};
