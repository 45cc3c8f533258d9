//! Why is a class not rewritten?

/// Why a class is not rewritten. It stays as it is, and the profile is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRewritten {
    /// The class file violates its format.
    #[error("class file: {field} at offset {offset:#x}: {problem}")]
    Invalid {
        /// The field, by its name in the Java Virtual Machine Specification.
        field: &'static str,
        /// File offset of the invalid field.
        offset: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The class file's major version is below 45 or above 69.
    #[error("class file version {0} is not supported (45.3 to 69 are)")]
    Version(u16),
    /// The constant pool has no room for the constants that are added.
    #[error("the constant pool is full")]
    ConstantPoolFull,
    /// A method's code that is assembled exceeds 65,535 bytes, or a branch in it 32,767.
    #[error("a method's code is too long")]
    CodeTooLong,
    /// The method numbers are used up.
    #[error("no method numbers are left")]
    NoNumbers,
    /// The class is the runtime class, or one whose methods the rewritten code itself executes.
    #[error("the class belongs to the profiler's own runtime")]
    Runtime,
}

/// A result of reading or rewriting a class file.
pub(crate) type Result<T> = std::result::Result<T, NotRewritten>;
