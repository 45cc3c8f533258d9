//! Rewrites dex files so that they count every call of every method by its whole calling context, and how often each basic block was executed.
//!
//! Everything here is a function over bytes: no VM, no files. The tree that the rewritten code keeps is that of [`varid_instrument::node`], and
//! its methods have the same tables; places in code are code units instead of bytecode indices.
//!
//! # Design
//!
//! As in class files, a call site says where the next call is recorded, and the callee's entry finds its node there. The tree is in an array of
//! `long`, so that the rewritten code increments counters and sets sites itself: see [`CLASS`]. The entry calls a native method, which knows
//! its thread: the index of the call's words in the array is in a register then. An exit marks the call as left, and the next entry looks for
//! the innermost caller that has not been left: so neither needs the thread. With [`Entries::Inline`], the entry itself looks for the caller
//! and its node, in the one thread whose last frame is in a word of the array.
//!
//! | alternative for the tree | why not |
//! |---|---|
//! | a native method for each event | six to seven times as slow as the program under the JIT |
//! | `sun.misc.Unsafe` with addresses | its methods are static in one version and virtual in the next; ART's compiler replaces only those with an object, which the interpreter limits to the lower 2 GB |
//! | `libcore.io.Memory` | private on Android |
//! | a direct `ByteBuffer` of a mapped file | as many calls; needs a map from threads to places |
//!
//! Exceptions leave a method by a handler of their own, for all instructions outside of monitors that no handler for all exceptions covers. In a
//! monitor, the original code has such handlers, or ART's verifier refuses it.
//!
//! # What is not rewritten
//!
//! Methods with more than 249 registers or 65,535 code units stay as they are: what they call is recorded under their caller's site. A file with
//! an instruction that is not in the dex format is not rewritten at all, because its indices change.
//!
//! | question | file |
//! |---|---|
//! | what is counted, and how | `plan` |
//! | the array and the methods that rewritten code uses | `runtime` |
//! | a whole file | `rewrite`, `write` |
//! | the tables, annotations and values of a file | `file` |
//! | a file from nothing | `assemble` |
//! | the code of a method | `code`: `item` and `instruction` read it, `flow` follows it, `insert` adds the counting, `assembler` lays it out, `debug` moves the lines |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod assemble;
mod code;
mod error;
mod file;
mod plan;
mod rewrite;
mod runtime;
#[cfg(test)]
mod tests;
mod write;

pub use error::NotRewritten;
pub use plan::{Entries, Plan};
pub use rewrite::{Rewritten, RewrittenClass, RuntimeClass, rewrite};
pub use runtime::CLASS;
