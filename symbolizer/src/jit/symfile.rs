//! Reads ELF files for code that is generated at run time: the functions in a file that a program has registered, and the addresses of a
//! program's descriptors.

use std::io::{Read, Seek};

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym};
use object::{
    FileKind, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SectionIndex, SymbolKind,
};

use super::gdb::JitAbi;
use super::{JitFunction, shown};
use crate::elf::demangle;
use crate::{Error, Result, elf_file};

/// The most functions of one ELF file.
const MAX_FUNCTIONS: usize = 1 << 18;
/// Larger string or symbol tables are not searched.
const MAX_TABLE: u64 = 1 << 26;

/// The addresses of GDB's and ART's descriptors in an ELF file, as the file's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitDescriptors {
    /// The layout of the descriptors.
    pub abi: JitAbi,
    /// `__jit_debug_descriptor`, for ELF files.
    pub jit: Option<u64>,
    /// `__dex_debug_descriptor`, for dex files.
    pub dex: Option<u64>,
}

/// Returns the functions of an ELF file that a program has registered, with their addresses in the program. These are the symbols'
/// addresses, relative to their sections in a relocatable file.
///
/// # Errors
/// [`Error::Elf`] if it is not an ELF file.
pub fn symfile_codes(bytes: &[u8], name: &str) -> Result<Vec<JitFunction>> {
    let file = crate::parse_elf(bytes).map_err(refuse(name))?;
    let relocatable = file.kind() == object::ObjectKind::Relocatable;
    let functions = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .take(MAX_FUNCTIONS);
    Ok(functions
        .filter_map(|symbol| {
            let base = match (relocatable, symbol.section_index()) {
                (false, _) => 0,
                (true, Some(section)) => file.section_by_index(section).ok()?.address(),
                (true, None) => return None,
            };
            let start = base.checked_add(symbol.address())?;
            let end = start.checked_add(symbol.size())?;
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
            Some(JitFunction::new(start..end, demangle(&shown(name)), 0))
        })
        .collect())
}

/// Searches the symbols of a program or library for descriptors. None if it has none.
///
/// # Errors
/// [`Error::Elf`] if it is not an ELF file. `name` is used in the error.
pub fn descriptors_of<F>(file: &F, name: &str) -> Result<Option<JitDescriptors>>
where
    for<'f> &'f F: Read + Seek,
{
    let cache = ReadCache::new(file);
    let header = crate::parse_elf(&cache).map_err(refuse(name))?;
    let abi = match header.architecture() {
        _ if !header.is_little_endian() => return Ok(None),
        _ if header.is_64() => JitAbi::Bits64,
        object::Architecture::I386 => JitAbi::X86,
        _ => JitAbi::Bits32,
    };
    let names = ["__jit_debug_descriptor", "__dex_debug_descriptor"];
    let found = symbol_addresses(file, name, &names)?;
    let [jit, dex] = [0, 1].map(|index| found.get(index).copied().flatten());
    let any = jit.is_some() || dex.is_some();
    Ok(any.then_some(JitDescriptors { abi, jit, dex }))
}

/// Returns the addresses of symbols of any type in an ELF file, by their names. Only two tables of the file are read.
///
/// # Errors
/// [`Error::Elf`] if it is not an ELF file. `name` is used in the error.
pub(crate) fn symbol_addresses<F>(
    file: &F,
    name: &str,
    symbol_names: &[&str],
) -> Result<Vec<Option<u64>>>
where
    for<'f> &'f F: Read + Seek,
{
    let cache = ReadCache::new(file);
    match FileKind::parse(&cache).map_err(refuse(name))? {
        FileKind::Elf64 => {
            let file = elf_file::parse::<FileHeader64<object::Endianness>, _>(&cache);
            Ok(find(&file.map_err(refuse(name))?, symbol_names))
        }
        FileKind::Elf32 => {
            let file = elf_file::parse::<FileHeader32<object::Endianness>, _>(&cache);
            Ok(find(&file.map_err(refuse(name))?, symbol_names))
        }
        _ => Ok(vec![None; symbol_names.len()]),
    }
}

fn find<'data, H, R>(file: &ElfFile<'data, H, R>, symbol_names: &[&str]) -> Vec<Option<u64>>
where
    H: FileHeader<Endian = object::Endianness>,
    R: ReadRef<'data>,
{
    // Libraries export these symbols. Programs may have them only in `.symtab`.
    let mut found = vec![None; symbol_names.len()];
    for table in [object::elf::SHT_DYNSYM, object::elf::SHT_SYMTAB] {
        if found.contains(&None) {
            search(file, table, symbol_names, &mut found);
        }
    }
    found
}

/// Searches the table of this kind for the addresses that are still missing.
fn search<'data, H, R>(
    file: &ElfFile<'data, H, R>,
    kind: u32,
    symbol_names: &[&str],
    found: &mut [Option<u64>],
) -> Option<()>
where
    H: FileHeader<Endian = object::Endianness>,
    R: ReadRef<'data>,
{
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_section_table();
    let section = sections
        .iter()
        .find(|section| section.sh_type(endian) == kind)?;
    let linked = SectionIndex(usize::try_from(section.sh_link(endian)).ok()?);
    let linked = sections.section(linked).ok()?;
    let small = |section: &H::SectionHeader| section.sh_size(endian).into() <= MAX_TABLE;
    if !small(section) || !small(linked) {
        return None;
    }
    let strings = linked.data(endian, data).ok()?;
    let symbols: &[H::Sym] = section.data_as_array(endian, data).ok()?;
    for symbol in symbols.iter().filter(|symbol| symbol.st_shndx(endian) != 0) {
        let own = strings.get(symbol.st_name(endian) as usize..);
        let own = own.unwrap_or_default();
        for (name, place) in symbol_names.iter().zip(&mut *found) {
            let rest = own.strip_prefix(name.as_bytes());
            if place.is_none() && rest.is_some_and(|rest| rest.starts_with(b"\0")) {
                *place = Some(symbol.st_value(endian).into());
            }
        }
    }
    Some(())
}

fn refuse<E: std::error::Error>(name: &str) -> impl Fn(E) -> Error {
    let file = name.to_owned();
    move |error| Error::Elf {
        file: file.clone(),
        part: "header",
        problem: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(symfile_codes(b"dex\n035\0", "memory").is_err());
        let file = File::open("/dev/null").unwrap();
        assert!(descriptors_of(&file, "null").is_err());
    }

    #[test]
    fn this_program_has_no_descriptor() {
        let file = File::open("/proc/self/exe").unwrap();
        assert_eq!(descriptors_of(&file, "exe").unwrap(), None);
    }
}
