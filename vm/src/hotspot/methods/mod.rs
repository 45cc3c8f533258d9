//! Which methods does a code address of a running HotSpot execute, and which an interpreter frame?
//!
//! [`JavaCode`] answers that for a process. All memory is read as hostile input: in bulk, with limits, and with an error for what
//! contradicts itself. Code is freed and its memory reused while it is read, so a compiled method is identified by its blob and its
//! compilation.
//!
//! | question | file |
//! |---|---|
//! | which code blob is at an address, and what is it for | `blob` |
//! | what is a compiled method | `compiled` |
//! | which methods, inlined ones included, are at one of its addresses | `debug_info`, `frames` |
//! | what is a method | `java_method`, `lines` |
//! | what was read of a process, and for how long is it right | `java_code`, `bounded`, `reuse`, `seen_pointers` |
//! | what identifies code and methods | `ids` |
//! | how are structures and compressed numbers read | `structure`, `numbers` |
//! | how is the memory that many readers need read in few requests | `gathered` |

mod blob;
pub(super) mod bounded;
mod compiled;
mod debug_info;
mod error;
mod frames;
pub(crate) mod fuzzing;
pub(super) mod gathered;
mod ids;
pub(super) mod java_code;
mod java_method;
mod lines;
mod numbers;
pub(super) mod reuse;
mod seen_pointers;
mod structure;
#[cfg(test)]
pub(super) mod tests;

pub use blob::{BlobKind, CodeBlob};
pub use compiled::{CompiledEntry, CompiledFrameLayout, CompiledMethod};
pub use error::MethodError;
pub use frames::{CompiledScope, CompiledScopes, JavaFrame, JavaFrames, Precision};
pub use ids::{Bci, CodeKey, CompileId, MethodPointer};
pub use java_code::{CompiledCode, JavaCode};
pub(super) use java_method::class_name;
pub use java_method::{AccessFlags, JavaMethod};
pub use lines::{LineEntry, LineTable};
pub use varid_symbolizer::java::ClassName;
