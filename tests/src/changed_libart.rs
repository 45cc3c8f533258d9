//! A build of ART that varid does not know: ART 11 with additional fields in its classes, built from Debian's source
//! for x86-64.

use crate::testbed::{run, testbed};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library and the compiler's debug information, as built by `tests/art11/changed.sh`.
#[derive(Debug)]
pub struct ChangedLibart(PathBuf);

impl ChangedLibart {
    /// Builds the library if necessary.
    pub fn built() -> Result<Self> {
        let release = &testbed()?.release;
        let target = release.parent().unwrap_or(Path::new("target"));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/art11/changed.sh");
        run(Command::new(script)
            .arg(release)
            .env("CARGO_TARGET_DIR", target))?;
        Ok(Self(release.join("art11-changed")))
    }

    /// Returns the path of the library.
    pub fn path(&self) -> PathBuf {
        self.0.join("libart.so.0")
    }

    /// Returns the compiler's offsets of fields, by their names in the tunnel's layout.
    pub fn compiled_layout(&self) -> Result<BTreeMap<String, u16>> {
        let path = self.0.join("layout.h");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let field = |line: &str| {
            let (name, offset) = line.strip_prefix("#define ")?.split_once(" 0x")?;
            Some((name.to_owned(), u16::from_str_radix(offset, 16).ok()?))
        };
        let fields = text.lines().map(|line| {
            field(line).with_context(|| format!("{}: not a field: {line}", path.display()))
        });
        fields.collect()
    }
}
