//! Is a file ELF? Object files of other systems are refused: nothing here runs them.

use object::read::elf::ElfFile;
use object::{File, FileKind, ReadRef};

/// Reads the headers of an ELF file of either class. [`File::parse`] would link the parsers of all formats that any crate enables.
///
/// # Errors
/// It is no ELF file, or its headers do not fit it.
pub fn parse_elf<'data, R: ReadRef<'data>>(data: R) -> object::Result<File<'data, R>> {
    match FileKind::parse(data)? {
        FileKind::Elf32 => ElfFile::parse(data).map(File::Elf32),
        _ => ElfFile::parse(data).map(File::Elf64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;

    #[test]
    fn elf_files_alone_are_read() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(parse_elf(&*own).unwrap().is_64());
        // A Mach-O header, and one of a PE file.
        for magic in [&b"\xcf\xfa\xed\xfe"[..], b"MZ"] {
            let mut other = magic.to_vec();
            other.resize(4096, 0);
            assert!(parse_elf(&*other).is_err());
        }
    }
}
