//! Tests that no input makes a parser panic or run for too long, and that errors have a text.

use crate::common;

use proptest::prelude::*;
use varid_symbolizer::dex::{DexBytecode, DexFile, MethodIndex};
use varid_symbolizer::elf::{ElfSymbols, demangle};
use varid_symbolizer::kernel::KernelSymbols;
use varid_symbolizer::substitute::{Substitute, write_sym};

/// Calls everything that reads a dex file.
fn exercise_dex(bytes: &[u8]) {
    let Ok(dex) = DexFile::parse(bytes) else {
        return;
    };
    for method in dex.methods().flatten() {
        let _ = method.id.signature();
        let _ = method.id.display_name();
        let _ = method.source_file();
        if let Some(code) = method.code {
            assert!(code.end as usize <= dex.bytes().len() && code.start <= code.end);
        }
    }
    for index in (0..dex.method_count()).take(1000).chain([u32::MAX]) {
        let _ = dex.method_name(index);
    }
    if let Ok(index) = MethodIndex::new(&dex) {
        for method in index.methods() {
            assert!(index.lookup(method.code.start).is_some());
        }
        let _ = index.lookup(u32::MAX);
    }
    let _ = Substitute::of_dex(&dex);
}

/// Calls everything that reads an ELF file.
fn exercise_elf(bytes: &[u8]) {
    let Ok(symbols) = ElfSymbols::from_bytes(bytes, "x.so") else {
        return;
    };
    for address in [0, 1, 0x70, 0x1000, 0x1234, u64::MAX] {
        if let Some(symbol) = symbols.lookup(address) {
            assert!(symbol.start <= address && address < symbol.end);
            let _ = symbol.name();
        }
        let _ = symbols.lookup_offset(address);
    }
}

/// A small ELF file with symbols and unwind tables.
fn small_elf() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.elf");
    let dex =
        DexFile::from_vec(std::fs::read(common::fixtures().join("names.dex")).unwrap()).unwrap();
    Substitute::of_dex(&dex).unwrap().write(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// Calls `exercise` with every truncation of `original`, and with copies in which a few bytes are changed.
fn mutate(original: &[u8], copies: u64, exercise: impl Fn(&[u8])) {
    for length in 0..original.len() {
        exercise(&original[..length]);
    }
    let mut numbers = common::Numbers(0x9e37_79b9_7f4a_7c15);
    let telling = [0x00, 0x01, 0x7f, 0x80, 0xff];
    for _ in 0..copies {
        let mut bytes = original.to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() as u64) as usize;
            let width = [1, 1, 2, 4][numbers.below(4) as usize];
            let value = match numbers.below(2) {
                0 => telling[numbers.below(5) as usize],
                _ => numbers.below(256) as u8,
            };
            for byte in bytes.iter_mut().skip(at).take(width) {
                *byte = value;
            }
        }
        exercise(&bytes);
    }
}

#[test]
fn a_broken_dex_file_is_an_error() {
    let original = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    mutate(&original, 60_000, exercise_dex);
}

#[test]
fn a_broken_elf_file_is_an_error() {
    mutate(&small_elf(), 30_000, exercise_elf);
    // A larger program has more unwind tables, which are the harder part.
    let program = std::fs::read("/bin/true").unwrap();
    let mut numbers = common::Numbers(7);
    for _ in 0..2_000 {
        let mut bytes = program.clone();
        for _ in 0..200 {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] = numbers.below(256) as u8;
        }
        // With a modified header, most files would be rejected at once.
        bytes[..64].copy_from_slice(&program[..64]);
        exercise_elf(&bytes);
    }
}

/// A dex file in which many classes claim the same large set of methods.
#[test]
fn classes_that_share_their_methods_do_not_multiply() {
    let (classes, methods) = (20_000u32, 20_000u32);
    let mut bytes = vec![0u8; 0x70];
    let method_ids = bytes.len();
    bytes.resize(method_ids + methods as usize * 8, 0);
    let class_defs = bytes.len();
    bytes.resize(class_defs + classes as usize * 32, 0);
    let class_data = bytes.len();
    bytes.extend([0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
    bytes.resize(bytes.len() + methods as usize * 30, 0);
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    for class in 0..classes as usize {
        put(class_defs + class * 32 + 24, class_data as u32);
    }
    put(0x24, 0x70);
    put(0x28, 0x1234_5678);
    for (at, count, offset) in [(0x58, methods, method_ids), (0x60, classes, class_defs)] {
        put(at, count);
        put(at + 4, offset as u32);
    }
    let size = bytes.len() as u32;
    bytes[0x20..0x24].copy_from_slice(&size.to_le_bytes());
    bytes[..8].copy_from_slice(b"dex\n035\0");
    let dex = DexFile::parse(&bytes).unwrap();
    assert!(dex.methods().count() <= methods as usize + 1);
    assert!(dex.methods().any(|method| method.is_err()));
    assert_eq!(dex.class_methods().count(), classes as usize);
    assert!(dex.class_methods().flatten().count() <= methods as usize);
}

/// A dex file of 2 MB in which 100,000 methods share a name of 60,000 bytes.
#[test]
fn names_that_are_shared_do_not_multiply() {
    let methods = 100_000usize;
    let word = |value: usize| (value as u32).to_le_bytes();
    let mut bytes = vec![0u8; 0x70];
    let table = |bytes: &mut Vec<u8>, at: usize, items: &[u8], count: usize| {
        let offset = bytes.len();
        bytes.extend(items);
        bytes[at..at + 4].copy_from_slice(&word(count));
        bytes[at + 4..at + 8].copy_from_slice(&word(offset));
        offset
    };
    table(&mut bytes, 0x38, &[0; 4], 1);
    let string_ids = bytes.len() - 4;
    table(&mut bytes, 0x40, &[0; 4], 1);
    table(&mut bytes, 0x48, &[0; 12], 1);
    table(&mut bytes, 0x58, &vec![0; methods * 8], methods);
    table(&mut bytes, 0x60, &[0xff; 32], 1);
    let class_def = bytes.len() - 32;
    let string = bytes.len();
    bytes.push(1);
    bytes.extend(vec![b'a'; 60_000]);
    bytes.push(0);
    bytes[string_ids..string_ids + 4].copy_from_slice(&word(string));
    // One code_item with one instruction for each method.
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let code = bytes.len();
    for _ in 0..methods {
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
    let class_data = bytes.len();
    let uleb = |bytes: &mut Vec<u8>, value: usize| {
        for shift in [0, 7, 14, 21] {
            bytes.push((value >> shift) as u8 & 0x7f | 0x80);
        }
        bytes.push((value >> 28) as u8);
    };
    bytes.extend([0, 0]);
    uleb(&mut bytes, methods);
    bytes.push(0);
    for method in 0..methods {
        bytes.push(u8::from(method > 0));
        bytes.push(0);
        uleb(&mut bytes, code + method * 20);
    }
    bytes[class_def + 24..class_def + 28].copy_from_slice(&word(class_data));
    bytes[..8].copy_from_slice(b"dex\n035\0");
    let size = bytes.len();
    for (at, value) in [(0x20, size), (0x24, 0x70), (0x28, 0x1234_5678)] {
        bytes[at..at + 4].copy_from_slice(&word(value));
    }
    let dex = DexFile::parse(&bytes).unwrap();
    assert_eq!(
        dex.methods().filter(|method| method.is_ok()).count(),
        methods
    );
    // Beyond the budget, methods are named by their index.
    let substitute = Substitute::of_dex(&dex).unwrap();
    let slots = substitute.slots();
    assert_eq!(slots.len(), methods);
    let names: usize = slots.iter().map(|slot| slot.name.len()).sum();
    assert!(names <= (64 << 20) + 16 * methods, "{names} bytes");
    let last = format!("method@{}", methods - 1);
    assert!(slots.iter().any(|slot| slot.name == last));
    let folder = tempfile::tempdir().unwrap();
    let sym = folder.path().join("x.sym");
    write_sym(&DexBytecode::new(dex).unwrap(), &sym).unwrap();
    assert!(std::fs::metadata(&sym).unwrap().len() < 200 << 20);
}

/// A sparse file of 8 GB. Its string table takes half of it.
#[test]
fn a_table_of_any_size_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.elf");
    let mut bytes = small_elf();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    // .strtab is section 4.
    let size = word(0x28) + 4 * 64 + 0x20;
    let huge = 1u64 << 32;
    bytes[size..size + 8].copy_from_slice(&huge.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(2 * huge).unwrap();
    let symbols = ElfSymbols::open(&path).unwrap();
    let problem = &symbols.problems()[0];
    assert!(
        problem.contains("more than is read of one file"),
        "{problem}"
    );
}

/// A file that is larger than the read limit: its headers and tables are read, but not the rest.
#[test]
fn a_library_of_two_gigabytes_is_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.elf");
    let bytes = small_elf();
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 31).unwrap();
    let large = ElfSymbols::open(&path).unwrap();
    let small = ElfSymbols::from_bytes(&bytes, "large.elf").unwrap();
    assert_eq!(large.symbol_count(), small.symbol_count());
    assert_eq!(large.build_id(), small.build_id());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn kernel_symbols_of_any_text(text in "([0-9a-f]{1,17}[ \t][TtDA?][ \t]\\PC{0,9}[\n\t ]?){0,20}") {
        if let Ok(table) = KernelSymbols::parse_kallsyms(text.as_bytes()) {
            let mut out = Vec::new();
            table.write(None, &mut out).unwrap();
            let back = KernelSymbols::parse(&out).unwrap();
            prop_assert_eq!(back.len(), table.len());
        }
    }

    #[test]
    fn kernel_symbols_of_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = KernelSymbols::parse_kallsyms(&bytes);
        let _ = KernelSymbols::parse(&bytes);
    }

    #[test]
    fn names_of_any_text(text in "_(Z|R)[A-Za-z0-9_]{0,60}") {
        prop_assert!(demangle(&text).len() <= 8192);
    }

    #[test]
    fn files_of_any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), elf in any::<bool>()) {
        let magic: &[u8] = if elf { b"\x7fELF\x02\x01\x01\0" } else { b"dex\n035\0" };
        let length = magic.len().min(bytes.len());
        bytes[..length].copy_from_slice(&magic[..length]);
        exercise_dex(&bytes);
        exercise_elf(&bytes);
    }
}
