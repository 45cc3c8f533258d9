//! Finds the source line at an address of the kernel.
//!
//! The kernel's ELF file, `vmlinux`, has its debug information. The kernel is loaded at a different address at every boot (KASLR). The
//! address of `_text` gives the difference from the addresses in the file.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::elf::{DebugFiles, ElfSource, SymbolOrigin};
use crate::jit::symbol_addresses;
use crate::{Error, Frame, Result};

/// The kernel is relocated by whole pages.
const PAGE: u64 = 4096;

/// Where one boot of a kernel had its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSymbol<'a> {
    /// The first symbol of the code: `_text` or `_stext`.
    pub name: &'a str,
    /// Its address.
    pub address: u64,
}

/// A kernel's ELF file, with the load address of one boot.
#[derive(Debug)]
pub struct Vmlinux {
    source: ElfSource,
    /// The difference between an address at run time and the one in the file, modulo 2^64.
    moved: u64,
}

impl Vmlinux {
    /// Searches a kernel's file by its release (`uname -r`) and build-id, in the places where systems keep it and in the symbol folders of
    /// `debug_files`. None if it is in none of them. `text` is where the running kernel has its code.
    ///
    /// # Errors
    /// As for [`Vmlinux::open`], for the first file of this kernel, if none of its files can be used.
    pub fn find(
        release: &str,
        build_id: &[u8],
        text: TextSymbol<'_>,
        debug_files: &DebugFiles,
    ) -> Result<Option<Self>> {
        if build_id.is_empty() {
            return Ok(None);
        }
        let mut fault = None;
        let in_folders = debug_files.file_with(build_id);
        for path in in_folders.into_iter().chain(places(release, build_id)) {
            let Ok(source) = ElfSource::open(&path, debug_files) else {
                continue;
            };
            if source.symbols().build_id() == Some(build_id) {
                match Self::place(source, &path, text) {
                    Ok(found) => return Ok(Some(found)),
                    Err(error) => fault = fault.or(Some(error)),
                }
            }
        }
        fault.map_or(Ok(None), Err)
    }

    /// Opens the file of a kernel that was at `text`.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Elf`] if it cannot be read, has another build-id, or no such symbol. [`Error::KernelHidden`] if the
    /// address is zero, which is what readers without privileges see.
    pub fn open(
        path: &Path,
        build_id: &[u8],
        text: TextSymbol<'_>,
        debug_files: &DebugFiles,
    ) -> Result<Self> {
        let source = ElfSource::open(path, debug_files)?;
        if source.symbols().build_id().unwrap_or_default() != build_id {
            return Err(wrong(
                path,
                "build-id",
                "it is that of another kernel".to_owned(),
            ));
        }
        Self::place(source, path, text)
    }

    fn place(source: ElfSource, path: &Path, text: TextSymbol<'_>) -> Result<Self> {
        let TextSymbol { name, address } = text;
        if address == 0 {
            return Err(Error::KernelHidden);
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let found = symbol_addresses(&file, &path.display().to_string(), &[name])?;
        let Some(Some(in_file)) = found.first() else {
            return Err(wrong(path, "symbols", format!("there is no `{name}`")));
        };
        let moved = address.wrapping_sub(*in_file);
        if moved % PAGE != 0 {
            let problem = format!(
                "`{name}` is at {in_file:#x}, and was at {address:#x}: no whole pages apart"
            );
            return Err(wrong(path, "symbols", problem));
        }
        Ok(Self { source, moved })
    }

    /// Returns the functions at an address of the running kernel, innermost first. Empty if the address is not in the kernel itself (but in
    /// a module or a BPF program).
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let address = address.wrapping_sub(self.moved);
        let symbol = self.source.symbols().lookup(address);
        match symbol.filter(|symbol| symbol.origin == SymbolOrigin::Symbol) {
            Some(_) => self.source.frames(address),
            None => Vec::new(),
        }
    }

    /// The offset by which the kernel was relocated from the addresses in its file, modulo 2^64.
    #[must_use]
    pub const fn moved_by(&self) -> u64 {
        self.moved
    }
}

/// The paths at which systems keep the kernel's file with its debug information.
fn places(release: &str, build_id: &[u8]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some((first, rest)) = hex.split_at_checked(2) {
        places.push(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug").into());
    }
    // The release comes from a recording, so it must not lead to other folders.
    if !release.is_empty() && !release.contains('/') {
        places.extend(
            [
                format!("/usr/lib/debug/boot/vmlinux-{release}"),
                format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
                format!("/lib/modules/{release}/build/vmlinux"),
                format!("/boot/vmlinux-{release}"),
            ]
            .map(PathBuf::from),
        );
    }
    places
}

fn wrong(path: &Path, part: &'static str, problem: String) -> Error {
    Error::Elf {
        file: path.display().to_string(),
        part,
        problem,
    }
}
