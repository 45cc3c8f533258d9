//! A made-up HotSpot in memory.
//!
//! | question | file |
//! |---|---|
//! | which tables, code heap, codelets and threads does it have | `jvm` |
//! | which compiled code and which methods | `code` |

mod code;
mod jvm;

pub use code::{CODE, CODE_BASE, COMPILE_ID, HEAP_SIZE, LOG2_SEGMENT, MadeUpCode, NMETHOD_END};
pub use jvm::{BASE, CODE_SIZE, MadeUpJvm, TIDS, UNLOADED_CLASSES, WORDS};
