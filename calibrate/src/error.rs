//! Why did a calibration fail?

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use varid_instrument::NotRewritten;

/// Why a calibration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A class was not assembled.
    #[error("unit {unit}: {reason}")]
    Assembly {
        /// The unit.
        unit: String,
        /// Why.
        reason: NotRewritten,
    },
    /// The dex file was not assembled.
    #[error("the dex file with the units: {0}")]
    Dex(#[from] varid_instrument_dex::NotRewritten),
    /// An instruction of a unit has no opcode.
    #[error("'{0}' is not an instruction of the JVM")]
    Mnemonic(&'static str),
    /// A file was not written.
    #[error("cannot write {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A command has no program, or lacks a placeholder.
    #[error(
        "'{command}' has no {missing}: a command looks like 'java -Xint -cp {{classpath}} {{class}}', of a VM of dex files like 'artvm --dex {{dex}} --name calibrate --lib {{library}} {{class}} serve'"
    )]
    Command {
        /// The command.
        command: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// The VM was not started.
    #[error("cannot run {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The VM ended before it answered.
    #[error("the VM ended before its measurement: {0}")]
    Ended(String),
    /// The VM did not answer.
    #[error("the VM has not answered within {0:?}")]
    Silent(Duration),
    /// The measurements do not determine costs.
    #[error("{0}")]
    Unsolved(&'static str),
}

/// A result of a calibration.
pub type Result<T> = std::result::Result<T, Error>;
