//! Tests the names of code without an accessible file: in a container, of a deleted file, in memory, on another
//! machine.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use varid_tests::{PERF_REPORT, Running, compile, printed, skip_without_root, testbed};

/// The CPU time of the program in milliseconds. At 4 kHz it has at least [`SAMPLES`] samples under any load.
const BUDGET: &str = "1000";
const SAMPLES: u64 = 2000;

/// The names of the program's images.
const IMAGES: [&str; 4] = ["prog", "copy", "brief", "memfd:prog"];

/// The program with known shares, in a folder of its own.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        compile("kept", folder.path())?;
        fs::rename(folder.path().join("kept"), folder.path().join("prog"))?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records a shell script in the folder. Returns the session.
    fn record(&self, name: &str, options: &[&str], script: &str) -> Result<PathBuf> {
        let session = self.path(name);
        let mut varid = testbed()?.varid();
        varid
            .args([
                "record",
                "-q",
                "-e",
                "cpu-clock",
                "-F",
                "4000",
                "--stack",
                "full",
            ])
            .args(options)
            .arg("-o")
            .arg(&session)
            .args(["--", "sh", "-ec", script])
            .current_dir(self.folder.path());
        let recorded = varid.status()?;
        ensure!(recorded.success(), "{script}: {recorded}");
        Ok(session)
    }
}

/// Moves the session to another folder, and marks it as recorded on another machine. No path of this machine leads to
/// its files.
fn elsewhere(session: &Path) -> Result<PathBuf> {
    let moved = session.with_extension("moved");
    fs::rename(session, &moved)?;
    let manifest = moved.join("session.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&manifest)?)?;
    json["host"]["machine"] = "elsewhere".into();
    fs::write(&manifest, json.to_string())?;
    Ok(moved)
}

/// Returns the leaf samples of the three functions that `outer` and `main` call, and the program's samples without such
/// names.
fn shares(session: &Path) -> Result<([u64; 3], u64)> {
    let mut export = testbed()?.varid();
    export.args(["export", "-q", "-f", "jsonl"]).arg(session);
    let (mut found, mut others) = ([0; 3], 0);
    for line in printed(&mut export)?.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let Some(frames) = sample["frames"].as_array() else {
            continue;
        };
        let image = frames.first().and_then(|leaf| leaf["image"].as_str());
        let is_programs = image.is_some_and(|image| IMAGES.contains(&image));
        let names: Vec<_> = frames
            .iter()
            .filter_map(|frame| frame["symbol"].as_str())
            .collect();
        match names.as_slice() {
            ["three", "outer", "main", ..] => found[0] += 1,
            ["two", "outer", "main", ..] => found[1] += 1,
            ["one", "outer", "main", ..] => found[2] += 1,
            _ => others += u64::from(is_programs),
        }
    }
    Ok((found, others))
}

/// Checks the functions' shares. With 2,000 samples, five percentage points are more than four standard deviations.
fn has_names(session: &Path) -> Result<()> {
    let (found, others) = shares(session)?;
    println!("{}: {found:?}, {others} others", session.display());
    let all: u64 = found.iter().sum();
    ensure!(all >= SAMPLES, "{found:?}, {others} others");
    for (samples, sixths) in found.into_iter().zip([3, 2, 1]) {
        let expected = all * sixths / 6;
        ensure!(samples.abs_diff(expected) * 20 <= all, "{found:?}");
    }
    // Self samples of `outer` and `main`, and those before them.
    ensure!(others * 20 <= all, "{found:?}, {others} others");
    Ok(())
}

#[test]
fn code_of_files_that_no_path_leads_to_has_names_here_and_elsewhere() -> Result<()> {
    if skip_without_root("kept symbols") {
        return Ok(());
    }
    let program = Program::new()?;
    let in_memory = format!(
        "exec python3 -c 'import os
file = os.memfd_create(\"prog\")
os.write(file, open(\"prog\", \"rb\").read())
os.execve(file, [\"prog\", \"{BUDGET}\"], os.environ)'"
    );
    let in_container = format!(
        "mkdir inside; exec unshare -m sh -ec 'mount -t tmpfs none inside; cp prog inside/prog; exec inside/prog {BUDGET}'"
    );
    let deleted = format!("cp prog copy; exec ./copy {BUDGET} delete");
    for (name, script) in [
        ("container", in_container),
        ("deleted", deleted),
        // It is found when it is first sampled, and gone at the end.
        ("late", format!("cp prog brief; ./brief {BUDGET}; rm brief")),
        ("memory", in_memory),
    ] {
        let session = program.record(name, &[], &script)?;
        has_names(&session).with_context(|| name.to_owned())?;
        if name == "container" {
            perf_has_names(&session)?;
        }
        has_names(&elsewhere(&session)?).with_context(|| format!("{name}, elsewhere"))?;
    }
    Ok(())
}

/// Checks that perf uses the session's file for names as well.
fn perf_has_names(session: &Path) -> Result<()> {
    let mut perf = Command::new("perf");
    perf.args(PERF_REPORT).arg(session.join("perf.data"));
    let printed = printed(&mut perf)?;
    for name in ["three", "two", "one"] {
        let symbol = format!("[.] {name}");
        let mut fields = printed.lines().flat_map(|line| line.split('|'));
        let named = fields.any(|field| field.trim() == symbol);
        ensure!(named, "{name}: {printed}");
    }
    Ok(())
}

#[test]
fn a_session_with_all_symbols_names_a_program_that_is_gone() -> Result<()> {
    if skip_without_root("all symbols") {
        return Ok(());
    }
    let program = Program::new()?;
    let script = format!("exec ./prog {BUDGET}");
    let plain = program.record("plain", &[], &script)?;
    let whole = program.record("whole", &["--keep-symbols"], &script)?;
    has_names(&plain)?;
    fs::remove_file(program.path("prog"))?;
    let (found, _) = shares(&plain)?;
    ensure!(found == [0; 3], "without its file: {found:?}");
    has_names(&elsewhere(&whole)?)
}

#[test]
fn text_that_a_program_has_moved_to_memory_is_its_files() -> Result<()> {
    if skip_without_root("moved text") {
        return Ok(());
    }
    let program = Program::new()?;
    for memory in ["anonymous", "memfd"] {
        let session = program.record(memory, &[], &format!("exec ./prog {BUDGET} {memory}"))?;
        has_names(&session).with_context(|| memory.to_owned())?;
        let attached = program.attached(memory)?;
        has_names(&attached).with_context(|| format!("{memory}, attached"))?;
    }
    Ok(())
}

impl Program {
    /// Records a session that starts after the program has moved its text. The program waits for it.
    fn attached(&self, memory: &str) -> Result<PathBuf> {
        let go = self.path(&format!("go-{memory}"));
        ensure!(
            Command::new("mkfifo").arg(&go).status()?.success(),
            "mkfifo"
        );
        let mut moved = Command::new(self.path("prog"));
        moved.args([BUDGET, memory]).arg(&go).stdout(Stdio::piped());
        let mut moved = Running(moved.spawn()?);
        let mut ready = String::new();
        let said = moved.0.stdout.take().context("no output")?;
        BufReader::new(said).read_line(&mut ready)?;
        ensure!(ready == "ready\n", "{ready:?}");
        let pid = moved.0.id().to_string();
        // Waits until the process has ended. This process does not reap it meanwhile.
        let script = format!(
            "echo > go-{memory}; until grep -q '^State:.Z' /proc/{pid}/status; do sleep 0.1; done"
        );
        self.record(&format!("attached-{memory}"), &["-p", &pid], &script)
    }
}
