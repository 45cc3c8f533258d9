//! Rewrites dex files so that they count every call of every method by its whole calling context, and how often each basic block was executed.
//!
//! Everything here is a function over bytes: no VM, no files. The tree that the rewritten code keeps is that of [`varid_instrument::node`], and
//! its methods have the same tables; places in code are code units instead of bytecode indices.
//!
//! # Design
//!
//! As in class files, a call site says where the next call is recorded, the callee's entry finds its node there, and each exit restores it. The
//! rewritten code calls native methods for that, see [`CLASS`], because dex code has no way to write mapped memory that is in all
//! versions of ART, and the natives need no map from threads to their places. The node is in a register of the method.
//!
//! | alternative | why not |
//! |---|---|
//! | `sun.misc.Unsafe` with addresses | its methods are static in one version and virtual in the next; ART's compiler replaces only those with an object, which the interpreter limits to the lower 2 GB |
//! | `libcore.io.Memory` | private on Android |
//! | a direct `ByteBuffer` of a mapped file | as many calls; needs a map from threads to places |
//! | arrays of the VM's heap | lost by a kill |
//!
//! Exceptions leave a method by a handler of their own, for all instructions outside of monitors that no handler for all exceptions covers. In a
//! monitor, the original code has such handlers, or ART's verifier refuses it.
//!
//! # What is not rewritten
//!
//! Methods with more than 253 registers or 65,535 code units stay as they are: what they call is recorded under their caller's site. A file with
//! an instruction that is not in the dex format is not rewritten at all, because its indices change.
//!
//! | question | file |
//! |---|---|
//! | the methods that rewritten code calls | `runtime` |
//! | a whole file | `rewrite`, `write` |
//! | the tables, annotations and values of a file | `file` |
//! | the code of a method | `code`: `item` and `instruction` read it, `flow` follows it, `insert` adds the counting, `assembler` lays it out, `debug` moves the lines |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod code;
mod error;
mod file;
mod rewrite;
mod runtime;
#[cfg(test)]
mod tests;
mod write;

pub use error::NotRewritten;
pub use rewrite::{Rewritten, RewrittenClass, RuntimeClass, rewrite};
pub use runtime::CLASS;
