//! Compares inlined functions and source lines with those of the crate addr2line, frame by frame.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use varid_symbolizer::elf::{DebugFiles, ElfSource, SymbolOrigin, demangle};

/// How many addresses of each file are compared.
const ADDRESSES: usize = 10_000;

/// A function and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    function: String,
    line: Option<(String, u32)>,
}

/// The known differences between the two, each with the rule that recognizes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// addr2line reads no symbols, so it has no result without debug information. Ours is one function without a line, named by the symbol
    /// or the unwind table.
    NoDebugInformation,
    /// Debug information has a line and no function.
    Unnamed,
    /// Debug information has only the function's own name. The symbol at the address adds namespaces, classes and
    /// parameters.
    Qualified,
    /// The symbol at the address names a part of the function: `fold.cold`.
    Part,
    /// Several symbols are at the function's address. Debug information names another one of them.
    Alias,
}

type Reader<'d> = EndianSlice<'d, RunTimeEndian>;

/// All names of the symbols at an address.
type Symbols = BTreeMap<u64, BTreeSet<String>>;

/// A path without `.` components: tools differ in whether they omit them.
fn plain(file: &str) -> String {
    file.replace("/./", "/")
}

fn context<'d>(file: &object::File<'d>) -> Context<Reader<'d>> {
    let load = |id: SectionId| -> Result<Reader<'d>, addr2line::gimli::Error> {
        let section = file.section_by_name(id.name());
        let bytes = section.map(|section| section.data().unwrap());
        Ok(EndianSlice::new(
            bytes.unwrap_or_default(),
            RunTimeEndian::Little,
        ))
    };
    Context::from_dwarf(Dwarf::load(load).unwrap()).unwrap()
}

fn symbols(files: [&object::File<'_>; 2]) -> Symbols {
    let mut symbols = Symbols::new();
    for file in files {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = demangle(symbol.name().unwrap()).into_owned();
            symbols.entry(symbol.address()).or_default().insert(name);
        }
    }
    symbols
}

/// Random addresses of the code, which are the same in every run.
fn addresses(file: &object::File<'_>) -> Vec<u64> {
    let code: Vec<(u64, u64)> = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .filter(|section| section.name().is_ok_and(|name| !name.starts_with(".plt")))
        .map(|section| (section.address(), section.size()))
        .collect();
    let all = code.iter().map(|(_, size)| size).sum();
    let mut numbers = common::Numbers(0x5eed);
    let address = |_| {
        let mut at = numbers.below(all);
        for (address, size) in &code {
            if at < *size {
                return address + at;
            }
            at -= size;
        }
        unreachable!("all sections together have all bytes")
    };
    (0..ADDRESSES).map(address).collect()
}

fn by_addr2line(context: &Context<Reader<'_>>, address: u64) -> Vec<Frame> {
    let mut found = context.find_frames(address).skip_all_loads().unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = found.next().unwrap() {
        let name = frame.function.map(|function| {
            let raw = function.raw_name().unwrap().into_owned();
            demangle(&raw).into_owned()
        });
        let line = frame.location.and_then(|location| {
            let line = location.line.filter(|line| *line > 0)?;
            Some((plain(location.file?), line))
        });
        frames.push(Frame {
            function: name.unwrap_or_default(),
            line,
        });
    }
    frames.retain(|frame| !frame.function.is_empty() || frame.line.is_some());
    frames
}

fn by_varid(source: &ElfSource, address: u64) -> Vec<Frame> {
    let frames = source.frames(address).into_iter();
    frames
        .map(|frame| Frame {
            function: frame.function.into_owned(),
            line: frame
                .location
                .map(|location| (plain(&location.file), location.line)),
        })
        .collect()
}

/// How the names of the symbol and of the debug information differ. `None` if they name different functions.
fn naming(symbol: &str, debug: &str, aliases: &BTreeSet<String>) -> Option<Difference> {
    if debug.is_empty() {
        return Some(Difference::Unnamed);
    }
    if aliases.contains(debug) {
        return Some(Difference::Alias);
    }
    let rest = symbol.strip_prefix(debug);
    if rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with(" (.")) {
        return Some(Difference::Part);
    }
    if is_own_name(debug, symbol) {
        return Some(Difference::Qualified);
    }
    // Functions with the same code are merged.
    let merged = aliases.iter().any(|alias| is_own_name(debug, alias));
    merged.then_some(Difference::Alias)
}

/// Returns true if `own` is the name of `qualified` without namespaces, classes and parameters.
fn is_own_name(own: &str, qualified: &str) -> bool {
    // Rust's debug information numbers closures.
    let own = match own.starts_with("{closure#") {
        true => "{{closure}}",
        false => own.split('<').next().unwrap_or(own),
    };
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    qualified.match_indices(own).any(|(at, _)| {
        !qualified[..at].ends_with(is_word) && !qualified[at + own.len()..].starts_with(is_word)
    })
}

fn difference(
    source: &ElfSource,
    symbols: &Symbols,
    address: u64,
    ours: &[Frame],
    theirs: &[Frame],
) -> Result<BTreeSet<Difference>, String> {
    let mut differences = BTreeSet::new();
    if let ([ours], []) = (ours, theirs)
        && ours.line.is_none()
    {
        differences.insert(Difference::NoDebugInformation);
        return Ok(differences);
    }
    if ours.len() != theirs.len() {
        return Err("another number of frames".to_owned());
    }
    for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
        if our.line != their.line {
            return Err(format!("another line in frame {index}"));
        }
        if our.function == their.function {
            continue;
        }
        let symbol = source.symbols().lookup(address);
        let symbol = symbol.filter(|symbol| {
            symbol.origin == SymbolOrigin::Symbol
                && symbol.name() == our.function
                && index + 1 == ours.len()
        });
        let names = symbol.and_then(|symbol| symbols.get(&symbol.start));
        let naming = names.and_then(|names| naming(&our.function, &their.function, names));
        match naming {
            Some(naming) => differences.insert(naming),
            None => return Err(format!("another name in frame {index}")),
        };
    }
    Ok(differences)
}

/// Compares the results for a file whose debug information is in `debug`. Returns how many frames were compared, and how often each
/// difference occurred.
fn compare(path: &Path, debug: &Path) -> (usize, BTreeMap<Difference, usize>) {
    let (bytes, debug) = (std::fs::read(path).unwrap(), std::fs::read(debug).unwrap());
    let file = object::File::parse(&*bytes).unwrap();
    let debug = object::File::parse(&*debug).unwrap();
    let (addresses, symbols) = (addresses(&file), symbols([&file, &debug]));
    let context = context(&debug);
    let source = ElfSource::open(path, &DebugFiles::system()).unwrap();
    let mut compared = 0;
    let mut found = BTreeMap::new();
    let mut unexplained = Vec::new();
    for address in addresses {
        let ours = by_varid(&source, address);
        let theirs = by_addr2line(&context, address);
        compared += theirs.len();
        match difference(&source, &symbols, address, &ours, &theirs) {
            Ok(differences) => {
                for difference in differences {
                    *found.entry(difference).or_default() += 1;
                }
            }
            Err(why) => unexplained.push(format!("{address:#x}: {why}\n{ours:#?}\n{theirs:#?}")),
        }
    }
    println!(
        "{}: {ADDRESSES} addresses, {compared} frames of addr2line, {found:?}",
        path.display()
    );
    assert!(
        unexplained.is_empty(),
        "{}: {} unexplained differences, the first:\n{}",
        path.display(),
        unexplained.len(),
        unexplained[..unexplained.len().min(4)].join("\n")
    );
    (compared, found)
}

/// An installed file of this machine. `None` if it is not installed; the reason is printed.
fn installed(path: &str, package: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    if !path.exists() {
        eprintln!("not compared: {} is missing ({package})", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn frames_of_a_rust_program_are_those_of_addr2line() {
    // This test program itself.
    let path = std::env::current_exe().unwrap();
    let (frames, _) = compare(&path, &path);
    assert!(frames > ADDRESSES);
}

#[test]
fn frames_of_cpp_programs_are_those_of_addr2line() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/native/build.sh");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("addr2line");
    let made = Command::new(script).arg(&folder).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("not compared: tests/native/build.sh could not build the programs");
        return;
    }
    for name in ["shapes", "libshapes.so", "shapes-4", "words"] {
        let path = folder.join(name);
        let (frames, _) = compare(&path, &path);
        assert!(frames > 0);
    }
}

#[test]
fn frames_of_libc_are_those_of_addr2line() {
    let Some(path) = installed("/lib/x86_64-linux-gnu/libc.so.6", "libc6") else {
        return;
    };
    let source = ElfSource::open(&path, &DebugFiles::none()).unwrap();
    let id: String = source
        .symbols()
        .build_id()
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let debug = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    let Some(debug) = installed(&debug, "libc6-dbg") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("libc.debug");
    let status = Command::new("objcopy")
        .arg("--decompress-debug-sections")
        .args([&debug, &plain])
        .status();
    assert!(status.unwrap().success());
    let (frames, _) = compare(&path, &plain);
    assert!(frames > ADDRESSES);
}

#[test]
fn libraries_without_debug_information_have_no_lines() {
    for (path, package) in [
        (
            "/usr/lib/x86_64-linux-gnu/android/libart.so.0",
            "android-libart",
        ),
        ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "libstdc++6"),
    ] {
        if let Some(path) = installed(path, package) {
            compare(&path, &path);
        }
    }
}
