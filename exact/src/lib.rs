//! Exact calling contexts of programs on HotSpot: each call of each method, by its calling context with call sites.
//!
//! With [`tool_options`] in its environment, the VMs of a program load the agent of `varid-exact-agent`. Each VM makes a file of counts, a tree, and a file that
//! says what is counted, the tables. [`read_vms`] finds them, and [`write_session`] makes a session of them.
//!
//! | question | file |
//! |---|---|
//! | how does a VM load the agent, how large may a tree be | `launch` |
//! | how is a program of dex files rewritten | `dex` |
//! | which VMs have run | `vms` |
//! | what does a tree count | `tables` |
//! | the nodes of a tree, in a file that is not trusted | `words`, `context`, `tree` |
//! | in which order did a VM's threads enter them | `order`, `call_order` |
//! | how often did each instruction run, and each method that cannot count itself | `executions` |
//! | which addresses do methods have in the session | `names` |
//! | which class files does the session have, how is an archive in it written | `class_archive`, `session_zip` |
//! | the class files of a run as a folder | `class_folder` |
//! | which contexts without counts are in the session | `waiting` |
//! | the session | `session` |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod call_order;
mod class_archive;
mod class_folder;
mod context;
mod dex;
mod error;
mod executions;
mod launch;
mod names;
mod order;
mod session;
mod session_zip;
mod tables;
mod tree;
mod vms;
mod waiting;
mod words;

pub use class_folder::{WrittenClasses, write_classes};
pub use context::Node;
pub use dex::{DexProgram, RewrittenDex, rewrite_dex};
pub use error::{Error, Result};
pub use launch::{free_bytes, tool_options};
pub use order::Order;
pub use session::{Summary, write_session};
pub use tables::{CountedMethod, LoadedClass, LoadedClassId, Tables};
pub use tree::Tree;
pub use vms::{Vm, read_vms};
