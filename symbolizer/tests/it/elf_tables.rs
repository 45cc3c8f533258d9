//! Tests the names of functions in files with unusual, broken or missing tables.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use varid_symbolizer::elf::{CodePlaces, DebugFiles, ElfSource, ElfSymbols};

/// Compiles a source file with `gcc`, optimized and with a build-id. None if there is no compiler.
fn compiled(
    folder: &Path,
    source: (&str, &str),
    output: &str,
    arguments: &[&str],
) -> Option<PathBuf> {
    let arguments = [&["-O1", "-Wl,--build-id"], arguments].concat();
    common::compiled(folder, source, output, &arguments)
}

/// The addresses of symbols as printed by nm.
fn nm(path: &Path, flags: &[&str]) -> BTreeMap<String, u64> {
    let printed = common::run("nm", &[flags, &[common::text(path)]].concat()).unwrap();
    let symbols = printed.lines().filter_map(|line| {
        let [address, kind, name] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let address = u64::from_str_radix(address, 16).ok()?;
        matches!(kind, "T" | "t").then(|| (name.to_owned(), address))
    });
    symbols.collect()
}

fn name_at(symbols: &ElfSymbols, address: u64) -> Option<String> {
    symbols
        .lookup(address)
        .map(|symbol| symbol.raw.into_owned())
}

/// Functions with and without a type and a size, each of eight bytes.
const LABELS: &str = "
.text
.globl typed
.type typed, %function
typed: .fill 8, 1, 0
.globl label
label: .fill 8, 1, 0
local: .fill 8, 1, 0
.globl sized
.type sized, %function
sized: .fill 4, 1, 0
inside: .fill 4, 1, 0
.size sized, . - sized
.globl framed
framed:
.cfi_startproc
.fill 4, 1, 0
again: .fill 4, 1, 0
.cfi_endproc
.globl huge
.type huge, %function
huge: .fill 8, 1, 0
.size huge, 0x100000000000
.set constant, 0x1234
.data
value: .fill 64, 1, 0
";

#[test]
fn a_label_without_a_type_is_a_function_and_a_symbol_ends_with_its_section() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-shared", "-nostdlib"];
    let Some(file) = compiled(folder.path(), ("labels.s", LABELS), "labels.so", &arguments) else {
        return;
    };
    let (symbols, places) = (
        nm(&file, &[]),
        CodePlaces::open(&file, &DebugFiles::none()).unwrap(),
    );
    let ours = ElfSymbols::open(&file).unwrap();
    for name in ["typed", "label", "local", "sized", "framed", "huge"] {
        let start = symbols[name];
        let symbol = ours.lookup(start + 7).unwrap();
        assert_eq!((&*symbol.raw, symbol.start), (name, start));
        assert_eq!(symbol.end, start + 8, "{name}");
        assert_eq!(places.function(name), Ok(start));
    }
    // After the section, and in the data section.
    assert_eq!(name_at(&ours, symbols["huge"] + 8), None);
    assert_eq!(name_at(&ours, symbols["huge"] + 0x10_0000), None);
    for symbol in ours.functions() {
        let name = &*symbol.raw;
        assert!(!["inside", "again", "value", "constant"].contains(&name));
    }
}

/// armcc's mapping symbols are functions. Only the machine in the header is changed: no instruction is read.
#[test]
fn a_mapping_symbol_is_no_function_whatever_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let source = LABELS.replace("local:", ".type \"$b\", %function\n\"$b\": local.7:");
    let arguments = ["-shared", "-nostdlib"];
    let Some(file) = compiled(
        folder.path(),
        ("mapping.s", &source),
        "mapping.so",
        &arguments,
    ) else {
        return;
    };
    let symbols = nm(&file, &[]);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[18..20].copy_from_slice(&40u16.to_le_bytes());
    let ours = ElfSymbols::from_bytes(&bytes, "mapping.so").unwrap();
    assert_eq!(name_at(&ours, symbols["$b"]).unwrap(), "local.7");
    assert!(ours.functions().all(|symbol| !symbol.raw.starts_with('$')));
    // On other machines, `$b` is an ordinary name.
    bytes[18..20].copy_from_slice(&62u16.to_le_bytes());
    let ours = ElfSymbols::from_bytes(&bytes, "mapping.so").unwrap();
    assert_eq!(name_at(&ours, symbols["$b"]).unwrap(), "$b");
}

/// A mapping symbol says that local symbols were not stripped, so `work` reaches up to `tail`.
#[test]
fn a_mapping_symbol_shows_that_all_symbols_are_there() {
    let folder = tempfile::tempdir().unwrap();
    for (name, local, reaches) in [("marked", "\"$t\":", true), ("bare", "", false)] {
        let source = format!(
            ".text\n.globl work\n.type work, %function\nwork: {local} .fill 6, 1, 0\n\
             .globl tail\n.type tail, %function\ntail: .fill 2, 1, 0\n.size tail, . - tail\n"
        );
        let arguments = ["-shared", "-nostdlib"];
        let library = format!("{name}.so");
        let source = (&*format!("{name}.s"), &*source);
        let Some(file) = compiled(folder.path(), source, &library, &arguments) else {
            return;
        };
        let symbols = nm(&file, &[]);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[18..20].copy_from_slice(&40u16.to_le_bytes());
        let ours = ElfSymbols::from_bytes(&bytes, &library).unwrap();
        let found = name_at(&ours, symbols["work"] + 4);
        assert_eq!(found.as_deref(), reaches.then_some("work"), "{name}");
    }
}

const LIBRARY: &str = "
static __attribute__((noinline)) int hidden(int x) { return x * x + 3; }
int shown(int x) { return hidden(x) + hidden(x + 1); }
__attribute__((weak)) int weak(int x) { return x + 5; }
int other(int x) { return shown(x) * weak(x); }
";

/// The offset of the section headers in a 64-bit file, and of the header of the section with that name.
fn section_header(bytes: &[u8], name: &str) -> usize {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    let headers = word(40);
    let names = word(headers + half(62) * 64 + 24);
    (0..half(60))
        .map(|index| headers + index * 64)
        .find(|&at| {
            let own = names + (word(at) & 0xffff_ffff);
            bytes[own..].starts_with(&[name.as_bytes(), b"\0"].concat())
        })
        .unwrap()
}

#[test]
fn a_broken_symbol_table_takes_away_its_own_names_only() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-g", "-shared", "-fPIC"];
    let Some(file) = compiled(
        folder.path(),
        ("library.c", LIBRARY),
        "library.so",
        &arguments,
    ) else {
        return;
    };
    let shown = nm(&file, &[])["shown"];
    let whole = std::fs::read(&file).unwrap();
    // Offset, size and link of a section header.
    for (section, field, part) in [
        (".symtab", 24, ".symtab"),
        (".symtab", 32, ".symtab"),
        (".strtab", 24, ".symtab"),
        (".symtab", 40, ".symtab"),
        (".dynsym", 32, ".dynsym"),
        (".dynstr", 24, ".dynsym"),
    ] {
        let mut bytes = whole.clone();
        let at = section_header(&bytes, section) + field;
        bytes[at..at + 4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
        let source =
            ElfSource::from_bytes(bytes.clone(), "library.so", &DebugFiles::none()).unwrap();
        let problems = source.symbols().problems();
        assert!(
            problems.len() == 1 && problems[0].starts_with(part),
            "{section}: {problems:?}"
        );
        assert_eq!(
            name_at(source.symbols(), shown).unwrap(),
            "shown",
            "{section}"
        );
        let frames = source.frames(shown);
        let location = frames[0].location.as_ref().unwrap();
        assert_eq!((&*frames[0].function, location.line), ("shown", 3));
        let path = folder.path().join("broken.so");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(
            CodePlaces::open(&path, &DebugFiles::none())
                .unwrap()
                .function("shown"),
            Ok(shown)
        );
    }
    assert!(
        ElfSymbols::from_bytes(&whole, "library.so")
            .unwrap()
            .problems()
            .is_empty()
    );
}

#[test]
fn what_is_loaded_is_known_without_section_headers() {
    for style in ["sysv", "gnu", "both"] {
        let folder = tempfile::tempdir().unwrap();
        let style = format!("-Wl,--hash-style={style}");
        let arguments = ["-shared", "-fPIC", &style];
        let Some(file) = compiled(
            folder.path(),
            ("library.c", LIBRARY),
            "library.so",
            &arguments,
        ) else {
            return;
        };
        let (all, exported) = (nm(&file, &[]), nm(&file, &["-D"]));
        assert!(exported.contains_key("shown") && exported.len() >= 2);
        let whole = std::fs::read(&file).unwrap();
        let with = ElfSymbols::from_bytes(&whole, "library.so").unwrap();
        // Headers beyond the end of the file; no headers; a table of zeros, as some packers leave it.
        let beyond = |bytes: &mut Vec<u8>| bytes[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        let none = |bytes: &mut Vec<u8>| {
            bytes[40..48].fill(0);
            bytes[60..64].fill(0);
        };
        let zeros = |bytes: &mut Vec<u8>| {
            let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
            bytes[headers as usize..].fill(0);
        };
        for change in [&beyond as &dyn Fn(&mut Vec<u8>), &none, &zeros] {
            let mut bytes = whole.clone();
            change(&mut bytes);
            let without = ElfSymbols::from_bytes(&bytes, "library.so").unwrap();
            let problems = without.problems();
            assert!(
                problems.len() == 1 && problems[0].starts_with("section headers: "),
                "{problems:?}"
            );
            for (name, address) in &exported {
                assert_eq!(name_at(&without, *address).as_ref(), Some(name));
            }
            assert_eq!(without.symbol_count(), exported.len() + 1, "with weak");
            // An unnamed function stays distinct.
            let hidden = all["hidden"];
            assert_eq!(without.lookup(hidden).unwrap().start, hidden);
            assert_eq!(without.build_id(), with.build_id());
            for offset in [0, 0x1000, bytes.len() as u64 / 2] {
                assert_eq!(without.vaddr(offset), with.vaddr(offset));
            }
        }
    }
}
