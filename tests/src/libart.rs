//! What is a build of ART that varid does not know? A copy of Debian's with another build-id.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The first bytes of the build-ids of Debian's: of ART 11, of ART 11 for arm64, of ART 14, of ART 14 for arm64.
const BUILD_IDS: [[u8; 8]; 4] = [
    [0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78],
    [0x2d, 0xe2, 0x1a, 0x0d, 0x4c, 0xa9, 0xb5, 0x44],
    [0x61, 0x49, 0x7c, 0x95, 0xb2, 0x38, 0x87, 0xe9],
    [0x15, 0x2e, 0x5e, 0xef, 0x3e, 0x17, 0x82, 0x0c],
];
/// A function by which a layout is found in the library, and another name of the same length.
const LAYOUT_SYMBOL: (&[u8], &[u8]) = (
    b"\0_ZN3art6Thread7InitTidEv\0",
    b"\0_ZN3art6Thread7initTidEv\0",
);
/// `DW_OP_const4u "DEX1"; DW_OP_drop`.
const MARKER: &[u8] = b"\x0cDEX1\x13";

/// What a copy says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// All that Debian's does: only its build-id is another.
    All,
    /// What its unwind information says of the bytecode that its interpreters execute; a symbol is missing that tells its layout.
    Bytecode,
    /// Nothing: frames are unwound as before, and that is all.
    Nothing,
}

/// A copy, in a folder that goes with it.
#[derive(Debug)]
pub struct Libart {
    folder: tempfile::TempDir,
    /// The first digits of its build-id.
    pub build_id: String,
}

impl Libart {
    /// Debian's library, of a build that is known.
    pub const KNOWN: &str = "/usr/lib/x86_64-linux-gnu/android/libart.so.0";

    /// What varid says of a library that no table knows, where all checks were made in a process and passed.
    pub const CHECKED: &str = "known by what was found in its library (5 checks of 5 passed)";

    /// Makes a copy that no table knows.
    pub fn unknown(says: Says) -> Result<Self> {
        Self::unknown_of(Path::new(Self::KNOWN), says)
    }

    /// The same of a copy of Debian's, for another processor perhaps. Its build-id begins with one more than Debian's.
    pub fn unknown_of(debian: &Path, says: Says) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut library = std::fs::read(debian).with_context(|| debian.display().to_string())?;
        let (at, _) = library
            .windows(BUILD_IDS[0].len())
            .enumerate()
            .find(|(_, bytes)| BUILD_IDS.iter().any(|known| bytes == known))
            .context("not a build that is known")?;
        library[at] += 1;
        if says == Says::Bytecode {
            let (name, other) = LAYOUT_SYMBOL;
            let at = library.windows(name.len()).position(|bytes| bytes == name);
            let at = at.context("no symbol that tells the layout")?;
            library[at..at + other.len()].copy_from_slice(other);
        }
        if says == Says::Nothing {
            let markers = library.windows(MARKER.len()).enumerate();
            let markers: Vec<usize> = markers
                .filter(|(_, bytes)| *bytes == MARKER)
                .map(|(at, _)| at)
                .collect();
            anyhow::ensure!(
                !markers.is_empty(),
                "{}: no marked interpreter",
                debian.display()
            );
            for at in markers {
                library[at + 1] = b'd';
            }
        }
        let build_id = library[at..at + BUILD_IDS[0].len()]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let libart = Self { folder, build_id };
        std::fs::create_dir(libart.directory())?;
        std::fs::write(libart.path(), library)?;
        Ok(libart)
    }

    /// The folder that the copy is in, called android.
    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("android")
    }

    /// The copy.
    pub fn path(&self) -> PathBuf {
        let name = Path::new(Self::KNOWN).file_name().unwrap_or_default();
        self.directory().join(name)
    }
}
