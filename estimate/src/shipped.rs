//! The targets that varid has.

use varid_description::{Setting, Shipped, find, parse, text_of};

use crate::{
    error::{Error, Result},
    target::Target,
    target_file,
};

/// All targets that varid has.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "jamuth",
        text: include_str!("../targets/jamuth.toml"),
    },
    Shipped {
        name: "jop-2008",
        text: include_str!("../targets/jop-2008.toml"),
    },
    Shipped {
        name: "jop-2011",
        text: include_str!("../targets/jop-2011.toml"),
    },
];

/// Returns the target that varid has by this name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    find(SHIPPED, name)
}

impl Target {
    /// Reads the target with this name, or the file with this path, and puts settings over it.
    ///
    /// # Errors
    ///
    /// There is neither, or a value is wrong.
    pub fn named(name: &str, settings: &[Setting]) -> Result<Self> {
        let text = text_of(SHIPPED, name)?;
        let text = text.ok_or_else(|| Error::NoTarget(name.to_owned()))?;
        let mut table = parse(name, &text)?;
        for setting in settings {
            setting.apply(&mut table)?;
        }
        target_file::target(name, &table)
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
