//! The processors that varid has, and how one is found by name or file.

use std::{fs, io, path::Path};

use crate::{
    description,
    document::{Table, parse},
    error::{Error, Result},
    parameters::configure,
    processor::Processor,
    settings::Setting,
};

/// A processor that varid has.
#[derive(Debug, Clone, Copy)]
pub struct ShippedProcessor {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub text: &'static str,
}

/// All processors that varid has.
pub const SHIPPED: &[ShippedProcessor] = &[
    ShippedProcessor {
        name: "cv32e40p",
        text: include_str!("../targets/cv32e40p.toml"),
    },
    ShippedProcessor {
        name: "ibex",
        text: include_str!("../targets/ibex.toml"),
    },
    ShippedProcessor {
        name: "picorv32",
        text: include_str!("../targets/picorv32.toml"),
    },
    ShippedProcessor {
        name: "vexriscv",
        text: include_str!("../targets/vexriscv.toml"),
    },
];

/// Returns the processor that varid has by this name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static ShippedProcessor> {
    SHIPPED.iter().find(|processor| processor.name == name)
}

impl Processor {
    /// Reads the processor with this name, or the file with this path, and puts settings over it.
    ///
    /// # Errors
    ///
    /// There is neither, or a value is wrong.
    pub fn named(name: &str, settings: &[Setting]) -> Result<Self> {
        let table = match shipped(name) {
            Some(processor) => parse(name, processor.text)?,
            None => parse(name, &read(name)?)?,
        };
        Self::of_table(name, table, settings)
    }

    /// Reads a processor from the text of a file, and puts settings over it.
    ///
    /// # Errors
    ///
    /// It is not TOML, or a value is wrong.
    pub fn parse(file: &str, text: &str, settings: &[Setting]) -> Result<Self> {
        Self::of_table(file, parse(file, text)?, settings)
    }

    fn of_table(file: &str, table: Table, settings: &[Setting]) -> Result<Self> {
        description::processor(file, configure(file, table, settings)?)
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
        Err(_) if !looks_like_a_path => return Err(Error::NoProcessor(name.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    let problem = match (file.is_file(), file.len()) {
        (false, _) => "it is not a file",
        (true, length) if length > MAX_FILE => "it has more than 4 MB",
        _ => return fs::read_to_string(path).map_err(failed),
    };
    Err(failed(io::Error::other(problem)))
}
