//! Why is the layout of a library not known?

/// What a library does not say, or says in two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The file cannot be read as a library.
    #[error("it cannot be read: {0}")]
    File(String),
    /// The code of its machine is not understood.
    #[error("code of its machine is not understood here")]
    Machine,
    /// A symbol that is needed is not in the file.
    #[error("it has no symbol {0}")]
    NoSymbol(&'static str),
    /// The code that should use a field does not show where it is.
    #[error("the code of {function} does not show {field}")]
    NotShown {
        /// The function.
        function: &'static str,
        /// What it should use.
        field: &'static str,
    },
    /// Two parts of the code contradict each other.
    #[error("{field}: {one:#x} by one function and {other:#x} by another one")]
    Contradiction {
        /// What they use.
        field: &'static str,
        /// What one says.
        one: u64,
        /// What the other one says.
        other: u64,
    },
    /// Its unwind information marks no interpreter, or one whose rows are not understood.
    #[error("its unwind information {0}")]
    Interpreter(&'static str),
    /// Frames with such a layout are not walked: a field lies further out than is read.
    #[error("{0}")]
    Unusable(String),
    /// Its numbers are not those that frames can have.
    #[error("{0} is out of bounds")]
    OutOfBounds(&'static str),
}
