//! Why is it not known which methods code executes?

use super::ids::{CodeKey, CompileId};
use varid_model::Address;
use varid_tunnel::TunnelError;

/// An error that prevents the naming of what a code address or an interpreter frame executes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// Memory of the process cannot be read: it is exiting, or a pointer is wrong.
    #[error("{what}: {error}")]
    Memory {
        /// What was read.
        what: &'static str,
        /// The error.
        error: TunnelError,
    },
    /// A structure is larger than any of a VM.
    #[error("{what} has {size} bytes, and no VM's has more than {most}")]
    TooLarge {
        /// What was read.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// A value that no VM has, or one that was changed while it was read.
    #[error("{what} is {value:#x}: {why}")]
    Implausible {
        /// What was read, as in HotSpot's sources.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The VM has freed the code since it was sampled. Its memory may have other code.
    #[error("the code at {blob} is not that of compilation {expected} any more")]
    Replaced {
        /// The address of the code blob.
        blob: Address,
        /// What was sampled.
        expected: CompileId,
    },
    /// Another method was there when the sample was taken, or may have been: that one's class is unloaded.
    #[error("another method may have been at {0}")]
    OtherMethod(Address),
    /// The VM has not finished to write the code, which nobody executes yet.
    #[error("the code of compilation {} at {} is not installed yet", .0.compile_id, .0.blob)]
    NotInstalled(CodeKey),
    /// The address is in no code heap, or in a part of one that is free.
    #[error("there is no code at {0}")]
    NoCode(Address),
}

impl MethodError {
    /// An error about a value.
    pub(super) const fn implausible(what: &'static str, value: u64, why: &'static str) -> Self {
        Self::Implausible { what, value, why }
    }
}

/// The result of reading code or methods.
pub(super) type Result<T, E = MethodError> = std::result::Result<T, E>;
