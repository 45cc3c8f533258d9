//! The targets that varid has.

use std::{fs, io, path::Path};

use crate::{
    document::parse,
    error::{Error, Result},
    settings::Setting,
    target::Target,
    target_file,
};

/// A target that varid has.
#[derive(Debug, Clone, Copy)]
pub struct ShippedTarget {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// All targets that varid has.
pub const SHIPPED: &[ShippedTarget] = &[
    ShippedTarget {
        name: "jamuth",
        text: include_str!("../targets/jamuth.toml"),
    },
    ShippedTarget {
        name: "jop-2008",
        text: include_str!("../targets/jop-2008.toml"),
    },
    ShippedTarget {
        name: "jop-2011",
        text: include_str!("../targets/jop-2011.toml"),
    },
];

/// Returns the target that varid has by this name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static ShippedTarget> {
    SHIPPED.iter().find(|target| target.name == name)
}

impl Target {
    /// Reads the target with this name, or the file with this path, and puts settings over it.
    ///
    /// # Errors
    ///
    /// There is neither, or a value is wrong.
    pub fn named(name: &str, settings: &[Setting]) -> Result<Self> {
        let (file, mut table) = match shipped(name) {
            Some(target) => (name.to_owned(), parse(name, target.text)?),
            None => {
                let text = read(name)?;
                (name.to_owned(), parse(name, &text)?)
            }
        };
        for setting in settings {
            setting.apply(&mut table)?;
        }
        target_file::target(&file, &table)
    }

    /// Reads a target from the text of a file.
    ///
    /// # Errors
    ///
    /// It is not TOML, or a value is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        target_file::target(file, &parse(file, text)?)
    }
}

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;

fn read(name: &str) -> Result<String> {
    let path = Path::new(name);
    let looks_like_a_path = name.contains('/') || name.ends_with(".toml");
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = match fs::metadata(path) {
        Ok(file) => file,
        Err(_) if !looks_like_a_path => return Err(Error::NoTarget(name.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    let problem = match (file.is_file(), file.len()) {
        (false, _) => "it is not a file",
        (true, length) if length > MAX_FILE => "it has more than 4 MB",
        _ => return fs::read_to_string(path).map_err(failed),
    };
    Err(failed(io::Error::other(problem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_of_varid_are_right() {
        for target in SHIPPED {
            let read = Target::named(target.name, &[]).unwrap();
            assert_eq!(read.name, target.name);
        }
        let jop = Target::named("jop-2011", &[]).unwrap();
        assert_eq!(jop.costs["iadd"].value, 1.0);
        assert_eq!(jop.runtime["idiv"].price.high, 1577.0);
        // 200 stands for no bound in the table.
        assert!(!jop.costs.contains_key("idiv") && !jop.costs.contains_key("fadd"));
    }

    #[test]
    fn a_name_that_is_no_target_says_what_would_be_one() {
        let error = Target::named("jop-1999", &[]).unwrap_err().to_string();
        assert!(error.contains("--targets"), "{error}");
        let error = Target::named("none/x.toml", &[]).unwrap_err().to_string();
        assert!(error.contains("cannot read none/x.toml"), "{error}");
    }
}
