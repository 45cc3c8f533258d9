//! Tests that samples in code that a process generates, and in the vdso, have names in every reader.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use varid_tests::{report_with, skip_without_root, skipped, testbed};

/// The folder of programs that generate code.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/jit");

fn has(program: &str, flag: &str) -> bool {
    let found = Command::new(program).arg(flag).output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        skipped("jit", &format!("there is no {program} here"));
    }
    has
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Records a command until it ends.
fn record(session: &Path, folder: &Path, command: &[&str]) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid.current_dir(folder).stdin(Stdio::null());
    varid
        .args(["record", "-F", "1999", "-o"])
        .arg(session)
        .arg("--");
    run(varid.args(command)).map(drop)
}

/// The number of attempts to record a command whose code had no names.
const TRIES: usize = 2;

/// Records a command whose own code gets names, and returns the session in the folder. The names are found while the
/// process lives, so it is recorded again if it ended before, as on a stalled machine.
fn record_named(folder: &Path, command: &[&str]) -> Result<PathBuf> {
    let mut session = PathBuf::new();
    for number in 0..TRIES {
        session = folder.join(format!("session.{number}"));
        record(&session, folder, command)?;
        if let [file] = &symbol_files(&session, "jit-")?[..]
            && by_perf(&session, file)?
                .iter()
                .any(|leaf| leaf.symbol != "[unknown]")
        {
            break;
        }
        println!("jit: {command:?} had no names the {number}. time");
    }
    Ok(session)
}

/// Returns the rows of `varid report`.
fn rows(session: &Path, by: &str) -> Result<Vec<serde_json::Value>> {
    let report = report_with(session, &["--by", by])?;
    Ok(report["rows"].as_array().context("no rows")?.clone())
}

/// Returns the leaf samples by image and symbol, by `varid report`.
fn by_varid(session: &Path) -> Result<BTreeMap<(String, String), u64>> {
    let rows = rows(session, "symbol")?;
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let mut found = BTreeMap::new();
    for row in &rows {
        // Adapters of a VM have the same name, but separate rows.
        let key = (text(row, "image"), text(row, "symbol"));
        *found.entry(key).or_default() += row["self"].as_u64().unwrap_or(0);
    }
    Ok(found)
}

/// A sample's leaf as read by perf.
struct Leaf {
    address: u64,
    symbol: String,
}

/// Returns each sample whose leaf is in the session's file of this name, by `perf script`.
fn by_perf(session: &Path, file: &str) -> Result<Vec<Leaf>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "ip,sym,dso", "-i"]);
    let script = run(perf.arg(session.join("perf.data")))?;
    Ok(script
        .lines()
        .filter(|line| line.contains(file))
        .filter_map(|line| {
            // ADDRESS SYMBOL (FILE)
            let (address, rest) = line.trim().split_once(' ')?;
            let (symbol, _) = rest.rsplit_once(" (")?;
            Some(Leaf {
                address: u64::from_str_radix(address, 16).ok()?,
                symbol: symbol.trim().to_owned(),
            })
        })
        .collect())
}

/// Returns the session's symbol files with this prefix.
fn symbol_files(session: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(session.join("symbols"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            names.push(name);
        }
    }
    Ok(names)
}

/// The ranges and names of code according to its producer. Later code follows earlier code.
type Told = Vec<(std::ops::Range<u64>, String)>;

/// Returns the path of the perf map of the process with this symbol file.
fn perf_map(jit_file: &str) -> PathBuf {
    let pid = jit_file.trim_start_matches("jit-").trim_end_matches(".elf");
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// Removes the perf maps of the sessions' processes in a folder, even after a failure.
struct PerfMaps<'a>(&'a Path);

impl Drop for PerfMaps<'_> {
    fn drop(&mut self) {
        for session in std::fs::read_dir(self.0).into_iter().flatten().flatten() {
            for file in symbol_files(&session.path(), "jit-").unwrap_or_default() {
                let _ = std::fs::remove_file(perf_map(&file));
            }
        }
    }
}

/// Reads the process's perf map.
fn read_perf_map(jit_file: &str) -> Result<Told> {
    let path = perf_map(jit_file);
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    String::from_utf8_lossy(&text)
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut number = || -> Result<u64> {
                let word = words.next().context("a line ends early")?;
                Ok(u64::from_str_radix(word.trim_start_matches("0x"), 16)?)
            };
            let (start, size) = (number()?, number()?);
            let name = words.next().context("no name")?.trim();
            Ok((start..start + size, name.to_owned()))
        })
        .collect()
}

/// Reads the records of loaded code in a jitdump file.
fn read_jitdump(path: &Path) -> Result<Told> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let mut told = Told::new();
    // Magic, version, size of the header ...
    let mut at = u32_at(8) as usize;
    while at + 16 <= bytes.len() {
        let (kind, size) = (u32_at(at), u32_at(at + 4) as usize);
        ensure!(
            kind != 1,
            "code was moved, which this reader does not follow"
        );
        if kind == 0 {
            // ... and of a record kind, size, time, pid, tid, vma, address, size of the code, index, name.
            let (start, len) = (u64_at(at + 32), u64_at(at + 40));
            let name = bytes[at + 56..at + size].split(|&byte| byte == 0).next();
            let name = String::from_utf8_lossy(name.context("no name")?);
            told.push((start..start + len, name.into_owned()));
        }
        at += size;
    }
    Ok(told)
}

/// Checks that every sample in the process's own code has its producer's name for the address, in perf and in varid.
fn compare(session: &Path, told: impl Fn(&str) -> Result<Told>, at_least: u64) -> Result<()> {
    let files = symbol_files(session, "jit-")?;
    let [file] = &files[..] else {
        anyhow::bail!("one process made code, and there are {files:?}")
    };
    let told = told(file)?;
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let leaves = by_perf(session, file)?;
    for leaf in &leaves {
        let entry = told
            .iter()
            .rev()
            .find(|(range, _)| range.contains(&leaf.address));
        let Some((_, name)) = entry else {
            continue; // code without a name from its producer
        };
        ensure!(
            leaf.symbol == *name,
            "{:#x}: its producer says {name:?}, perf {:?}",
            leaf.address,
            leaf.symbol
        );
        *expected.entry(name.clone()).or_default() += 1;
    }
    let named: u64 = expected.values().sum();
    println!(
        "jit: {named} samples of {} have the names that were told",
        leaves.len()
    );
    ensure!(named >= at_least, "only {named} samples: {expected:?}");
    let varid: BTreeMap<String, u64> = by_varid(session)?
        .into_iter()
        .filter(|((image, symbol), samples)| {
            image == "[jit]" && *samples > 0 && expected.contains_key(symbol)
        })
        .map(|((_, symbol), samples)| (symbol, samples))
        .collect();
    ensure!(
        varid == expected,
        "told {expected:?}\nvarid report {varid:?}"
    );
    Ok(())
}

#[test]
fn code_of_node_has_the_names_of_its_map() -> Result<()> {
    if skip_without_root("jit") || !has("node", "--version") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let script = format!("{PROGRAMS}/spin.js");
    let node = ["node", "--perf-basic-prof", &script];
    let _maps = PerfMaps(folder.path());
    let session = record_named(folder.path(), &node)?;
    compare(&session, read_perf_map, 50)
}

#[test]
fn code_of_node_has_the_names_of_its_jitdump() -> Result<()> {
    if skip_without_root("jit") || !has("node", "--version") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let script = format!("{PROGRAMS}/spin.js");
    // V8 also writes unwind information for its frames.
    let node = ["node", "--perf-prof", "--perf-prof-unwinding-info", &script];
    let session = record_named(folder.path(), &node)?;
    let dump = |jit_file: &str| read_jitdump(&folder.path().join(jit_file).with_extension("dump"));
    compare(&session, dump, 50)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_without_frame_pointers_has_the_callers_that_its_jitdump_or_its_instructions_tell()
-> Result<()> {
    if skip_without_root("jit") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("frames").display().to_string();
    let mut compiler = Command::new("cc");
    compiler.current_dir(PROGRAMS).args([
        "-O1",
        "-fomit-frame-pointer",
        "frames.c",
        "-o",
        &program,
    ]);
    run(&mut compiler)?;
    let session = record_named(folder.path(), &[&program, "3000"])?;
    let folded = folder.path().join("stacks");
    let mut export = testbed()?.varid();
    export
        .args(["export", "-f", "folded", "-o"])
        .args([&folded, &session]);
    run(&mut export)?;
    let (mut whole, mut all) = (0, 0);
    for line in std::fs::read_to_string(&folded)?.lines() {
        let (stack, period) = line.rsplit_once(' ').context("no period")?;
        let period: u64 = period.parse()?;
        if stack.contains("described") || stack.contains("adapter") {
            all += period;
        }
        if stack.contains(";main;adapter;described;hot") {
            whole += period;
        }
    }
    println!("jit: {whole} of {all} ns in whole stacks");
    // A sample may hit an instruction that sets up or tears down a frame of the adapter: once in 200,000 rounds of the
    // loop.
    ensure!(all > 0 && (all - whole) * 50 <= all, "{whole} of {all} ns");
    Ok(())
}

#[test]
fn code_that_is_registered_for_gdb_and_the_vdso_have_names() -> Result<()> {
    if skip_without_root("jit") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (object, program) = (at("hot.o"), at("registrar"));
    let cc = |arguments: &[&str]| run(Command::new("cc").current_dir(PROGRAMS).args(arguments));
    cc(&["-O1", "-c", "hot.c", "-o", &object])?;
    cc(&["-O1", "-rdynamic", "registrar.c", "-o", &program])?;
    let session = record_named(folder.path(), &[&program, &object, "4000"])?;

    let varid = by_varid(&session)?;
    let of = |image: &str, symbol: &str| {
        let key = (image.to_owned(), symbol.to_owned());
        varid.get(&key).copied().unwrap_or(0)
    };
    let files = symbol_files(&session, "jit-")?;
    let [file] = &files[..] else {
        anyhow::bail!("one process made code, and there are {files:?}")
    };
    let perf = by_perf(&session, file)?;
    let hot = perf.iter().filter(|leaf| leaf.symbol == "jit_leaf").count() as u64;
    println!("jit: {hot} samples in registered code");
    ensure!(
        hot >= 50 && hot == perf.len() as u64,
        "perf: {hot} of {}",
        perf.len()
    );
    ensure!(of("[jit]", "jit_leaf") == hot, "varid: {varid:?}");

    // The kernel's code in the process. Its names come from the session, whatever kernel runs the reader.
    let vdso = symbol_files(&session, "vdso-")?;
    let [vdso] = &vdso[..] else {
        anyhow::bail!("one vdso was sampled, and there are {vdso:?}")
    };
    let readelf = run(Command::new("readelf")
        .arg("-n")
        .arg(session.join("symbols").join(vdso)))?;
    let build_id = vdso.trim_start_matches("vdso-").trim_end_matches(".so");
    ensure!(readelf.contains(build_id), "{vdso}: {readelf}");
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for leaf in by_perf(&session, vdso)? {
        *by_name.entry(leaf.symbol).or_default() += 1;
    }
    println!("jit: samples in the vdso: {by_name:?}");
    let in_varid: u64 = varid
        .iter()
        .filter(|((image, _), _)| image == "[vdso]")
        .map(|(_, samples)| samples)
        .sum();
    ensure!(
        in_varid >= 20 && in_varid == by_name.values().sum::<u64>(),
        "{varid:?}"
    );
    Ok(())
}
