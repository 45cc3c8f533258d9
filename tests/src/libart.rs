//! A build of ART that varid does not know: a copy of Debian's with another build-id.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The first bytes of the build-ids of Debian's libraries: ART 11, ART 11 for arm64, ART 14, ART 14 for arm64.
const BUILD_IDS: [[u8; 8]; 4] = [
    [0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78],
    [0x2d, 0xe2, 0x1a, 0x0d, 0x4c, 0xa9, 0xb5, 0x44],
    [0x61, 0x49, 0x7c, 0x95, 0xb2, 0x38, 0x87, 0xe9],
    [0x15, 0x2e, 0x5e, 0xef, 0x3e, 0x17, 0x82, 0x0c],
];
/// The function from which the layout is derived, and another name of the same length.
const LAYOUT_SYMBOL: (&[u8], &[u8]) = (
    b"\0_ZN3art6Thread7InitTidEv\0",
    b"\0_ZN3art6Thread7initTidEv\0",
);
/// `DW_OP_const4u "DEX1"; DW_OP_drop`.
const MARKER: &[u8] = b"\x0cDEX1\x13";

/// The information in a copy from which varid can derive its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The same as in Debian's. Only the build-id differs.
    All,
    /// Only the unwind information of the interpreters' bytecode. A symbol for the layout is missing.
    Bytecode,
    /// None. Frames are only unwound.
    Nothing,
}

/// A copy, in a folder that is removed with it.
#[derive(Debug)]
pub struct Libart {
    folder: tempfile::TempDir,
    /// The first hexadecimal digits of its build-id.
    pub build_id: String,
}

impl Libart {
    /// Debian's library, a known build.
    pub const KNOWN: &str = "/usr/lib/x86_64-linux-gnu/android/libart.so.0";

    /// The description by varid of a library without a table, after all checks in a process have passed.
    pub const CHECKED: &str = "known by what was found in its library (5 checks of 5 passed)";

    /// Makes a copy for which there is no table.
    pub fn unknown(says: Says) -> Result<Self> {
        Self::unknown_of(Path::new(Self::KNOWN), says)
    }

    /// Like [`unknown`](Self::unknown) for any library of Debian's, possibly for another processor. The first byte of
    /// its build-id is one higher than Debian's.
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

    /// Returns the folder of the copy, which is called android.
    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("android")
    }

    /// Returns the path of the copy.
    pub fn path(&self) -> PathBuf {
        let name = Path::new(Self::KNOWN).file_name().unwrap_or_default();
        self.directory().join(name)
    }
}
