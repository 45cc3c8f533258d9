//! Why is a dex file not rewritten?

/// Why a dex file is not rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRewritten {
    /// The file violates its format.
    #[error("dex file: {field} at offset {offset:#x}: {problem}")]
    Invalid {
        /// The field or item, by its name in the dex format's documentation.
        field: &'static str,
        /// File offset of the invalid field.
        offset: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file is valid, but has what the rewriter does not keep.
    #[error("the dex file has {0}, which is not supported")]
    Unsupported(&'static str),
    /// A table has 65,536 items, so there is no room for those that are added.
    #[error("the dex file has no room for more {0}: split it into several dex files")]
    Full(&'static str),
    /// The file has the runtime class.
    #[error("the dex file counts calls already")]
    IsRewritten,
    /// The method numbers are used up.
    #[error("no method numbers are left")]
    NoNumbers,
}

/// A result of reading or rewriting a dex file.
pub(crate) type Result<T> = std::result::Result<T, NotRewritten>;

/// Makes the error about `field` at `offset`.
pub(crate) const fn invalid(
    field: &'static str,
    offset: usize,
    problem: &'static str,
) -> NotRewritten {
    NotRewritten::Invalid {
        field,
        offset,
        problem,
    }
}
