//! Which dex files is an oat file of? Its header says it.
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

/// Dex files that are read: real files have fewer than a hundred.
pub(crate) const MAX_DEX_FILES: u32 = 1024;

/// What keeps an oat file from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OatError {
    /// It is none.
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
    /// It ends too early, or says a wrong place.
    #[error("oat file: {field} at offset {offset:#x}: lies beyond the end")]
    CutShort {
        /// What was to be read, as ART names it.
        field: &'static str,
        /// Offset from `oatdata`.
        offset: u32,
    },
    /// Dex files or classes have the same tables.
    #[error("oat file: it has more methods than there is room for")]
    TooManyMethods,
    /// A class is none that ART writes.
    #[error("oat file: class at offset {offset:#x}: its type is {kind}, not 0, 1 or 2")]
    ClassType {
        /// Offset from `oatdata`.
        offset: u32,
        /// The type.
        kind: u16,
    },
}

/// The part of an oat file from `oatdata` to the end of its code, as it is mapped.
#[derive(Debug, Clone)]
pub(crate) struct OatFile<'a> {
    data: OatData<'a>,
    /// Which release's compiler has written it.
    pub(crate) format: CodeFormat,
    /// What its code is for.
    pub(crate) machine: Machine,
    /// Where its code starts.
    pub(crate) executable_offset: u32,
    /// What it was compiled from, in the order of its own numbers.
    pub(crate) dex_files: Vec<OatDexFile<'a>>,
}

/// A dex file that an oat file was compiled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OatDexFile<'a> {
    /// Its path when it was compiled; of the second dex file of an archive `path!classes2.dex`.
    pub(crate) location: Cow<'a, str>,
    /// The checksum of its location: of an archive the entry's CRC-32, else of the dex file its own.
    pub(crate) checksum: u32,
    /// Where it is in the .vdex file beside the oat file. None: it is at its location, not copied.
    pub(crate) vdex_offset: Option<u32>,
    /// Where the offsets of its classes are.
    class_offsets: u32,
}

/// What the header of a release's oat files has at another place, or nowhere.
#[derive(Debug)]
struct Layout {
    /// Where `executable_offset` is.
    executable_offset: u32,
    /// Where `key_value_store_size` is, which is the last.
    key_value_store_size: u32,
    /// Offsets of a dex file's tables behind that of its classes.
    tables: &'static [&'static str],
}

/// Before `executable_offset` ART 14 has `bcp_bss_info_offset`, before `key_value_store_size` it has `nterp_trampoline_offset`.
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
    /// Reads the header and the list of dex files, up to one that cannot be read, or up to [`MAX_DEX_FILES`].
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
        // ART 14 has RISC-V before x86.
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
                // Where the next one begins nobody tells; those before it are whole.
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

    /// What the compiler noted down of a method's code.
    ///
    /// # Errors
    /// [`CodeInfoError`]
    pub(crate) fn code_info(&self, code: &CompiledCode) -> Result<CodeInfo<'a>, CodeInfoError> {
        CodeInfo::parse_at(self.format, self.machine, self.data.0, code.code_info)
    }

    /// The locations of the boot class path that it was compiled against, or that it is of itself; a location may be an archive of several dex files.
    pub(crate) fn boot_class_path(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let locations = self.stored(b"bootclasspath").unwrap_or_default();
        let locations = locations.split(|byte| *byte == b':');
        locations
            .filter(|location| !location.is_empty())
            .map(String::from_utf8_lossy)
    }

    /// What the header has stored by a name: names and their values follow each other, each ends with a zero.
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
    /// Reads what is at an offset, which moves behind it.
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

    /// The number at an offset, which moves behind it.
    fn next_u32(self, field: &'static str, next: &mut u32) -> Result<u32, OatError> {
        let value = self.u32(field, *next)?;
        *next = next.saturating_add(4);
        Ok(value)
    }
}
