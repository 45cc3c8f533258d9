//! The agent's options, as they stand behind `-agentpath:LIBRARY=`.

use std::{fmt, num::ParseIntError, path::PathBuf};

use varid_instrument::Counted;

/// What a VM counts, and where.
///
/// ```
/// use varid_exact_agent::Options;
/// use varid_instrument::Counted;
///
/// let options = Options { counted: Counted::Blocks, bytes: 1 << 20, folder: "/tmp/a, b".into() };
/// assert_eq!(Options::parse(&options.to_string()), Ok(options));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is counted.
    pub counted: Counted,
    /// The size of the arena of nodes, in bytes.
    pub bytes: u64,
    /// The folder in which each VM makes its files.
    pub folder: PathBuf,
}

/// What is wrong with the agent's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsError {
    /// They are not three values, separated by commas.
    Shape,
    /// The first one is neither `calls` nor `blocks`.
    Counted,
    /// The second one is not a number.
    Bytes(ParseIntError),
}

impl fmt::Display for OptionsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => out.write_str("the options are not COUNTED,BYTES,FOLDER"),
            Self::Counted => out.write_str("what is counted is neither 'calls' nor 'blocks'"),
            Self::Bytes(error) => write!(out, "the size of the tree: {error}"),
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// Reads options in the form of their [`Display`](fmt::Display).
    ///
    /// # Errors
    ///
    /// They have another form.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut parts = text.splitn(3, ',');
        let (Some(counted), Some(bytes), Some(folder)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(OptionsError::Shape);
        };
        Ok(Self {
            counted: match counted {
                "calls" => Counted::Calls,
                "blocks" => Counted::Blocks,
                _ => return Err(OptionsError::Counted),
            },
            bytes: bytes.parse().map_err(OptionsError::Bytes)?,
            folder: folder.into(),
        })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = match self.counted {
            Counted::Calls => "calls",
            Counted::Blocks => "blocks",
        };
        write!(out, "{counted},{},{}", self.bytes, self.folder.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_option_is_named() {
        assert_eq!(Options::parse("calls,1"), Err(OptionsError::Shape));
        assert_eq!(Options::parse("all,1,/"), Err(OptionsError::Counted));
        assert!(matches!(
            Options::parse("calls,x,/"),
            Err(OptionsError::Bytes(_))
        ));
    }
}
