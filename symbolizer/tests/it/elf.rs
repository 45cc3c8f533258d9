//! Compares the names of native functions with nm and readelf, and tests that unnamed functions stay distinct.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use varid_symbolizer::elf::{ElfSymbols, MachineCode, SymbolOrigin};

/// Libraries of this machine: one with unnamed functions between exported ones, one with assembly.
fn libraries() -> Vec<PathBuf> {
    [
        "/usr/lib/x86_64-linux-gnu/android/libart.so",
        "/usr/lib/aarch64-linux-gnu/android/libart.so",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/aarch64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libstdc++.so.6",
    ]
    .iter()
    .map(PathBuf::from)
    .filter(|path| path.exists())
    .collect()
}

/// Function symbols as printed by readelf: start to (end, names).
type Functions = BTreeMap<u64, (u64, Vec<String>)>;

fn nm(path: &Path, flags: &str) -> Option<Functions> {
    let printed = common::run(
        "nm",
        &[
            flags,
            "-S",
            "--defined-only",
            "--without-symbol-versions",
            common::text(path),
        ],
    )?;
    let mut functions = Functions::new();
    for line in printed.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(start), Some(size), Some(kind), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Ok(start), Ok(size)) = (
            u64::from_str_radix(start, 16),
            u64::from_str_radix(size, 16),
        ) else {
            continue;
        };
        if size > 0 && matches!(kind, "T" | "t" | "W" | "w" | "i") {
            let entry = functions.entry(start).or_insert((0, Vec::new()));
            entry.0 = entry.0.max(start + size);
            entry.1.push(name.to_owned());
        }
    }
    Some(functions)
}

/// The functions that cover an address, by linear search.
fn covering(functions: &Functions, address: u64) -> Vec<(u64, &String)> {
    functions
        .range(..=address)
        .rev()
        .take(64)
        .filter(|(_, (end, _))| address < *end)
        .flat_map(|(start, (_, names))| names.iter().map(move |name| (*start, name)))
        .collect()
}

/// Removes blanks, in which demanglers differ.
fn squeezed(name: &str) -> String {
    name.split_whitespace().collect()
}

#[test]
fn names_at_random_addresses_are_those_of_nm() {
    for path in libraries() {
        let symbols = ElfSymbols::open(&path).unwrap();
        let (Some(mangled), Some(demangled)) = (nm(&path, "-D"), nm(&path, "-DC")) else {
            return;
        };
        let (first, last) = (
            mangled.keys().next().unwrap(),
            mangled.keys().last().unwrap(),
        );
        let mut numbers = common::Numbers(0x5eed);
        let (mut named, mut unnamed, mut alike) = (0, 0, 0);
        for _ in 0..1000 {
            let address = first + numbers.below(last - first);
            let theirs = covering(&mangled, address);
            let ours = symbols.lookup(address);
            match ours {
                Some(symbol) if symbol.origin == SymbolOrigin::Symbol => {
                    named += 1;
                    let found = (symbol.start, symbol.raw.to_string());
                    assert!(
                        theirs
                            .iter()
                            .any(|(start, name)| (*start, (*name).clone()) == found),
                        "{}: {address:#x}: {found:?} is none of {theirs:?}",
                        path.display()
                    );
                    let demangled = covering(&demangled, address);
                    alike += usize::from(
                        demangled
                            .iter()
                            .any(|(_, name)| squeezed(name) == squeezed(&symbol.name())),
                    );
                }
                other => {
                    assert!(
                        theirs.is_empty(),
                        "{}: {address:#x}: no name, nm has {theirs:?}",
                        path.display()
                    );
                    if let Some(symbol) = other {
                        unnamed += 1;
                        assert_eq!(symbol.origin, SymbolOrigin::Unnamed);
                        assert_eq!(
                            symbol.raw,
                            format!("{}+{:#x}", symbols.module(), symbol.start)
                        );
                    }
                }
            }
        }
        println!(
            "{}: {named} named, {alike} demangled as binutils does, {unnamed} without a name",
            path.display()
        );
        assert!(named > 0 && alike * 10 > named * 9);
    }
}

#[test]
fn function_bounds_are_those_of_the_unwind_table() {
    for path in libraries() {
        let symbols = ElfSymbols::open(&path).unwrap();
        let Some(printed) = common::run(
            "readelf",
            &["--debug-dump=frames", "-W", common::text(&path)],
        ) else {
            return;
        };
        let mut frames = 0;
        for line in printed.lines().filter(|line| line.contains(" FDE ")) {
            let (start, end) = line.rsplit_once("pc=").unwrap().1.split_once("..").unwrap();
            let hex = |word: &str| u64::from_str_radix(word.trim(), 16).unwrap();
            let (start, end) = (hex(start), hex(end));
            if start == 0 || start == end {
                continue;
            }
            frames += 1;
            assert_eq!(
                symbols.function_bounds(start),
                Some(start..end),
                "{}",
                path.display()
            );
            assert_eq!(
                symbols.function_bounds(end - 1),
                Some(start..end),
                "{}",
                path.display()
            );
        }
        assert_eq!(frames, symbols.function_count(), "{}", path.display());
    }
}

#[test]
fn a_static_function_does_not_take_its_neighbours_name() {
    // In this build, the interpreter's loop has no symbol. The unwind table has its bounds.
    let path = Path::new("/usr/lib/x86_64-linux-gnu/android/libart.so");
    if !path.exists() {
        eprintln!("not tried: there is no {}", path.display());
        return;
    }
    let symbols = ElfSymbols::open(path).unwrap();
    let build_id: String = symbols
        .build_id()
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if build_id != "d3ba281c20e725780467fb41f50e669082ccac64" {
        eprintln!("not tried: {} is another build, {build_id}", path.display());
        return;
    }
    let (start, inside, end) = (0x7b_2d80, 0x7b_5000, 0x7b_b023);
    for address in [start, inside, end - 1] {
        let symbol = symbols.lookup(address).unwrap();
        assert_eq!(symbol.name(), "libart.so+0x7b2d80");
        assert_eq!((symbol.start, symbol.end), (start, end));
    }
    assert_ne!(symbols.lookup(end).map(|symbol| symbol.start), Some(start));
    let symbols = symbols.with_extra([(start, end, "ExecuteMterpImpl".to_owned())]);
    for address in [start, inside, end - 1] {
        assert_eq!(
            symbols.lookup_offset(address).unwrap().name(),
            "ExecuteMterpImpl"
        );
    }
    assert_ne!(symbols.lookup(end).map(|symbol| symbol.start), Some(start));
}

#[test]
fn bytes_and_file_read_alike() {
    let path = libraries().remove(0);
    let bytes = std::fs::read(&path).unwrap();
    let from_bytes = ElfSymbols::from_bytes(&bytes, &path.display().to_string()).unwrap();
    let from_file = ElfSymbols::open(&path).unwrap();
    assert_eq!(from_bytes.symbol_count(), from_file.symbol_count());
    assert_eq!(from_bytes.module(), from_file.module());
    let mut numbers = common::Numbers(3);
    for _ in 0..1000 {
        let offset = numbers.below(bytes.len() as u64);
        assert_eq!(
            from_bytes.lookup_offset(offset),
            from_file.lookup_offset(offset)
        );
    }
}

#[test]
fn symbols_of_an_unstripped_program_are_those_of_nm() {
    // This test program has Rust names, a .symtab and local functions.
    let path = std::env::current_exe().unwrap();
    let symbols = ElfSymbols::open(&path).unwrap();
    let Some(functions) = nm(&path, "-a") else {
        return;
    };
    for (start, (end, names)) in &functions {
        let symbol = symbols.lookup(*start).unwrap();
        assert_eq!(symbol.start, *start);
        assert!(
            symbol.end <= *end && names.contains(&symbol.raw.to_string()),
            "{symbol:?} {names:?}"
        );
    }
    let main = symbols.lookup(
        *functions
            .iter()
            .find(|(_, (_, names))| names.iter().any(|name| name == "main"))
            .unwrap()
            .0,
    );
    assert_eq!(main.unwrap().name(), "main");
    assert!(functions.keys().any(|start| {
        symbols
            .lookup(*start)
            .unwrap()
            .name()
            .starts_with("varid_symbolizer::elf::")
    }));
}

#[test]
fn what_is_no_elf_file_is_named() {
    for bytes in [
        &b""[..],
        b"\x7fELF",
        b"dex\n035\0aaaaaaaaaaaaaaaa",
        b"\x7fELF\x09aaaaaaaaaaaaaaaa",
    ] {
        let error = ElfSymbols::from_bytes(bytes, "/lib/x.so")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/lib/x.so: not a usable ELF file"),
            "{error}"
        );
    }
    let error = ElfSymbols::open(Path::new("/nonexistent/x.so"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/nonexistent/x.so: cannot open"),
        "{error}"
    );
}

/// The assembly function has no size, and a local function follows it.
const ASSEMBLY: &str = "\
__asm__(\".text\\n.globl asmfn\\n.type asmfn, @function\\nasmfn: .fill 16, 1, 0x90\\n\");
static __attribute__((noinline)) int hidden(int x) { return x * x + 3; }
int shown(int x) { return hidden(x) + hidden(x + 1); }
";

#[test]
fn a_symbol_without_a_size_does_not_cover_local_functions_that_were_stripped() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "-O2",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-toplevel-reorder",
        "-fno-asynchronous-unwind-tables",
    ];
    let Some(file) = common::compiled(folder.path(), ("source.c", ASSEMBLY), "made", &arguments)
    else {
        return;
    };
    let whole = ElfSymbols::open(&file).unwrap();
    let find = |wanted: &str| {
        (0..0x10_000).find(|&at| whole.lookup(at).is_some_and(|symbol| symbol.raw == wanted))
    };
    let (asmfn, hidden) = (find("asmfn").unwrap(), find("hidden").unwrap());
    assert!(asmfn < hidden);
    common::run("strip", &["-x", common::text(&file)]).unwrap();
    let stripped = ElfSymbols::open(&file).unwrap();
    assert_eq!(stripped.lookup(hidden), None);
    assert_eq!(stripped.lookup(asmfn), None);
}

/// One function has all of these names.
const ALIASES: &str = "\
int strchr_of_ours(int x) { return x + 1; }
extern int index_of_ours(int) __attribute__((alias(\"strchr_of_ours\")));
extern int a_weak_name_which_is_long(int) __attribute__((weak, alias(\"strchr_of_ours\")));
extern int __an_internal_name_of_ours(int) __attribute__((alias(\"strchr_of_ours\")));
";

#[test]
fn of_a_functions_names_the_one_that_perf_takes_counts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = common::compiled(
        folder.path(),
        ("source.c", ALIASES),
        "made",
        &["-O2", "-shared", "-fPIC"],
    ) else {
        return;
    };
    let symbols = ElfSymbols::open(&file).unwrap();
    let mut names = (0..0x10_000).filter_map(|at| symbols.lookup(at));
    assert!(names.any(|symbol| symbol.raw == "strchr_of_ours"));
    assert!(!names.any(|symbol| symbol.raw.contains("name")));
}

#[test]
fn a_relocatable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(file) = common::compiled(
        folder.path(),
        ("source.c", ASSEMBLY),
        "made",
        &["-O2", "-c"],
    ) {
        let error = ElfSymbols::open(&file).unwrap_err().to_string();
        assert!(error.contains("a relocatable file"), "{error}");
    }
}

#[test]
fn a_functions_bytes_are_those_of_the_file_or_there_is_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let debug = folder.path().join("debug.so");
    for path in libraries() {
        let symbols = ElfSymbols::open(&path).unwrap();
        let content = std::fs::read(&path).unwrap();
        let build_id = symbols.build_id().unwrap_or_default();
        // The offset at which the text is mapped.
        let offset = (0..content.len() as u64).step_by(0x1000).find(|offset| {
            symbols
                .vaddr(*offset)
                .is_some_and(|at| symbols.lookup(at).is_some())
        });
        let offset = offset.unwrap();
        let bias = symbols.vaddr(offset).unwrap() - offset;
        let functions = symbols
            .functions()
            .filter(|function| function.start >= bias + offset);
        let mut read = 0;
        for function in functions.step_by(100) {
            let range = function.start..function.end;
            let code = MachineCode::read(&path, None, build_id, range.clone()).unwrap();
            let from = usize::try_from(function.start - bias).unwrap();
            let size = usize::try_from((range.end - range.start).min(1 << 20)).unwrap();
            assert_eq!(code.bytes, &content[from..from + size], "{function:?}");
            read += 1;
        }
        assert!(read > 5, "{path:?}");
        let function = symbols.functions().next().unwrap();
        let range = function.start..function.end;
        let why = |path: &Path, id: &[u8], range| {
            MachineCode::read(path, None, id, range)
                .unwrap_err()
                .to_string()
        };
        assert!(why(&path, &[1, 2], range.clone()).contains("build-id"));
        assert!(why(&path, build_id, u64::MAX - 8..u64::MAX).contains("no instructions at"));
        let copied = common::run(
            "objcopy",
            &[
                "--only-keep-debug",
                common::text(&path),
                common::text(&debug),
            ],
        );
        if copied.is_some() {
            let why = why(&debug, build_id, range);
            assert!(why.contains("debug information only"), "{why}");
        }
    }
}
