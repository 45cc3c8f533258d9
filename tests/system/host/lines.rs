//! Tests that the lines in a report are those that dexdump, addr2line and perf find at the same addresses.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{App, printed, record, report_with, skip_without_root, testbed};

/// A line of a function: symbol, whether it is inlined, the file's name without folders, and the line, or 0 if unknown.
type Line = (String, bool, String, u64);

/// Self and total samples of each line.
type Lines = BTreeMap<Line, (u64, u64)>;

fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Returns the rows of `varid report --by line` for images with this suffix.
fn by_varid(session: &Path, image: &str) -> Result<Lines> {
    let report = report_with(session, &["--by", "line"])?;
    let mut found = Lines::new();
    for row in report["rows"].as_array().context("no rows")? {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        if text("image").ends_with(image) {
            let line = row["line"].as_u64().unwrap_or(0);
            let key = (
                text("symbol"),
                row["inlined"] == true,
                base_name(&text("file")),
                line,
            );
            let count = |key: &str| row[key].as_u64().context("no count");
            let share = (count("self")?, count("total")?);
            ensure!(found.insert(key, share).is_none(), "two rows: {row}");
        }
    }
    Ok(found)
}

/// A frame as printed by `perf script`, with its address in its file.
struct Frame {
    address: u64,
    symbol: String,
    file: String,
}

impl Frame {
    fn parse(line: &str) -> Result<Self> {
        let whole = || format!("perf script printed {line:?}");
        let (address, rest) = line.trim().split_once(' ').with_context(whole)?;
        let (symbol, file) = rest.rsplit_once(" (").with_context(whole)?;
        Ok(Self {
            address: u64::from_str_radix(address, 16).with_context(whole)?,
            symbol: symbol.to_owned(),
            file: file.trim_end_matches(')').to_owned(),
        })
    }

    fn is_kernel(&self) -> bool {
        let named = self.file.starts_with('[') && self.file != "[unknown]" && self.file != "[vdso]";
        self.address >= 0xffff_0000_0000_0000 || named || self.file.starts_with("bpf_prog")
    }
}

/// Returns the user frames of each sample, leaf first, by an unmodified perf, and whether the sample was taken in user
/// space.
fn samples(session: &Path) -> Result<Vec<(bool, Vec<Frame>)>> {
    let script = printed(
        Command::new("perf")
            .args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"])
            .arg(session.join("perf.data")),
    )?;
    let mut samples = Vec::new();
    for sample in script.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let lines = sample.lines().filter(|line| !line.trim().is_empty());
        let frames = lines.map(Frame::parse).collect::<Result<Vec<_>>>()?;
        let all = frames.len();
        let user: Vec<_> = frames.into_iter().skip_while(Frame::is_kernel).collect();
        samples.push((user.len() == all, user));
    }
    Ok(samples)
}

/// Counts lines as in a report: a sample counts once for each line that is anywhere in its stack.
fn count(
    samples: &[(bool, Vec<Frame>)],
    mut lines: impl FnMut(&Frame, u64) -> Result<Vec<Line>>,
) -> Result<Lines> {
    let mut found = Lines::new();
    for (in_user, frames) in samples {
        let mut seen = BTreeSet::new();
        for (depth, frame) in frames.iter().enumerate() {
            // A caller's address is the return address.
            let address = frame.address - u64::from(depth > 0);
            for (inner, line) in lines(frame, address)?.into_iter().enumerate() {
                let leaf = *in_user && depth == 0 && inner == 0;
                let share = found.entry(line.clone()).or_default();
                share.0 += u64::from(leaf);
                share.1 += u64::from(seen.insert(line));
            }
        }
    }
    Ok(found)
}

/// A dex file's line table by dexdump: the file's name and the line from each offset on.
struct DexLines(BTreeMap<u64, (String, u64)>);

impl DexLines {
    fn read(dex: &Path) -> Result<Self> {
        let text = printed(Command::new("dexdump").arg("-d").arg(dex))?;
        let hex = |text: &str| u64::from_str_radix(text, 16);
        let mut found = BTreeMap::new();
        // The offsets of a class's methods. The source file follows them.
        let (mut pending, mut start) = (Vec::new(), None);
        for line in text.lines() {
            if let Some((offset, instruction)) = line.split_once(": ")
                && let Some((_, unit)) = instruction.split_once('|')
                && let (Ok(offset), Some(unit)) = (hex(offset), unit.get(..4))
            {
                // The method's first instruction. Without debug information it has no line.
                if unit == "0000" {
                    start = Some(offset);
                    pending.push((offset, 0));
                }
            } else if let Some((unit, line)) = line.trim().split_once(" line=")
                && let Some(unit) = unit.strip_prefix("0x")
            {
                let start = start.context("a line before any code")?;
                pending.push((start + 2 * hex(unit)?, line.parse()?));
            } else if let Some(file) = line.trim().strip_prefix("source_file_idx") {
                let file = file.split_once('(').map_or("", |(_, file)| file);
                let file = file.trim_end_matches(')');
                for (offset, line) in pending.drain(..) {
                    found.insert(offset, (file.to_owned(), line));
                }
            }
        }
        ensure!(
            !found.is_empty(),
            "dexdump shows no code in {}",
            dex.display()
        );
        Ok(Self(found))
    }

    fn at(&self, offset: u64) -> (String, u64) {
        let row = self.0.range(..=offset).next_back();
        match row.map(|(_, row)| row) {
            Some((file, line)) if *line > 0 => (file.clone(), *line),
            _ => (String::new(), 0),
        }
    }
}

/// Returns the SHA-1 in a dex file's header, which is the name of its substitute's folder.
fn sha1(dex: &Path) -> Result<String> {
    let content = std::fs::read(dex)?;
    let digest = content.get(12..32).context("no dex file")?;
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An addr2line for perf. For libraries without Java lines it immediately returns no line. The real one returns the
/// same for ART's library, which has no lines, but takes 20 ms per address.
const ADDR2LINE: &str = r#"#!/bin/sh
case $2 in
*/symbols/*) exec /usr/bin/addr2line "$@" ;;
*)
    shift 2
    exec /usr/bin/addr2line -e /bin/true "$@"
    ;;
esac
"#;

/// Returns the leaf samples of each Java line, by `perf report --sort srcline`.
fn by_perf(session: &Path) -> Result<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir()?;
    let addr2line = folder.path().join("addr2line");
    std::fs::write(&addr2line, ADDR2LINE)?;
    std::fs::set_permissions(&addr2line, Permissions::from_mode(0o755))?;
    let path = std::env::var("PATH")?;
    let report = printed(
        Command::new("perf")
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .args(["report", "--stdio", "--no-children", "-g", "none", "-n"])
            .args(["-t", "|", "--sort", "srcline", "-i"])
            .arg(session.join("perf.data")),
    )?;
    let mut found = BTreeMap::new();
    for line in report.lines().filter(|line| line.contains(".java:")) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, samples, line, ..] = fields[..] else {
            bail!("perf report printed {line:?}")
        };
        *found.entry(line.to_owned()).or_default() += samples.parse::<u64>()?;
    }
    Ok(found)
}

#[test]
fn every_line_of_java_is_the_one_that_dexdump_shows_at_the_dex_pc() -> Result<()> {
    if skip_without_root("lines of Java") {
        return Ok(());
    }
    for (name, method, rounds) in [("math", "run", 40), ("truth", "shares", 3000)] {
        let app = App::new(name, method, rounds)?;
        let recording = record(&app, &["-F", "4999"])?;
        let session = recording.session();
        let mut tables: HashMap<String, DexLines> = HashMap::new();
        for dex in [app.dex(), testbed()?.boot_dex()] {
            tables.insert(sha1(&dex)?, DexLines::read(&dex)?);
        }
        let samples = samples(&session)?;
        let expected = count(&samples, |frame, address| {
            let folder = Path::new(&frame.file).parent();
            let id = folder.and_then(|folder| folder.file_name()?.to_str());
            let Some(table) = id.and_then(|id| tables.get(id)) else {
                return Ok(Vec::new());
            };
            let (file, line) = table.at(address);
            Ok(vec![(frame.symbol.clone(), false, file, line)])
        })?;
        let found = by_varid(&session, ".dex")?;
        let leaves: u64 = found.values().map(|share| share.0).sum();
        println!(
            "{name}: {} samples, {leaves} of them in {} lines of Java",
            samples.len(),
            found.len()
        );
        for (line, share) in &expected {
            ensure!(
                found.get(line) == Some(share),
                "{line:?}: dexdump {share:?}, varid {:?}",
                found.get(line)
            );
        }
        ensure!(
            found == expected,
            "varid has lines of its own:\n{found:?}\n{expected:?}"
        );
        ensure!(leaves * 3 > samples.len() as u64 && found.len() > 10);
        if name == "math" {
            let mut lines = BTreeMap::new();
            for ((_, _, file, line), share) in found.iter().filter(|row| row.1.0 > 0) {
                *lines.entry(format!("{file}:{line}")).or_default() += share.0;
            }
            lines.retain(|line, _| line.contains(".java:"));
            ensure!(
                lines == by_perf(&session)?,
                "perf has other lines than {lines:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_line_of_native_code_is_the_one_that_addr2line_shows() -> Result<()> {
    if skip_without_root("lines of native code") {
        return Ok(());
    }
    let app = App::new("cradle", "run", 1500)?;
    let library: PathBuf = app.library().context("no library")?;
    let recording = record(&app, &["-F", "4999", "--stack", "full"])?;
    let session = recording.session();
    let samples = samples(&session)?;
    let path = library.display().to_string();
    // In a file that is linked at 0, the addresses of the text equal the offsets.
    let mut known: HashMap<u64, Vec<Line>> = HashMap::new();
    let expected = count(&samples, |frame, address| {
        if frame.file != path {
            return Ok(Vec::new());
        }
        if let Some(lines) = known.get(&address) {
            return Ok(lines.clone());
        }
        let text = printed(
            Command::new("addr2line")
                .args(["-fie", &path])
                .arg(format!("{address:#x}")),
        )?;
        let text: Vec<&str> = text.lines().collect();
        let frames = text.len() / 2;
        let line = |(depth, frame): (usize, &[&str])| -> Result<Line> {
            let (file, line) = frame[1].split_once(':').context("no line")?;
            let line = line.split(' ').next().unwrap_or_default();
            let (file, line) = match line.parse::<u64>() {
                Ok(line) => (base_name(file), line),
                Err(_) => (String::new(), 0),
            };
            Ok((frame[0].to_owned(), depth + 1 < frames, file, line))
        };
        let lines = text
            .chunks_exact(2)
            .enumerate()
            .map(line)
            .collect::<Result<Vec<_>>>()?;
        known.insert(address, lines.clone());
        Ok(lines)
    })?;
    let mut expected = expected;
    let mut found = by_varid(&session, &base_name(&path))?;
    let leaves: u64 = found.values().map(|share| share.0).sum();
    // Code without lines, such as the linker's stubs, has different names in some tools.
    let without = |lines: &mut Lines| -> u64 {
        let all: u64 = lines.values().map(|share| share.0).sum();
        lines.retain(|(_, _, _, line), _| *line > 0);
        all - lines.values().map(|share| share.0).sum::<u64>()
    };
    let (ours, theirs) = (without(&mut found), without(&mut expected));
    ensure!(
        ours == theirs,
        "without a line: addr2line {theirs}, varid {ours}"
    );
    println!(
        "cradle: {} samples, {leaves} of them in {} lines of C",
        samples.len(),
        found.len()
    );
    for (line, share) in &expected {
        ensure!(
            found.get(line) == Some(share),
            "{line:?}: addr2line {share:?}, varid {:?}",
            found.get(line)
        );
    }
    ensure!(
        found == expected,
        "varid has lines of its own:\n{found:?}\n{expected:?}"
    );
    ensure!(leaves > 100, "too few samples in {path}");
    Ok(())
}
