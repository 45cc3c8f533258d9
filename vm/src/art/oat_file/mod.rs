//! Parses the header of an oat file, which lists the dex files that it was compiled from.
//!
//! Source: runtime/oat.h and oat_file.cc of ART 11 and 14, whose oat files are of versions 183 and 230. Offsets count from the symbol `oatdata`.

mod methods;
#[cfg(test)]
mod tests;

pub(crate) use methods::{CompiledCode, CompiledMethods};

use crate::art::code_format::CodeFormat;
use crate::art::code_info::{CodeInfo, CodeInfoError};
use std::borrow::Cow;
use varid_model::Machine;

/// The most dex files that are read. Real oat files have fewer than a hundred.
pub(crate) const MAX_DEX_FILES: u32 = 1024;

/// Why an oat file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OatError {
    /// It is not an oat file.
    #[error("no oat file: it starts with {0:x?} and not with 'oat\\n'")]
    Magic([u8; 4]),
    /// It is of another version of ART.
    #[error(
        "an oat file of version {0:?}: only 183, of Android 11, and 230, of Android 14, can be read"
    )]
    Version(String),
    /// It is for a machine that ART does not know.
    #[error("an oat file for instruction set {0}, which is unknown")]
    InstructionSet(u32),
    /// It ends too early, or refers to a place beyond its end.
    #[error("oat file: {field} at offset {offset:#x}: lies beyond the end")]
    CutShort {
        /// The field that was read, by ART's name.
        field: &'static str,
        /// Offset from `oatdata`.
        offset: u32,
    },
    /// It has more methods than it has room for: dex files or classes share their tables.
    #[error("oat file: it has more methods than there is room for")]
    TooManyMethods,
    /// A class has a type that ART does not write.
    #[error("oat file: class at offset {offset:#x}: its type is {kind}, not 0, 1 or 2")]
    ClassType {
        /// Offset from `oatdata`.
        offset: u32,
        /// The type.
        kind: u16,
    },
}

/// The part of an oat file from `oatdata` to the end of its code, as mapped.
#[derive(Debug, Clone)]
pub(crate) struct OatFile<'a> {
    data: OatData<'a>,
    /// The release whose compiler wrote it.
    pub(crate) format: CodeFormat,
    /// The machine that its code is for.
    pub(crate) machine: Machine,
    /// Offset of its code.
    pub(crate) executable_offset: u32,
    /// The dex files that it was compiled from, in the order of its own numbers.
    pub(crate) dex_files: Vec<OatDexFile<'a>>,
}

/// A dex file that an oat file was compiled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OatDexFile<'a> {
    /// Its path when it was compiled. For the second dex file of an archive: `path!classes2.dex`.
    pub(crate) location: Cow<'a, str>,
    /// The checksum of its location: for an archive, the entry's CRC-32; otherwise that of the dex file.
    pub(crate) checksum: u32,
    /// Its offset in the .vdex file beside the oat file. None: it was not copied, and is at its location.
    pub(crate) vdex_offset: Option<u32>,
    /// Offset of the offsets of its classes.
    class_offsets: u32,
}

/// Fields of the header that differ between releases in position or presence.
#[derive(Debug)]
struct Layout {
    /// Offset of `executable_offset`.
    executable_offset: u32,
    /// Offset of `key_value_store_size`, the last field.
    key_value_store_size: u32,
    /// The offsets of a dex file's tables that follow the offset of its classes.
    tables: &'static [&'static str],
}

/// ART 14 has `bcp_bss_info_offset` before `executable_offset`, and `nterp_trampoline_offset` before `key_value_store_size`.
const ANDROID_11: Layout = Layout {
    executable_offset: 28,
    key_value_store_size: 56,
    tables: &[
        "lookup_table_offset",
        "dex_layout_sections_offset",
        "method_bss_mapping_offset",
        "type_bss_mapping_offset",
        "string_bss_mapping_offset",
    ],
};

const ANDROID_14: Layout = Layout {
    executable_offset: 32,
    key_value_store_size: 64,
    tables: &[
        "lookup_table_offset",
        "dex_layout_sections_offset",
        "method_bss_mapping_offset",
        "type_bss_mapping_offset",
        "public_type_bss_mapping_offset",
        "package_type_bss_mapping_offset",
        "string_bss_mapping_offset",
    ],
};

impl Layout {
    const fn of(format: CodeFormat) -> &'static Self {
        match format {
            CodeFormat::Android11 => &ANDROID_11,
            CodeFormat::Android14 => &ANDROID_14,
        }
    }
}

impl<'a> OatFile<'a> {
    /// Parses the header and the list of dex files, up to the first one that cannot be read, and at most [`MAX_DEX_FILES`].
    ///
    /// # Errors
    /// [`OatError`]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, OatError> {
        let data = OatData(bytes);
        let magic = data.array("magic", 0)?;
        if &magic != b"oat\n" {
            return Err(OatError::Magic(magic));
        }
        let version = data.array("version", 4)?;
        let Some(format) = CodeFormat::of_oat_file(version) else {
            let text = String::from_utf8_lossy(&version);
            return Err(OatError::Version(text.trim_end_matches('\0').to_owned()));
        };
        let layout = Layout::of(format);
        let instruction_set = data.u32("instruction_set", 12)?;
        // ART 14 numbers RISC-V before x86.
        let machine = match (instruction_set, format) {
            (1 | 3, _) => Machine::Arm,
            (2, _) => Machine::Aarch64,
            (4, CodeFormat::Android11) | (5, CodeFormat::Android14) => Machine::X86,
            (5, CodeFormat::Android11) | (6, CodeFormat::Android14) => Machine::X86_64,
            _ => return Err(OatError::InstructionSet(instruction_set)),
        };
        let count = data.u32("dex_file_count", 20)?;
        let mut next = data.u32("oat_dex_files_offset", 24)?;
        let executable_offset = data.u32("executable_offset", layout.executable_offset)?;
        let mut dex_files = Vec::new();
        for _ in 0..count.min(MAX_DEX_FILES) {
            match OatDexFile::read(data, layout, &mut next) {
                Ok(dex_file) => dex_files.push(dex_file),
                Err(error) if dex_files.is_empty() => return Err(error),
                // The position of the next one is unknown. Those before it are complete.
                Err(_) => break,
            }
        }
        Ok(Self {
            data,
            format,
            machine,
            executable_offset,
            dex_files,
        })
    }

    /// Parses the CodeInfo of a method's code.
    ///
    /// # Errors
    /// [`CodeInfoError`]
    pub(crate) fn code_info(&self, code: &CompiledCode) -> Result<CodeInfo<'a>, CodeInfoError> {
        CodeInfo::parse_at(self.format, self.machine, self.data.0, code.code_info)
    }

    /// Returns the locations of the boot class path that the file was compiled against, or that it belongs to itself. A location may be an
    /// archive of several dex files.
    pub(crate) fn boot_class_path(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let locations = self.stored(b"bootclasspath").unwrap_or_default();
        let locations = locations.split(|byte| *byte == b':');
        locations
            .filter(|location| !location.is_empty())
            .map(String::from_utf8_lossy)
    }

    /// Returns the value that the header stores under a name. Names and values alternate, and each ends with a zero.
    fn stored(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut at = Layout::of(self.format).key_value_store_size;
        let size = self.data.next_u32("key_value_store_size", &mut at).ok()?;
        let store = self.data.bytes("key_value_store", at, size).ok()?;
        let mut texts = store.split(|byte| *byte == 0);
        while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
            if key == name {
                return Some(value);
            }
        }
        None
    }
}

impl<'a> OatDexFile<'a> {
    /// Reads the entry at `next`, and advances `next` past it.
    fn read(data: OatData<'a>, layout: &Layout, next: &mut u32) -> Result<Self, OatError> {
        let length = data.next_u32("dex_file_location_size", next)?;
        let location = data.bytes("dex_file_location", *next, length)?;
        *next = next.saturating_add(length);
        let checksum = data.next_u32("dex_file_checksum", next)?;
        let offset = data.next_u32("dex_file_offset", next)?;
        let class_offsets = data.next_u32("class_offsets_offset", next)?;
        for table in layout.tables {
            data.next_u32(table, next)?;
        }
        Ok(Self {
            location: String::from_utf8_lossy(location),
            checksum,
            vdex_offset: (offset != 0).then_some(offset),
            class_offsets,
        })
    }
}

/// Bytes from `oatdata` on.
#[derive(Debug, Clone, Copy)]
struct OatData<'a>(&'a [u8]);

impl<'a> OatData<'a> {
    fn bytes(self, field: &'static str, offset: u32, length: u32) -> Result<&'a [u8], OatError> {
        let start = offset as usize;
        let end = start.saturating_add(length as usize);
        self.0
            .get(start..end)
            .ok_or(OatError::CutShort { field, offset })
    }

    fn array<const N: usize>(self, field: &'static str, offset: u32) -> Result<[u8; N], OatError> {
        self.0
            .get(offset as usize..)
            .and_then(|rest| rest.first_chunk())
            .copied()
            .ok_or(OatError::CutShort { field, offset })
    }

    fn u16(self, field: &'static str, offset: u32) -> Result<u16, OatError> {
        self.array(field, offset).map(u16::from_le_bytes)
    }

    fn u32(self, field: &'static str, offset: u32) -> Result<u32, OatError> {
        self.array(field, offset).map(u32::from_le_bytes)
    }

    /// Reads the number at `next`, and advances `next` past it.
    fn next_u32(self, field: &'static str, next: &mut u32) -> Result<u32, OatError> {
        let value = self.u32(field, *next)?;
        *next = next.saturating_add(4);
        Ok(value)
    }
}
