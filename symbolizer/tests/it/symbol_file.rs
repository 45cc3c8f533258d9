//! Tests that the part of an ELF file that a session keeps gives the same names as the file.

use crate::common;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::read::elf::{ElfFile64, SectionHeader};
use object::{Object, ObjectSection, SectionFlags};
use varid_symbolizer::elf::{
    DebugFiles, ElfSource, FileBytes, MachineCode, SymbolFile, SymbolFileLimits, SymbolOrigin,
};

const ALL: SymbolFileLimits = SymbolFileLimits {
    names: 1 << 30,
    debug: 1 << 30,
};

/// The part of a file that is kept, and whether a limit has cut it.
fn kept(bytes: &[u8], limits: SymbolFileLimits) -> (Vec<u8>, bool) {
    let part = SymbolFile::of_bytes(bytes, "library.so", limits).unwrap();
    let mut written = Vec::new();
    part.write(&mut written).unwrap();
    (written, part.is_cut())
}

fn source(bytes: &[u8]) -> ElfSource {
    ElfSource::from_bytes(bytes.to_vec(), "library.so", &DebugFiles::none()).unwrap()
}

/// The small library, compiled with these arguments. None if there is no compiler; the reason is printed.
fn library(folder: &Path, arguments: &[&str]) -> Option<PathBuf> {
    let native = std::fs::read_to_string(common::fixtures().join("native.c")).unwrap();
    let fixed = ["-O2", "-shared", "-fPIC", "-Wl,--build-id"];
    let arguments = [&fixed, arguments].concat();
    common::compiled(folder, ("native.c", &native), "library.so", &arguments)
}

/// Checks that each offset has the same address, and each address the same functions and lines.
fn assert_same_names(whole: &[u8], part: &[u8]) {
    let (of_file, of_part) = (source(whole), source(part));
    assert_eq!(of_part.symbols().build_id(), of_file.symbols().build_id());
    for at in 0..whole.len() as u64 {
        let address = of_file.symbols().vaddr(at);
        assert_eq!(of_part.symbols().vaddr(at), address, "offset {at:#x}");
        assert_eq!(of_part.frames(at), of_file.frames(at), "address {at:#x}");
        let bounds = |source: &ElfSource| source.symbols().function_bounds(at);
        assert_eq!(bounds(&of_part), bounds(&of_file), "address {at:#x}");
    }
}

#[test]
fn the_kept_part_of_a_library_names_each_address_as_the_library_does() {
    for arguments in [
        &["-g"][..],
        &["-g", "-gz=zlib"],
        &["-g", "-gz=zlib-gnu"],
        &["-s"],
        &["-g", "-Wl,-z,noseparate-code"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let Some(file) = library(folder.path(), arguments) else {
            return;
        };
        let whole = std::fs::read(&file).unwrap();
        let (part, is_cut) = kept(&whole, ALL);
        assert!(!is_cut);
        assert_same_names(&whole, &part);
        // Compare what readers of other projects find.
        let path = folder.path().join("part.so");
        std::fs::write(&path, &part).unwrap();
        let printed = |program, arguments: &[&str], path: &Path| {
            let printed = common::run(program, &[arguments, &[common::text(path)]].concat());
            printed.map(|text| text.replace(common::text(path), "FILE"))
        };
        for (program, arguments) in [
            ("nm", &["--defined-only", "-S"][..]),
            ("nm", &["-D", "--defined-only", "-S"]),
            ("readelf", &["-n"]),
        ] {
            let (of_file, of_part) = (
                printed(program, arguments, &file),
                printed(program, arguments, &path),
            );
            // nm derives a symbol's type from the content of its section.
            let plain = |text: Option<String>| {
                let words = |line: &str| {
                    let words = line.split_whitespace().filter(|word| word.len() > 1);
                    words.collect::<Vec<_>>().join(" ")
                };
                text.map(|text| text.lines().map(words).collect::<Vec<_>>())
            };
            assert_eq!(plain(of_part), plain(of_file), "{program} {arguments:?}");
        }
    }
}

#[test]
fn a_kept_part_has_no_code() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &["-g"]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let (part, _) = kept(&whole, ALL);
    let symbols = source(&whole);
    let shown = (0..whole.len() as u64)
        .find_map(|at| {
            let symbol = symbols.symbols().lookup(at)?;
            (symbol.raw == "shown").then_some(symbol.start..symbol.end)
        })
        .unwrap();
    let code = MachineCode::read(&file, None, &[], shown.clone()).unwrap();
    assert!(!part.windows(16).any(|bytes| bytes == &code.bytes[..16]));
    let path = folder.path().join("part.so");
    std::fs::write(&path, &part).unwrap();
    let refused = MachineCode::read(&path, None, &[], shown).unwrap_err();
    assert!(refused.to_string().contains("no instructions"), "{refused}");
}

/// perf before 6.0 uses the offsets to convert the addresses of a program's symbols to file addresses.
#[test]
fn sections_without_content_have_the_offsets_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &["-g"]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let (part, _) = kept(&whole, ALL);
    let (of_file, of_part) = (section_headers(&whole), section_headers(&part));
    assert!(of_part.len() >= of_file.len());
    let mut left_out = 0;
    for ((_, address, offset), (kind, kept_address, kept_offset)) in of_file.iter().zip(&of_part) {
        assert_eq!(kept_address, address);
        if *kind == object::elf::SHT_NOBITS {
            assert_eq!(kept_offset, offset, "of the section at {address:#x}");
            left_out += usize::from(*address > 0);
        }
    }
    assert!(left_out > 3);
}

/// Kind, address and offset of each section.
fn section_headers(bytes: &[u8]) -> Vec<(u32, u64, u64)> {
    let file = ElfFile64::<Endianness>::parse(bytes).unwrap();
    let endian = file.endian();
    let headers = file.elf_section_table().iter();
    let fields = headers.map(|header| {
        let kind = header.sh_type(endian);
        (kind, header.sh_addr(endian), header.sh_offset(endian))
    });
    fields.collect()
}

/// A file with zeros after the first bytes. Counts how much of it is read.
#[derive(Debug)]
struct Sparse<'s> {
    bytes: &'s [u8],
    read: &'s Cell<u64>,
}

impl FileBytes for Sparse<'_> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.read.set(self.read.get() + buffer.len() as u64);
        let known = self.bytes.get(offset as usize..).unwrap_or_default();
        let known = &known[..known.len().min(buffer.len())];
        buffer.fill(0);
        buffer[..known.len()].copy_from_slice(known);
        Ok(())
    }
}

/// A sparse file takes little disk space, but can claim gigabytes of sections, names and program headers.
#[test]
fn tables_that_a_sparse_file_claims_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &[]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let headers = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let names = headers + 64 * usize::from(u16::from_le_bytes([whole[62], whole[63]]));
    let mut many_sections = whole.clone();
    many_sections[60..62].fill(0);
    many_sections[headers + 32..headers + 40].copy_from_slice(&(1u64 << 20).to_le_bytes());
    let mut many_programs = whole.clone();
    many_programs[56..58].fill(0xff);
    many_programs[headers + 44..headers + 48].copy_from_slice(&(1u32 << 20).to_le_bytes());
    let mut long_names = whole.clone();
    long_names[names + 32..names + 40].copy_from_slice(&(1u64 << 29).to_le_bytes());
    for (bytes, is_refused) in [
        (many_sections, false),
        (many_programs, true),
        (long_names, false),
    ] {
        let read = Cell::new(0);
        let sparse = Sparse {
            bytes: &bytes,
            read: &read,
        };
        let part = SymbolFile::of_part(sparse, 0..1 << 30, "library.so", ALL);
        assert_eq!(part.is_err(), is_refused);
        assert!(read.get() < 32 << 20, "{} bytes", read.get());
    }
}

#[test]
fn a_file_without_section_headers_is_kept_by_what_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &[]) else {
        return;
    };
    let mut whole = std::fs::read(&file).unwrap();
    whole[40..48].fill(0);
    whole[60..64].fill(0);
    let (part, _) = kept(&whole, ALL);
    assert_same_names(&whole, &part);
    let names = source(&part);
    let named = (0..whole.len() as u64).filter_map(|at| names.symbols().lookup(at));
    let mut origins = named.map(|symbol| symbol.origin);
    assert!(origins.any(|origin| origin == SymbolOrigin::Symbol));
    let path = folder.path().join("part.so");
    std::fs::write(&path, &part).unwrap();
    // perf finds the build-id section by name.
    if let Some(notes) = common::run("readelf", &["-n", common::text(&path)]) {
        let build_id = varid_symbolizer::hex(names.symbols().build_id().unwrap());
        assert!(notes.contains(".note.gnu.build-id") && notes.contains(&build_id));
    }
}

#[test]
fn a_limit_leaves_out_debug_information_first_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &["-g"]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let names = SymbolFileLimits { debug: 0, ..ALL };
    let (part, is_cut) = kept(&whole, names);
    assert!(is_cut);
    let (of_file, of_part) = (source(&whole), source(&part));
    for at in 0..whole.len() as u64 {
        let name = |source: &ElfSource| source.symbols().lookup(at).map(|it| it.raw.into_owned());
        assert_eq!(name(&of_part), name(&of_file));
        let mut frames = of_part.frames(at).into_iter();
        assert!(frames.all(|frame| frame.location.is_none()));
    }
    // The limit must at least allow the headers, which have the mappings and the build-id.
    let limits = |names| SymbolFileLimits { names, debug: 0 };
    let is_refused = |names| SymbolFile::of_bytes(&*whole, "library.so", limits(names)).is_err();
    assert!(is_refused(0));
    let headers = (0..1 << 14).find(|&names| !is_refused(names)).unwrap();
    let (part, is_cut) = kept(&whole, limits(headers));
    assert!(is_cut && part.len() as u64 <= headers);
    let of_part = source(&part);
    assert_eq!(of_part.symbols().build_id(), of_file.symbols().build_id());
    assert_eq!(
        of_part.symbols().vaddr(0x1000),
        of_file.symbols().vaddr(0x1000)
    );
    assert_eq!(of_part.symbols().symbol_count(), 0);
}

/// For any headers of a file, the kept part is written within the limits, and names no other functions.
#[test]
fn a_broken_file_is_kept_as_broken() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &["-g"]) else {
        return;
    };
    let original = std::fs::read(&file).unwrap();
    let headers = u64::from_le_bytes(original[40..48].try_into().unwrap());
    let mut numbers = common::Numbers(0x5eed);
    let limits = SymbolFileLimits {
        names: 1 << 20,
        debug: 1 << 20,
    };
    for _ in 0..2_000 {
        let mut bytes = original.clone();
        for _ in 0..=numbers.below(8) {
            // Change the file header and program headers, or the section headers.
            let at = match numbers.below(2) {
                0 => numbers.below(0x400),
                _ => headers + numbers.below(bytes.len() as u64 - headers),
            };
            let value = [0, 1, 0x7f, 0x80, 0xff, numbers.below(256) as u8];
            bytes[at as usize] = value[numbers.below(6) as usize];
        }
        let Ok(part) = SymbolFile::of_bytes(&*bytes, "library.so", limits) else {
            continue;
        };
        let mut written = Vec::new();
        if part.write(&mut written).is_err() {
            continue;
        }
        assert!(part.size() <= limits.names + limits.debug);
        assert!(written.len() as u64 <= part.size());
        let none = DebugFiles::none();
        let Ok(of_file) = ElfSource::from_bytes(bytes.clone(), "library.so", &none) else {
            continue;
        };
        let of_part = ElfSource::from_bytes(written, "library.so", &none).unwrap();
        for at in (0x1000..0x1300).step_by(7) {
            assert_eq!(of_part.frames(at), of_file.frames(at), "{at:#x}");
        }
    }
}

/// perf divides by the entry size of `.rela.plt`, and reads the content of `.note.gnu.build-id`.
#[test]
fn no_reader_finds_a_section_without_content_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), &["-g"]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let (part, _) = kept(&whole, ALL);
    let parsed = varid_symbolizer::parse_elf(&*part).unwrap();
    let mut found = Vec::new();
    for section in parsed.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            panic!("it is an ELF file")
        };
        let is_code = sh_flags & u64::from(object::elf::SHF_EXECINSTR) != 0;
        let name = section.name().unwrap();
        match section.file_range() {
            Some(_) => found.push(name.to_owned()),
            None => assert!(is_code || name.is_empty(), "{name}"),
        }
    }
    let has = |name: &str| found.iter().any(|found| found == name);
    assert!(has(".note.gnu.build-id") && has(".symtab"));
}
