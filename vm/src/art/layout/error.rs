//! Why the layout of a library is not known.

/// A library does not show a field, or shows it in two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The file cannot be read as a library.
    #[error("it cannot be read: {0}")]
    File(String),
    /// The code of its machine is not supported.
    #[error("code of its machine is not understood here")]
    Machine,
    /// A required symbol is not in the file.
    #[error("it has no symbol {0}")]
    NoSymbol(&'static str),
    /// The code that should use a field does not show its offset.
    #[error("the code of {function} does not show {field}")]
    NotShown {
        /// The function.
        function: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Two parts of the code contradict each other.
    #[error("{field}: {one:#x} by one function and {other:#x} by another one")]
    Contradiction {
        /// The field.
        field: &'static str,
        /// Its value in one of them.
        one: u64,
        /// Its value in the other one.
        other: u64,
    },
    /// Its unwind information marks no interpreter, or one with unsupported rows.
    #[error("its unwind information {0}")]
    Interpreter(&'static str),
    /// Frames with such a layout are not walked: a field lies beyond what is read.
    #[error("{0}")]
    Unusable(String),
    /// A number is not possible for frames.
    #[error("{0} is out of bounds")]
    OutOfBounds(&'static str),
}
