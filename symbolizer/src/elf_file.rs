//! Parses ELF files whose tables have a reasonable size. Object files of other systems are rejected: they cannot run here.

use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, File, FileKind, ReadRef, elf};

/// The most bytes that a file's headers, symbols and notes may have: `object` reads each of them completely.
const MAX_TABLES: u64 = 1 << 28;

/// Why an ELF file is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfFileError {
    /// It is not an ELF file, or its headers are inconsistent with it.
    #[error(transparent)]
    Format(#[from] object::Error),
    /// A sparse file can claim tables of any size.
    #[error("its headers, symbols and notes take {0} bytes, more than are read")]
    TooLarge(u64),
}

/// Reads the headers of an ELF file of either class. [`File::parse`] would link the parsers of all formats that any crate enables, and
/// allocate as much memory as the headers claim.
///
/// # Errors
/// It is not an ELF file, its headers are inconsistent with it, or its headers, symbols and notes take more than 256 MB.
pub fn parse_elf<'data, R: ReadRef<'data>>(data: R) -> Result<File<'data, R>, ElfFileError> {
    match FileKind::parse(data)? {
        FileKind::Elf32 => Ok(File::Elf32(parse(data)?)),
        _ => Ok(File::Elf64(parse(data)?)),
    }
}

/// Reads the headers of an ELF file of one class.
pub(crate) fn parse<'data, Elf, R>(data: R) -> Result<ElfFile<'data, Elf, R>, ElfFileError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = |count: usize, entry: usize| (count as u64).saturating_mul(entry as u64);
    let programs = table(header.phnum(endian, data)?, size_of::<Elf::ProgramHeader>());
    let sections = table(header.shnum(endian, data)?, size_of::<Elf::SectionHeader>());
    let headers = within_bounds([programs, sections])?;
    let notes = header
        .program_headers(endian, data)?
        .iter()
        .filter(|program| program.p_type(endian) == elf::PT_NOTE)
        .map(|program| program.p_filesz(endian).into());
    let read_whole = [
        elf::SHT_SYMTAB,
        elf::SHT_DYNSYM,
        elf::SHT_SYMTAB_SHNDX,
        elf::SHT_NOTE,
    ];
    let tables = header
        .section_headers(endian, data)?
        .iter()
        .filter(|section| read_whole.contains(&section.sh_type(endian)))
        .map(|section| section.sh_size(endian).into());
    within_bounds(std::iter::once(headers).chain(notes).chain(tables))?;
    Ok(ElfFile::parse(data)?)
}

/// Returns the sum of these sizes in bytes, if it is within the limit.
fn within_bounds(sizes: impl IntoIterator<Item = u64>) -> Result<u64, ElfFileError> {
    let sum = sizes.into_iter().fold(0, u64::saturating_add);
    match sum <= MAX_TABLES {
        true => Ok(sum),
        false => Err(ElfFileError::TooLarge(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ReadCache};

    #[test]
    fn elf_files_alone_are_read() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(parse_elf(&*own).unwrap().is_64());
        // The magic numbers of a Mach-O file and of a PE file.
        for magic in [&b"\xcf\xfa\xed\xfe"[..], b"MZ"] {
            let mut other = magic.to_vec();
            other.resize(4096, 0);
            assert!(parse_elf(&*other).is_err());
        }
    }

    /// A sparse file of 16 GB with one program header and two section headers.
    fn sparse(program: (u32, u64), section: (u32, u64), sections: (u16, u64)) -> std::fs::File {
        let mut bytes = vec![0; 64 + 56 + 2 * 64];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"\x7fELF\x02\x01\x01");
        // e_type, e_machine, e_version.
        put(16, &[3, 0, 62, 0, 1]);
        put(32, &64u64.to_le_bytes());
        put(40, &120u64.to_le_bytes());
        // e_phentsize, e_phnum, e_shentsize.
        put(54, &[56, 0, 1, 0, 64, 0]);
        put(60, &sections.0.to_le_bytes());
        // p_type, p_filesz.
        put(64, &program.0.to_le_bytes());
        put(64 + 32, &program.1.to_le_bytes());
        // sh_size of the first, sh_type and sh_size of the second.
        put(120 + 32, &sections.1.to_le_bytes());
        put(184 + 4, &section.0.to_le_bytes());
        put(184 + 32, &section.1.to_le_bytes());
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        file.set_len(1 << 34).unwrap();
        file
    }

    #[test]
    fn a_sparse_file_does_not_take_the_memory_that_its_tables_claim() {
        let huge = 24 << 29;
        for (program, section, sections) in [
            ((0, 0), (elf::SHT_SYMTAB, huge), (2, 0)),
            ((0, 0), (elf::SHT_DYNSYM, huge), (2, 0)),
            ((0, 0), (elf::SHT_NOTE, huge), (2, 0)),
            ((elf::PT_NOTE, huge), (0, 0), (2, 0)),
            // As many section headers as fit into the file.
            ((0, 0), (0, 0), (0, (1 << 28) - 2)),
        ] {
            let file = sparse(program, section, sections);
            let cache = ReadCache::new(&file);
            let refused = parse_elf(&cache).unwrap_err();
            assert!(matches!(refused, ElfFileError::TooLarge(_)), "{refused}");
        }
        let file = sparse((0, 0), (0, huge), (2, 0));
        let cache = ReadCache::new(&file);
        assert!(parse_elf(&cache).is_err_and(|error| !matches!(error, ElfFileError::TooLarge(_))));
    }
}
