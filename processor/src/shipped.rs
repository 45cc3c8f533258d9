//! The processors that varid has, and how one is found by name or file.

use varid_description::{Setting, Shipped, find, parse, text_of};

use crate::{
    description,
    error::{Error, Result},
    parameters::configure,
    processor::Processor,
};

/// All processors that varid has.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "cv32e40p",
        text: include_str!("../targets/cv32e40p.toml"),
    },
    Shipped {
        name: "ibex",
        text: include_str!("../targets/ibex.toml"),
    },
    Shipped {
        name: "picorv32",
        text: include_str!("../targets/picorv32.toml"),
    },
    Shipped {
        name: "vexriscv",
        text: include_str!("../targets/vexriscv.toml"),
    },
];

/// Returns the processor that varid has by this name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    find(SHIPPED, name)
}

impl Processor {
    /// Reads the processor with this name, or the file with this path, and puts settings over it.
    ///
    /// # Errors
    ///
    /// There is neither, or a value is wrong.
    pub fn named(name: &str, settings: &[Setting]) -> Result<Self> {
        let text = text_of(SHIPPED, name)?;
        let text = text.ok_or_else(|| Error::NoProcessor(name.to_owned()))?;
        Self::parse(name, &text, settings)
    }

    /// Reads a processor from the text of a file, and puts settings over it.
    ///
    /// # Errors
    ///
    /// It is not TOML, or a value is wrong.
    pub fn parse(file: &str, text: &str, settings: &[Setting]) -> Result<Self> {
        let configured = configure(file, parse(file, text)?, settings)?;
        Ok(description::processor(file, configured)?)
    }
}
