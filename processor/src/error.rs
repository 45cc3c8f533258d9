//! Why a processor cannot be used.

use varid_model::Address;

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a description is not that of a processor.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or a value is wrong.
    #[error(transparent)]
    Description(#[from] varid_description::Error),
    /// No processor has this name.
    #[error("there is no processor '{0}', and no such file: 'varid estimate --targets' lists them")]
    NoProcessor(String),
}

/// An instruction that the processor does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the processor has no instruction of the class '{class}', as there is one at {address}")]
pub struct Unsupported {
    /// The class of the instruction, by its key in the table `cycles`.
    pub class: &'static str,
    /// The address of the instruction.
    pub address: Address,
}
