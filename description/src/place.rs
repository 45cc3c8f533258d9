//! Where a value of a description was set.

use std::fmt;

/// Where a value was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In this line of the file. The first one is 1.
    Line(usize),
    /// By an option of the command line.
    Setting,
}

/// Where a value was set, for a message: `ibex:12`, `--set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of a processor that varid has.
    pub file: String,
    /// Where in it, or elsewhere.
    pub origin: Origin,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Line(line) => write!(f, "{}:{line}", self.file),
            Origin::Setting => f.write_str("--set"),
        }
    }
}
