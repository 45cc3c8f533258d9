//! Why unwinding stopped.

use thiserror::Error;
use varid_model::{Address, Reason};

/// Why unwinding stopped before the outermost frame.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum UnwindError {
    /// The next frame lies beyond the part of the stack that was copied. A larger copy would show it.
    #[error("the copy of the stack ends here")]
    NoStack,
    /// The word at this address of the stack, which holds the return address, was not in memory.
    #[error("the stack at {0} was not in memory")]
    Unreadable(Address),
    /// The code at this address has neither unwind information nor a frame pointer that leads to a caller, or its rule needs a register
    /// whose value is lost.
    #[error("no unwind information for address {0}")]
    NoInfo(Address),
    /// The rules of the code at this address have not been read, yet or in time.
    #[error("the unwind rules of the code at {0} have not been read")]
    NotRead(Address),
    /// The return address is not in code: the stack does not agree with the rules.
    #[error("return address {0} leads to no code")]
    NoCode(Address),
    /// The frames that called the one with this stack pointer are not on the stack.
    #[error("the callers of the frame at {0} are not on the stack")]
    Elsewhere(Address),
    /// The caller's frame would not lie above the frame with this stack pointer. Following such frames might not end.
    #[error("frames do not ascend at {0}")]
    NotAscending(Address),
}

impl UnwindError {
    /// Returns why frames are missing where unwinding stopped, as a profile says it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::NoStack => Reason::Truncated,
            Self::NoInfo(_) | Self::NotRead(_) => Reason::NoUnwindInfo,
            Self::Elsewhere(_) => Reason::VirtualThread,
            Self::NoCode(_) | Self::NotAscending(_) | Self::Unreadable(_) => {
                Reason::StackUnreadable
            }
        }
    }
}
