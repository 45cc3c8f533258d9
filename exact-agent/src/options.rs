//! The agent's options, as they stand behind `-agentpath:LIBRARY=`.

use std::{fmt, num::ParseIntError, path::PathBuf};

use varid_instrument::{ClassPattern, Counted, Intrinsics, MethodPattern};

/// The values of [`Options::class_files`].
const CLASSES: &str = "classes";
const NO_CLASSES: &str = "none";

/// The values of [`Options::intrinsics`].
const LEAVES: &str = "leaves";
const EXPANDED: &str = "expanded";

/// The values of [`Options::is_switched`].
const ALWAYS: &str = "always";
const SWITCHED: &str = "switched";

/// Stands for a comma in [`Options::within`].
const COMMA: &str = "|";
/// Separates the patterns of [`Options::include`].
const AND: &str = ":";

/// What a VM counts, and where.
///
/// ```
/// use varid_exact_agent::Options;
/// use varid_instrument::{ClassPattern, Counted, Intrinsics, MethodPattern};
///
/// let options = Options {
///     counted: Counted::Blocks,
///     intrinsics: Intrinsics::Expanded,
///     bytes: 1 << 20,
///     class_files: true,
///     is_switched: false,
///     within: Some(MethodPattern::new("App.run(int,int)")),
///     include: ["org.example.*", "App"].map(ClassPattern::new).to_vec(),
///     folder: "/tmp/a, b".into(),
/// };
/// assert_eq!(Options::parse(&options.to_string()), Ok(options));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is counted.
    pub counted: Counted,
    /// What is done with methods that HotSpot's compilers replace.
    pub intrinsics: Intrinsics,
    /// The size of the arena of nodes, in bytes.
    pub bytes: u64,
    /// Whether the tables have the class files. They do if blocks are counted.
    pub class_files: bool,
    /// Whether the file [`SWITCH`](crate::SWITCH) in the folder switches counting on and off.
    pub is_switched: bool,
    /// The method in whose extent calls are counted. None: all are.
    pub within: Option<MethodPattern>,
    /// The classes that are counted. Empty: all are.
    pub include: Vec<ClassPattern>,
    /// The folder in which each VM makes its files.
    pub folder: PathBuf,
}

/// What is wrong with the agent's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsError {
    /// They are not eight values, separated by commas.
    Shape,
    /// The first one is none of `calls`, `blocks` and `order`.
    Counted,
    /// The second one is neither `leaves` nor `expanded`.
    Intrinsics,
    /// The third one is not a number.
    Bytes(ParseIntError),
    /// The fourth one is neither `classes` nor `none`.
    ClassFiles,
    /// The fifth one is neither `always` nor `switched`.
    Switched,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => out.write_str(
                "the options are not COUNTED,INTRINSICS,BYTES,CLASSES,SWITCH,WITHIN,INCLUDE,FOLDER",
            ),
            Self::Counted => {
                out.write_str("what is counted is none of 'calls', 'blocks' and 'order'")
            }
            Self::Intrinsics => {
                out.write_str("what is done with intrinsics is neither 'leaves' nor 'expanded'")
            }
            Self::Bytes(error) => write!(out, "the size of the tree: {error}"),
            Self::ClassFiles => {
                out.write_str("what the tables have of classes is neither 'classes' nor 'none'")
            }
            Self::Switched => {
                out.write_str("when calls are counted is neither 'always' nor 'switched'")
            }
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
        let parts: Vec<_> = text.splitn(8, ',').collect();
        let [
            counted,
            intrinsics,
            bytes,
            class_files,
            switch,
            within,
            include,
            folder,
        ] = parts[..]
        else {
            return Err(OptionsError::Shape);
        };
        Ok(Self {
            counted: match counted {
                "calls" => Counted::Calls,
                "blocks" => Counted::Blocks,
                "order" => Counted::Order,
                _ => return Err(OptionsError::Counted),
            },
            intrinsics: match intrinsics {
                LEAVES => Intrinsics::Leaves,
                EXPANDED => Intrinsics::Expanded,
                _ => return Err(OptionsError::Intrinsics),
            },
            bytes: bytes.parse().map_err(OptionsError::Bytes)?,
            class_files: match class_files {
                CLASSES => true,
                NO_CLASSES => false,
                _ => return Err(OptionsError::ClassFiles),
            },
            is_switched: match switch {
                SWITCHED => true,
                ALWAYS => false,
                _ => return Err(OptionsError::Switched),
            },
            within: (!within.is_empty()).then(|| MethodPattern::new(&within.replace(COMMA, ","))),
            include: include
                .split(AND)
                .filter(|pattern| !pattern.is_empty())
                .map(ClassPattern::new)
                .collect(),
            folder: folder.into(),
        })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = match self.counted {
            Counted::Calls => "calls",
            Counted::Blocks => "blocks",
            Counted::Order => "order",
        };
        let intrinsics = match self.intrinsics {
            Intrinsics::Leaves => LEAVES,
            Intrinsics::Expanded => EXPANDED,
        };
        let class_files = match self.class_files {
            true => CLASSES,
            false => NO_CLASSES,
        };
        let switch = match self.is_switched {
            true => SWITCHED,
            false => ALWAYS,
        };
        let (bytes, folder) = (self.bytes, self.folder.display());
        let within = self.within.as_ref().map_or("", MethodPattern::as_str);
        let within = within.replace(',', COMMA);
        let include: Vec<_> = self.include.iter().map(ClassPattern::as_str).collect();
        let include = include.join(AND);
        write!(
            out,
            "{counted},{intrinsics},{bytes},{class_files},{switch},{within},{include},{folder}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_option_is_named() {
        let error = |text: &str| Options::parse(text).unwrap_err();
        assert_eq!(error("calls,leaves,1,none,always,,"), OptionsError::Shape);
        assert_eq!(error("all,leaves,1,none,always,,,/"), OptionsError::Counted);
        assert_eq!(
            error("calls,none,1,none,always,,,/"),
            OptionsError::Intrinsics
        );
        assert!(matches!(
            error("calls,leaves,x,none,always,,,/"),
            OptionsError::Bytes(_)
        ));
        let wrong = error("calls,leaves,1,all,always,,,/");
        assert_eq!(wrong, OptionsError::ClassFiles);
        let wrong = error("calls,leaves,1,none,never,,,/");
        assert_eq!(wrong, OptionsError::Switched);
    }
}
