//! Compares native functions, inlined functions and source lines with llvm-symbolizer, frame by frame.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use varid_symbolizer::elf::{DebugFiles, ElfSource};

/// The number of addresses of each file.
const ADDRESSES: usize = 10_000;

/// A function and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    function: String,
    line: Option<(String, u64)>,
}

/// The allowed kinds of differences. A rule identifies each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// Neither has a result.
    Nothing,
    /// A function without a name, for which llvm has no result or no name. The address is within bounds of the unwind
    /// table, but not within any sized symbol.
    Unnamed,
    /// llvm extends a symbol without a size up to the next one. By the unwind table, the function at the address starts
    /// after that symbol.
    Stretched,
    /// Both choose different symbols of the same address.
    Alias,
    /// llvm does not read the symbols of a separate debug file, which name parts and copies of functions (`fold.cold`).
    /// varid's name is such a symbol, and contains the address.
    DebugSymbol,
    /// llvm only decodes the lengths in Rust's legacy names. It keeps the hash, `$LT$` for `<`, and the suffixes of
    /// copies. The decoded names are equal.
    Rust,
}

/// The symbols of a file according to independent tools.
struct Symbols {
    /// End and names of sized symbols, by start.
    sized: BTreeMap<u64, (u64, BTreeSet<String>)>,
    /// Names of symbols without a size, by address.
    unsized_: BTreeMap<u64, BTreeSet<String>>,
    /// Function bounds of the unwind table.
    functions: BTreeMap<u64, u64>,
}

fn run(program: &str, arguments: &[&str], path: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .arg(path)
        .output()
        .with_context(|| program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn hex(word: &str) -> Result<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).with_context(|| word.to_owned())
}

impl Symbols {
    fn of(path: &Path, debug: Option<&Path>) -> Result<Self> {
        let mut symbols = Self {
            sized: BTreeMap::new(),
            unsized_: BTreeMap::new(),
            functions: BTreeMap::new(),
        };
        for path in [Some(path), debug].into_iter().flatten() {
            // Num: Value Size Type Bind Vis Ndx Name
            for line in run("readelf", &["-sW"], path)?.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [_, value, size, kind, _, _, section, name, ..] = words[..] else {
                    continue;
                };
                if !matches!(kind, "FUNC" | "IFUNC" | "NOTYPE") || section == "UND" {
                    continue;
                }
                let start = hex(value)?;
                let size = match size.strip_prefix("0x") {
                    Some(size) => hex(size)?,
                    None => size.parse()?,
                };
                let name = name.split('@').next().unwrap_or(name).to_owned();
                if size == 0 {
                    symbols.unsized_.entry(start).or_default().insert(name);
                } else if kind != "NOTYPE" {
                    let entry = symbols.sized.entry(start).or_default();
                    entry.0 = entry.0.max(start + size);
                    entry.1.insert(name);
                }
            }
        }
        for line in run("readelf", &["--debug-dump=frames", "-W"], path)?.lines() {
            if let Some((start, end)) = line
                .rsplit_once("pc=")
                .and_then(|(_, range)| range.split_once(".."))
            {
                symbols.functions.insert(hex(start)?, hex(end.trim())?);
            }
        }
        Ok(symbols)
    }

    /// Returns the names of the sized symbols that contain an address, demangled by llvm.
    fn holding(&self, address: u64, names: &Demangled) -> Vec<BTreeSet<String>> {
        self.sized
            .range(..=address)
            .rev()
            .take(64)
            .filter(|(_, (end, _))| address < *end)
            .map(|(_, (_, mangled))| mangled.iter().map(|name| names.of(name)).collect())
            .collect()
    }

    fn function(&self, address: u64) -> Option<u64> {
        let (&start, &end) = self.functions.range(..=address).next_back()?;
        (address < end).then_some(start)
    }
}

/// Names demangled by llvm-cxxfilt.
struct Demangled {
    llvm: BTreeMap<String, String>,
}

impl Demangled {
    fn new(symbols: &Symbols) -> Result<Self> {
        let all: Vec<&String> = symbols
            .sized
            .values()
            .flat_map(|(_, names)| names)
            .chain(symbols.unsized_.values().flatten())
            .collect();
        let text: String = all.iter().map(|name| format!("{name}\n")).collect();
        let printed = filter("llvm-cxxfilt-16", &[], text)?;
        Ok(Self {
            llvm: all
                .into_iter()
                .cloned()
                .zip(printed.lines().map(str::to_owned))
                .collect(),
        })
    }

    fn of(&self, mangled: &str) -> String {
        self.llvm
            .get(mangled)
            .cloned()
            .unwrap_or_else(|| mangled.to_owned())
    }
}

/// Returns the output of a program for the input `text`.
fn filter(program: &str, arguments: &[&str], text: String) -> Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| program.to_owned())?;
    let mut input = child.stdin.take().context("no standard input")?;
    let writer = thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("the writer does not panic")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a path without components called `.`, which only some tools remove.
fn plain(file: &str) -> String {
    file.replace("/./", "/")
}

/// Returns random addresses in a file's code, the same in every run.
fn addresses(path: &Path) -> Result<Vec<u64>> {
    let mut sections = Vec::new();
    for line in run("readelf", &["-SW"], path)?.lines() {
        let line = line.replace("[ ", "[");
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, name, "PROGBITS", address, _, size, _, flags, ..] = words[..]
            && flags.contains('X')
            && !name.starts_with(".plt")
        {
            sections.push((hex(address)?, hex(size)?));
        }
    }
    let all: u64 = sections.iter().map(|(_, size)| size).sum();
    ensure!(all > 0, "{}: no code", path.display());
    let mut state = 0x5eed_u64;
    let found = (0..ADDRESSES).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut at = state % all;
        sections
            .iter()
            .find_map(|&(address, size)| match at.checked_sub(size) {
                None => Some(address + at),
                Some(rest) => {
                    at = rest;
                    None
                }
            })
            .expect("it is in one of them")
    });
    Ok(found.collect())
}

fn by_llvm(path: &Path, addresses: &[u64]) -> Result<Vec<Vec<Frame>>> {
    let text = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    let arguments = [
        "--inlines",
        "--demangle",
        "--output-style=JSON",
        "-e",
        path.to_str().context("path")?,
    ];
    let printed = filter("llvm-symbolizer-16", &arguments, text)?;
    let frames: Result<Vec<Vec<Frame>>> = printed
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line)?;
            let frames = answer["Symbol"].as_array().context("no symbols")?;
            Ok(frames
                .iter()
                .map(|frame| Frame {
                    function: frame["FunctionName"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    line: frame["FileName"]
                        .as_str()
                        .zip(frame["Line"].as_u64())
                        .filter(|(file, line)| !file.is_empty() && *line > 0)
                        .map(|(file, line)| (plain(file), line)),
                })
                .filter(|frame| !frame.function.is_empty() || frame.line.is_some())
                .collect())
        })
        .collect();
    let frames = frames?;
    ensure!(frames.len() == addresses.len(), "answers are missing");
    Ok(frames)
}

/// Decodes a Rust name, and removes its hash.
fn decoded(name: &str) -> String {
    let name = match name.split_once(" (.llvm.") {
        Some((name, _)) => name,
        None => name,
    };
    let mut text = match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 => name,
        _ => name,
    }
    .to_owned();
    for (code, plain) in [
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$LP$", "("),
        ("$RP$", ")"),
        ("$RF$", "&"),
        ("$BP$", "*"),
        ("$C$", ","),
        ("$u20$", " "),
        ("$u27$", "'"),
        ("$u5b$", "["),
        ("$u5d$", "]"),
        ("$u7b$", "{"),
        ("$u7d$", "}"),
        ("$u7e$", "~"),
        ("$u3b$", ";"),
        ("$u2b$", "+"),
        ("$u22$", "\""),
        ("$u3d$", "="),
        ("$SP$", "@"),
        ("..", "::"),
    ] {
        text = text.replace(code, plain);
    }
    // A component that would begin with an escape has an underscore before it.
    for (with, without) in [
        ("::_<", "::<"),
        ("::_{", "::{"),
        ("::_[", "::["),
        ("::_&", "::&"),
    ] {
        text = text.replace(with, without);
    }
    match text.strip_prefix('_') {
        Some(rest) if rest.starts_with(['<', '{', '[', '&']) => rest.to_owned(),
        _ => text,
    }
}

struct Judge<'a> {
    symbols: &'a Symbols,
    names: &'a Demangled,
    has_debug_symbols: bool,
}

impl Judge<'_> {
    /// Returns the kind of difference between the outermost names.
    fn outermost(&self, address: u64, ours: &str, theirs: &str) -> Option<Difference> {
        let holding = self.symbols.holding(address, self.names);
        // Rust's names are compared in decoded form.
        let has = |names: &BTreeSet<String>, wanted: &str| {
            names
                .iter()
                .any(|name| name == wanted || decoded(name) == decoded(wanted))
        };
        let named = |name: &str| holding.iter().any(|names| has(names, name));
        if let Some((_, start)) = ours.rsplit_once("+0x") {
            let start = hex(start).ok()?;
            if self.symbols.function(address) != Some(start) || !holding.is_empty() {
                return None;
            }
            if theirs.is_empty() {
                return Some(Difference::Unnamed);
            }
            let stretched = self.symbols.unsized_.range(..=address).next_back()?;
            let same = stretched.1.iter().any(|name| self.names.of(name) == theirs);
            return (same && *stretched.0 < start).then_some(Difference::Stretched);
        }
        if holding
            .iter()
            .any(|names| has(names, ours) && has(names, theirs))
        {
            return Some(Difference::Alias);
        }
        if self.has_debug_symbols && named(ours) && !named(theirs) {
            return Some(Difference::DebugSymbol);
        }
        None
    }

    fn difference(
        &self,
        address: u64,
        ours: &[Frame],
        theirs: &[Frame],
    ) -> Result<BTreeSet<Difference>> {
        let mut differences = BTreeSet::new();
        if ours.is_empty() && theirs.is_empty() {
            differences.insert(Difference::Nothing);
            return Ok(differences);
        }
        if let ([ours], []) = (ours, theirs) {
            let why = self.outermost(address, &ours.function, "");
            differences.insert(why.context("llvm has nothing")?);
            return Ok(differences);
        }
        ensure!(ours.len() == theirs.len(), "another number of frames");
        for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
            ensure!(our.line == their.line, "another line in frame {index}");
            if our.function == their.function {
                continue;
            }
            let why = (decoded(&their.function) == our.function)
                .then_some(Difference::Rust)
                .or_else(|| {
                    (index + 1 == ours.len())
                        .then(|| self.outermost(address, &our.function, &their.function))
                        .flatten()
                })
                .with_context(|| format!("another name in frame {index}"))?;
            differences.insert(why);
        }
        Ok(differences)
    }
}

/// Compares the results for a file at random addresses. Returns the number of differences of each kind.
fn compare(path: &Path, debug: Option<&Path>) -> Result<BTreeMap<Difference, usize>> {
    let addresses = addresses(path)?;
    let source = ElfSource::open(path, &DebugFiles::system())?;
    let theirs = by_llvm(path, &addresses)?;
    let symbols = Symbols::of(path, debug)?;
    let names = Demangled::new(&symbols)?;
    let judge = Judge {
        symbols: &symbols,
        names: &names,
        has_debug_symbols: debug.is_some(),
    };
    let mut found = BTreeMap::new();
    let mut unexplained = Vec::new();
    let mut frames = 0;
    for (&address, theirs) in addresses.iter().zip(&theirs) {
        let ours: Vec<Frame> = source
            .frames(address)
            .into_iter()
            .map(|frame| Frame {
                function: frame.function.into_owned(),
                line: frame
                    .location
                    .map(|location| (plain(&location.file), location.line.into())),
            })
            .collect();
        frames += ours.len();
        match judge.difference(address, &ours, theirs) {
            Ok(differences) => {
                for difference in differences {
                    *found.entry(difference).or_default() += 1;
                }
            }
            Err(why) => unexplained.push(format!("{address:#x}: {why}\n{ours:#?}\n{theirs:#?}")),
        }
    }
    println!("{}: {frames} frames, {found:?}", path.display());
    ensure!(
        unexplained.is_empty(),
        "{}: {} unexplained differences, the first:\n{}",
        path.display(),
        unexplained.len(),
        unexplained[..unexplained.len().min(5)].join("\n")
    );
    Ok(found)
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("not compared: there is no {program}");
    }
    found
}

/// Returns a file of this machine. Prints a message if it is missing.
fn present(path: &str, package: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    if !path.exists() {
        eprintln!("not compared: {} is missing ({package})", path.display());
        return None;
    }
    Some(path)
}

/// Builds the programs of `tests/native` once.
fn programs() -> Result<&'static Path> {
    static FOLDER: std::sync::OnceLock<std::result::Result<PathBuf, String>> =
        std::sync::OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/build.sh");
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
            let status = Command::new(script)
                .arg(&folder)
                .status()
                .map_err(|error| error.to_string())?;
            match status.success() {
                true => Ok(folder),
                false => Err("native/build.sh failed".to_owned()),
            }
        })
        .as_deref()
        .map_err(|error| anyhow::anyhow!(error.clone()))
}

#[test]
fn libart() -> Result<()> {
    let path = "/usr/lib/x86_64-linux-gnu/android/libart.so.0";
    let (Some(path), true) = (
        present(path, "android-libart"),
        is_installed("llvm-symbolizer-16"),
    ) else {
        return Ok(());
    };
    let found = compare(&path, None)?;
    // It is stripped, and many of its functions are not exported.
    assert!(found[&Difference::Unnamed] > 1000);
    Ok(())
}

#[test]
fn libc_with_its_debug_file() -> Result<()> {
    let (Some(path), true) = (
        present("/lib/x86_64-linux-gnu/libc.so.6", "libc6"),
        is_installed("llvm-symbolizer-16"),
    ) else {
        return Ok(());
    };
    let source = ElfSource::open(&path, &DebugFiles::none())?;
    let id = source.symbols().build_id().context("no build-id")?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let debug = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    let Some(debug) = present(&debug, "libc6-dbg") else {
        return Ok(());
    };
    compare(&path, Some(&debug)).map(drop)
}

#[test]
fn varid_itself() -> Result<()> {
    if !is_installed("llvm-symbolizer-16") {
        return Ok(());
    }
    compare(&varid_tests::testbed()?.release.join("varid"), None).map(drop)
}

#[test]
fn a_rust_program() -> Result<()> {
    if !is_installed("llvm-symbolizer-16") {
        return Ok(());
    }
    compare(&programs()?.join("words"), None).map(drop)
}

#[test]
fn a_cpp_program_and_its_library() -> Result<()> {
    if !is_installed("llvm-symbolizer-16") {
        return Ok(());
    }
    for name in ["shapes", "libshapes.so", "shapes-4"] {
        compare(&programs()?.join(name), None)?;
    }
    Ok(())
}
