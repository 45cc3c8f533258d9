//! Tests that a process cannot block its profiler, or exhaust resources of other profiles, by what it maps.
//!
//! A VM runs beside each hostile process. Its methods must have names.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{App, skip_without_root, testbed};

/// The time after which an operation is considered blocked.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Kinds of mappings from a file system that is not served.
const UNSERVED: [&str; 4] = ["tunnel", "code", "overlay", "arguments"];

/// A process that is ended with the test, including its children, one of which serves the files that it waits for.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        if let Ok(None) = self.0.try_wait() {
            let _ = killpg(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        }
        let _ = self.0.wait();
    }
}

impl Ended {
    /// Starts the process in its own process group.
    fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(command.process_group(0).spawn()?))
    }

    /// Returns true if the process has ended successfully. It is an error if it never ends.
    fn ends(&mut self) -> Result<bool> {
        let began = Instant::now();
        while began.elapsed() < FOR_EVER {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.success());
            }
            std::thread::yield_now();
        }
        anyhow::bail!("it does not end")
    }
}

/// The hostile program, and a folder for its files.
struct Attack {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Attack {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("hostile");
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/system/host/hostile_mappings.c"
        );
        let cc = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", source])
            .args(["-ldl", "-o"])
            .arg(&program)
            .status()?;
        ensure!(cc.success(), "cc: {cc}");
        fs::create_dir(folder.path().join("files"))?;
        Ok(Self { folder, program })
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// Starts a process with hostile mappings. If it mounts a file system, it has its own mount namespace.
    fn start(&self, kind: &str) -> Result<Ended> {
        let mut command = Command::new("unshare");
        if kind == "names" || UNSERVED.contains(&kind) {
            command.args(["--mount", "--propagation", "private"]);
        }
        command
            .arg("--")
            .arg(&self.program)
            .arg(kind)
            .arg(self.files())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = Ended::start(&mut command)?;
        let output = child.0.stdout.take().context("no pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "mapped\n", "{kind}: {line:?}");
        Ok(child)
    }
}

/// Returns the manifest of a session.
fn manifest(session: &Path) -> Result<serde_json::Value> {
    let path = session.join("session.json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// Records a hostile process and a VM beside it, until a signal. Returns the session's manifest.
/// `limit` is the maximum number of files that varid may open.
fn record_beside(attack: &Attack, kind: &str, limit: u32) -> Result<serde_json::Value> {
    let session = attack.folder.path().join("session");
    let hostile = attack.start(kind)?;
    let app = App::new("math", "run", i32::MAX as u32)?.arguments();
    let (program, arguments) = app.split_first().context("no program")?;
    let app = Ended::start(Command::new(program).args(arguments).stdout(Stdio::null()))?;
    let pids = format!("{},{}", hostile.0.id(), app.0.id());
    let limit = format!("--nofile={limit}");
    let mut varid = Command::new("prlimit");
    varid
        .arg(limit)
        .arg(testbed()?.release.join("varid"))
        .args(["record", "-F", "997", "--pid", &pids, "-o"])
        .arg(&session)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut varid = Ended::start(&mut varid)?;
    // Wait until it has recorded for a while, if it can. A sample has more than a hundred bytes.
    let began = Instant::now();
    let data = session.join("perf.data");
    while fs::metadata(&data).map_or(0, |data| data.len()) < 400_000 {
        ensure!(began.elapsed() < FOR_EVER, "{kind}: nothing is recorded");
        std::thread::yield_now();
    }
    // SIGTERM, as sent by an init system.
    let pid = varid.0.id().to_string();
    ensure!(Command::new("kill").arg(pid).status()?.success());
    ensure!(
        varid.ends().context(kind.to_owned())?,
        "{kind}: varid failed"
    );
    // Searching its libraries would look into the folders of a live process, and block as well.
    drop(hostile);
    ensure!(
        symbols(&session)?.contains(" org.example.math."),
        "{kind}: the VM beside it has no methods"
    );
    let manifest = manifest(&session)?;
    println!("{kind}: {} {}", manifest["counts"], manifest["notes"]);
    ensure!(manifest["state"] == "complete", "{kind}: {manifest}");
    ensure!(
        manifest["counts"]["lost"] == 0,
        "{kind}: {}",
        manifest["counts"]
    );
    Ok(manifest)
}

/// Returns its samples' addresses and symbols, one per line, as read by perf.
fn symbols(session: &Path) -> Result<String> {
    let perf = Command::new("perf")
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(session.join("perf.data"))
        .output()?;
    Ok(String::from_utf8_lossy(&perf.stdout).into_owned())
}

fn has_note(manifest: &serde_json::Value, words: &str) -> bool {
    let notes = manifest["notes"].as_array();
    notes.is_some_and(|notes| {
        notes
            .iter()
            .filter_map(|note| note.as_str())
            .any(|note| note.contains(words))
    })
}

#[test]
fn a_process_whose_files_nobody_serves_holds_up_no_session() -> Result<()> {
    if skip_without_root("held_up") {
        return Ok(());
    }
    for kind in UNSERVED {
        let manifest = record_beside(&Attack::new()?, kind, 4096)?;
        let waited = has_note(&manifest, "keeps varid waiting");
        ensure!(waited, "{kind}: {}", manifest["notes"]);
    }
    Ok(())
}

#[test]
fn a_process_with_as_many_mappings_as_there_may_be_costs_others_nothing() -> Result<()> {
    if skip_without_root("held_up") {
        return Ok(());
    }
    let manifest = record_beside(&Attack::new()?, "many", 4096)?;
    ensure!(
        has_note(&manifest, "of its mappings are not known"),
        "{}",
        manifest["notes"]
    );
    Ok(())
}

#[test]
fn a_process_with_more_files_than_may_be_opened_costs_others_nothing() -> Result<()> {
    if skip_without_root("held_up") {
        return Ok(());
    }
    let manifest = record_beside(&Attack::new()?, "files", 1024)?;
    ensure!(
        has_note(&manifest, "of its mappings are not known"),
        "{}",
        manifest["notes"]
    );
    Ok(())
}

/// Returns true for names that the process with endless code names uses.
fn is_attacks(name: &str) -> bool {
    let number = name.strip_prefix('n');
    number.is_some_and(|number| u32::from_str_radix(number, 16).is_ok())
}

#[test]
fn a_process_that_names_its_code_for_ever_costs_others_nothing() -> Result<()> {
    if skip_without_root("held_up") {
        return Ok(());
    }
    let attack = Attack::new()?;
    let manifest = record_beside(&attack, "names", 4096)?;
    // It is a race whether anything was left to read, and which samples had one name.
    let why = ["some of it has no names", "may be of either"];
    let noted = why.iter().any(|words| has_note(&manifest, words));
    let symbols = symbols(&attack.folder.path().join("session"))?;
    let is_named = symbols
        .lines()
        .any(|line| line.split(' ').next_back().is_some_and(is_attacks));
    ensure!(noted || is_named, "{}", manifest["notes"]);
    Ok(())
}

#[test]
fn a_library_whose_name_is_no_text_hides_nothing() -> Result<()> {
    if skip_without_root("held_up") {
        return Ok(());
    }
    let attack = Attack::new()?;
    let name = OsString::from_vec(b"lib\xff\xfe.so".to_vec());
    let library = attack.files().join(name);
    let source = attack.folder.path().join("named.c");
    fs::write(
        &source,
        "unsigned long named_work(unsigned long x) { for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1; return x; }",
    )?;
    let cc = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()?;
    ensure!(cc.success(), "cc: {cc}");
    record_beside(&attack, "name", 4096)?;
    let report = testbed()?
        .varid()
        .args(["report", "--format", "csv", "-i"])
        .arg(attack.folder.path().join("session"))
        .output()?;
    let text = String::from_utf8_lossy(&report.stdout);
    ensure!(text.contains("named_work"), "{text}");
    Ok(())
}
