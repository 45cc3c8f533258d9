//! Why a HotSpot VM cannot be described.

use varid_model::Address;
use varid_tunnel::TunnelError;

/// An error that prevents the description of a HotSpot VM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JvmError {
    /// The VM has not started far enough. It is worth another look.
    #[error("it has not started yet: {0}")]
    NotStarted(&'static str),
    /// The library is not an ELF file that is loaded as it is.
    #[error("its library cannot be read: {0}")]
    Library(String),
    /// The library is for a machine without a description.
    #[error("its library is for a machine on which no HotSpot is described: x86-64 and arm64 are")]
    Machine,
    /// The library has no such symbol: OpenJ9's, for example.
    #[error("its library exports no {0}, as HotSpot's does")]
    NoSymbol(&'static str),
    /// Memory of the process cannot be read: it is exiting, or a pointer is wrong.
    #[error("{what}: {error}")]
    Memory {
        /// What was read.
        what: &'static str,
        /// The error.
        error: TunnelError,
    },
    /// The VM leads to more memory than a description takes.
    #[error("{what}: more than {most} bytes would be read to describe it")]
    TooMuch {
        /// What was read last.
        what: &'static str,
        /// The limit in bytes.
        most: u64,
    },
    /// An exported table has more entries than any VM's.
    #[error("{table} does not end within {most} entries")]
    EndlessTable {
        /// The symbol of the table.
        table: &'static str,
        /// The limit.
        most: u64,
    },
    /// A string is longer than any of a VM.
    #[error("{what}: the string at {address} does not end within {most} bytes")]
    EndlessString {
        /// What was read.
        what: &'static str,
        /// Where the string starts.
        address: Address,
        /// The limit in bytes.
        most: usize,
    },
    /// The names in the tables are longer than those of any VM.
    #[error("the names in {table} have more than {most} bytes")]
    TooManyNames {
        /// The symbol of the table.
        table: &'static str,
        /// The limit for all tables, in bytes.
        most: usize,
    },
    /// Fields, types or constants that a description needs are in no table.
    #[error("{vm} does not export {}", missing.join(", "))]
    NotExported {
        /// The VM's version.
        vm: String,
        /// Their names, as in HotSpot's sources.
        missing: Vec<String>,
    },
    /// What no table has, and is not known of this version either.
    #[error("{vm}: {fact} is not exported, and not known of this version")]
    NotKnown {
        /// The VM's version.
        vm: String,
        /// What is not known.
        fact: &'static str,
    },
    /// A value that no VM has.
    #[error("{what} is {value:#x}: {why}")]
    Implausible {
        /// The field, as in HotSpot's sources.
        what: String,
        /// Its value.
        value: u64,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl JvmError {
    /// An error about a value.
    pub(super) fn implausible(what: impl Into<String>, value: u64, why: &'static str) -> Self {
        Self::Implausible {
            what: what.into(),
            value,
            why,
        }
    }
}

/// The result of reading a HotSpot VM.
pub(super) type Result<T> = std::result::Result<T, JvmError>;
