//! Robustness tests: varid prints a clear message, perf can read the recording, and the app is not affected.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use varid_tests::{App, Libart, Says, compile, record, skip_without_root, testbed};

/// Returns the text on standard error.
fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that the program succeeded, or else returns its output.
fn succeeded(output: &Output) -> Result<()> {
    ensure!(
        output.status.success(),
        "{}\n{}",
        output.status,
        complaints(output)
    );
    Ok(())
}

/// Returns every address of a session's callchains, with its symbol by perf.
fn symbols(session: &Path) -> Result<String> {
    let output = Command::new("perf")
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(session.join("perf.data"))
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the number of samples that perf reads in a session.
fn samples(session: &Path) -> Result<usize> {
    let file = session.join("perf.data");
    let output = Command::new("perf")
        .args(["script", "-f", "-G", "-F", "tid,ip", "-i"])
        .arg(&file)
        .output()?;
    ensure!(
        output.status.success(),
        "perf script of {}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count())
}

/// Returns `varid record` of a command, to which options can be added. Its output is captured.
fn varid_record(session: &Path, options: &[&str]) -> Result<Command> {
    let mut command = testbed()?.varid();
    command.arg("record").args(options).arg("-o").arg(session);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_is_not_there_is_a_line_and_a_failure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut gone = Command::new("true").spawn()?;
    let pid = gone.id().to_string();
    gone.wait()?;
    let output = varid_record(&folder.path().join("s"), &["--pid", &pid])?.output()?;
    ensure!(output.status.code() == Some(1), "{}", output.status);
    ensure!(
        complaints(&output).contains(&pid),
        "{}",
        complaints(&output)
    );
    Ok(())
}

#[test]
fn an_app_that_exits_at_once_leaves_a_readable_recording() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    let output = varid_record(&session, &[])?.args(["--", "true"]).output()?;
    succeeded(&output)?;
    samples(&session)?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_unknown_build_of_a_vm_is_named_and_its_samples_are_counted() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("unknown_vm");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/host/unknown_vm.c");
    let built = Command::new("cc")
        .arg(source)
        .arg("-O1")
        .arg("-o")
        .arg(&program)
        .status()?;
    ensure!(built.success(), "cc: {built}");
    let libart = Libart::unknown(Says::Nothing)?;

    let session = folder.path().join("s");
    let output = varid_record(&session, &[])?
        .arg("--")
        .arg(&program)
        .arg(libart.path())
        .output()?;
    let said = complaints(&output);
    ensure!(output.status.success(), "{}\n{said}", output.status);
    ensure!(
        said.contains(&libart.build_id[..8]) && said.contains("not in the table of known builds"),
        "{said}"
    );
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(session.join("session.json"))?)?;
    let unknown = manifest["counts"]["unattributed"]["unknown-vm"]
        .as_u64()
        .unwrap_or(0);
    let all = manifest["counts"]["samples"].as_u64().unwrap_or(0);
    ensure!(
        unknown > 100 && unknown > all / 2,
        "{unknown} of {all} samples are unknown-vm"
    );
    Ok(())
}

#[test]
fn a_command_that_does_not_exist_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let output = varid_record(&folder.path().join("s"), &[])?
        .args(["--", "/nonexistent/app"])
        .output()?;
    ensure!(!output.status.success(), "{}", output.status);
    ensure!(
        complaints(&output).contains("/nonexistent/app"),
        "{}",
        complaints(&output)
    );
    Ok(())
}

#[test]
fn a_vm_killed_in_the_middle_leaves_its_samples() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    // The shell kills its own process, which has become the VM, after a second of CPU time (utime, proc(5)).
    let app = App::new("truth", "shares", i32::MAX as u32)?.arguments();
    let script = "(while [ \"$(cut -d ' ' -f 14 /proc/$$/stat)\" -lt 100 ]; do sleep 0.1; done; kill -KILL $$) & exec \"$@\"";
    let output = varid_record(&session, &["-F", "997"])?
        .args(["--", "sh", "-c", script, "sh"])
        .args(app)
        .output()?;
    println!("killed VM: {}: {}", output.status, complaints(&output));
    ensure!(
        symbols(&session)?.contains("org.example.truth."),
        "{}",
        complaints(&output)
    );
    Ok(())
}

#[test]
fn a_vm_that_a_shell_becomes_is_followed_through_its_exec() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    let app = App::new("math", "run", 30)?;
    let output = varid_record(&session, &["-F", "997"])?
        .args(["--", "sh", "-c", "exec \"$@\"", "sh"])
        .args(app.arguments())
        .output()?;
    succeeded(&output)?;
    ensure!(
        String::from_utf8_lossy(&output.stdout) == app.expected()?,
        "the app's result"
    );
    ensure!(
        symbols(&session)?.contains("org.example.math."),
        "no method after the exec"
    );
    Ok(())
}

#[test]
fn a_fork_without_exec_and_a_child_of_a_shell_are_followed() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    let app = App::new("math", "run", 30)?;
    let script = "(\"$@\"); :";
    let output = varid_record(&session, &["-F", "997"])?
        .args(["--", "sh", "-c", script, "sh"])
        .args(app.arguments())
        .output()?;
    succeeded(&output)?;
    ensure!(
        symbols(&session)?.contains("org.example.math."),
        "no method of the forked app"
    );
    Ok(())
}

#[test]
fn hundreds_of_threads_that_come_and_go_are_followed() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    // Three workers per round, one round after the other, so that their ids are reused.
    let recording = record(&App::new("truth", "threads", 1)?, &["-F", "997"])?;
    samples(&recording.session())?;
    let recording = record(&App::new("truth", "run", 200)?, &["-F", "997"])?;
    let counts = recording.counts()?;
    println!("800 threads: {counts}");
    ensure!(
        samples(&recording.session())? as u64 == counts["samples"].as_u64().context("no count")?
    );
    Ok(())
}

#[test]
fn two_hundred_threads_at_once_are_all_recorded() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    let vm = testbed()?.shadowvm.join("shadowvm");
    let dex = testbed()?.shadowvm.join("shadow.dex");
    let output = varid_record(&session, &["-F", "997"])?
        .arg("--")
        .arg(vm)
        .arg("--dex")
        .arg(dex)
        .args(["--name", "org.example.shadow", "--threads", "200"])
        .output()?;
    succeeded(&output)?;
    let script = Command::new("perf")
        .args(["script", "--no-inline", "-F", "tid,ip,sym", "-G", "-i"])
        .arg(session.join("perf.data"))
        .output()?;
    let text = String::from_utf8_lossy(&script.stdout).into_owned();
    let threads: std::collections::BTreeSet<&str> = text
        .lines()
        .filter(|line| line.contains("org.example.shadow."))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    println!("200 threads: {} with samples in methods", threads.len());
    ensure!(
        threads.len() > 150,
        "only {} threads have samples in methods",
        threads.len()
    );
    Ok(())
}

#[test]
fn a_full_disk_ends_the_recording_in_order_and_not_the_app() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let disk = Mounted::tmpfs(folder.path(), "1m")?;
    let session = folder.path().join("s");
    let app = App::new("math", "run", 60)?;
    let output = varid_record(&session, &["-F", "4999"])?
        .arg("--")
        .args(app.arguments())
        .output()?;
    println!("full disk: {}: {}", output.status, complaints(&output));
    ensure!(
        String::from_utf8_lossy(&output.stdout) == app.expected()?,
        "the app's result"
    );
    ensure!(
        complaints(&output).to_lowercase().contains("space"),
        "nothing says that the disk is full: {}",
        complaints(&output)
    );
    let kept = samples(&session)?;
    println!("full disk: {kept} samples kept");
    ensure!(kept > 0, "nothing was kept");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(session.join("session.json"))?)?;
    ensure!(
        manifest["state"] == "failed" && manifest["counts"]["samples"] == kept,
        "{kept} samples were kept, the manifest says {} and {}",
        manifest["state"],
        manifest["counts"]
    );
    drop(disk);
    Ok(())
}

/// Batch systems set such limits.
#[test]
fn limits_of_files_and_of_memory_are_a_line_and_not_varid_s_death() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("s");
    let app = App::new("math", "run", 60)?;
    let limited = |limit: &str, session: &Path| -> Result<Output> {
        let varid = varid_record(session, &["-F", "4999"])?;
        let variables = varid.get_envs();
        let output = Command::new("prlimit")
            .envs(variables.filter_map(|(name, value)| Some((name, value?))))
            .arg(limit)
            .arg(varid.get_program())
            .args(varid.get_args())
            .arg("--")
            .args(app.arguments())
            .output()?;
        println!("{limit}: {}: {}", output.status, complaints(&output));
        Ok(output)
    };
    let output = limited("--fsize=150000", &session)?;
    ensure!(
        String::from_utf8_lossy(&output.stdout) == app.expected()?,
        "the app's result"
    );
    ensure!(
        complaints(&output).contains("the session was ended, and holds what was recorded"),
        "nothing says that the file is as large as it may be"
    );
    let kept = samples(&session)?;
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(session.join("session.json"))?)?;
    ensure!(
        kept > 0 && manifest["counts"]["samples"] == kept && manifest["state"] == "failed",
        "{kept} samples were kept, the manifest says {} and {}",
        manifest["state"],
        manifest["counts"]
    );
    let output = limited("--as=150000000", &folder.path().join("none"))?;
    ensure!(output.status.code() == Some(125), "{}", output.status);
    ensure!(
        complaints(&output).contains("the address space is limited to 143 MB"),
        "nothing says that there is no memory"
    );
    Ok(())
}

/// A small file system, which is unmounted when this is dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, size: &str) -> Result<Self> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .status()?;
        ensure!(status.success(), "mount: {status}");
        Ok(Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // On failure, the folder cannot be removed, and the user sees that.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_user_without_rights_gets_a_clear_error_or_the_fallback() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    // The user nobody can write and execute in this folder.
    let varid = folder.path().join("varid");
    // Copied by another process: otherwise a child of another test could still have the file open for writing.
    let mut copy = Command::new("cp");
    let mut permit = Command::new("chmod");
    copy.arg(testbed()?.release.join("varid")).arg(&varid);
    permit.arg("777").args([folder.path(), &varid]);
    ensure!(copy.status()?.success() && permit.status()?.success());
    let session = folder.path().join("s");
    let output = Command::new("setpriv")
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--",
        ])
        .arg(&varid)
        .args(["record", "-F", "997", "-o"])
        .arg(&session)
        .args([
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo $i",
        ])
        .stdin(Stdio::null())
        .output()?;
    println!("nobody: {}: {}", output.status, complaints(&output));
    if output.status.success() {
        ensure!(
            String::from_utf8_lossy(&output.stdout).trim() == "300000",
            "the app's result"
        );
        samples(&session)?;
    } else {
        ensure!(output.status.code() == Some(125), "{}", output.status);
    }
    ensure!(
        !complaints(&output).trim().is_empty() && !complaints(&output).contains("panicked"),
        "{}",
        complaints(&output)
    );
    Ok(())
}

#[test]
fn hostile_tunnels_disturb_neither_varid_nor_the_app() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("hostile");
    let cc = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/system/host/hostile_tunnel.c"
        ))
        .args([
            "-I",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../dvm-patch/include"),
        ])
        .status()?;
    ensure!(cc.success(), "cc: {cc}");
    for kind in ["random", "header", "rewritten", "truncated", "empty"] {
        let session = folder.path().join(kind);
        let child = Command::new(&program)
            .arg(kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let child = Ended(child);
        let pid = child.0.id().to_string();
        let output = varid_record(
            &session,
            &["-F", "997", "--duration", "700ms", "--pid", &pid],
        )?
        .output()?;
        println!("{kind}: {}: {}", output.status, complaints(&output));
        ensure!(
            output.status.success(),
            "{kind}: {}\n{}",
            output.status,
            complaints(&output)
        );
        ensure!(varid_tests::is_alive(&pid), "{kind}: the app has ended");
        samples(&session).context(kind)?;
    }
    Ok(())
}

/// Returns broken variants of an unknown build of ART's library. varid derives the layout of such a library from its
/// code.
fn broken_libraries() -> Result<Vec<(String, Vec<u8>)>> {
    /// The bytes before a build-id of 20 bytes: the note's sizes, type and name.
    const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    const FLIPPED: usize = 20_000;
    let mut whole = std::fs::read(Libart::KNOWN)?;
    let note = whole.windows(NOTE.len()).position(|bytes| bytes == NOTE);
    let id = note.context("the library has no build-id")? + NOTE.len();
    whole[id] ^= 0xff;
    let mut libraries = vec![
        ("cut".to_owned(), whole[..whole.len() / 2].to_vec()),
        ("header".to_owned(), whole[..64].to_vec()),
    ];
    let mut endless = whole.clone();
    // The maximum number of sections, at the end of the address space.
    endless[0x28..0x30].copy_from_slice(&(u64::MAX - 64).to_le_bytes());
    endless[0x3c..0x40].copy_from_slice(&[0xff; 4]);
    libraries.push(("sections".to_owned(), endless));
    for seed in 1..=4u64 {
        let (mut flipped, mut state) = (whole.clone(), seed);
        for _ in 0..FLIPPED {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % flipped.len();
            // The ELF header is preserved. Otherwise nothing more would be read.
            if at >= 64 {
                flipped[at] ^= (state >> 24) as u8;
            }
        }
        libraries.push((format!("flipped {seed}"), flipped));
    }
    Ok(libraries)
}

#[test]
fn a_broken_library_of_a_vm_costs_its_process_no_sample() -> Result<()> {
    if skip_without_root("withstands") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile("hostile_library", folder.path())?;
    for (kind, library) in broken_libraries()? {
        let (file, session) = (folder.path().join("libart.so"), folder.path().join("s"));
        std::fs::write(&file, library)?;
        let output = varid_record(&session, &["-F", "997"])?
            .arg("--")
            .arg(folder.path().join("hostile_library"))
            .arg(&file)
            .arg("300")
            .output()?;
        succeeded(&output).with_context(|| kind.clone())?;
        let named = symbols(&session)?.matches(" work").count();
        println!("{kind}: {named} samples in work");
        ensure!(named > 100, "{kind}: {named}\n{}", complaints(&output));
        std::fs::remove_dir_all(&session)?;
    }
    Ok(())
}

#[test]
fn a_recording_that_may_not_grow_says_how_many_samples_it_holds() -> Result<()> {
    if skip_without_root("a recording that may not grow") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let recorded = varid_record(&session, &["-F", "4000"])?;
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 100; exec \"$@\"", "sh"]);
    command
        .arg(recorded.get_program())
        .args(recorded.get_args());
    command.args(["--", "sh", "-c"]);
    command.arg("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    let output = command.output()?;
    let said = complaints(&output);
    ensure!(said.contains("no space is left"), "{said}");
    let kept = samples(&session)?;
    ensure!(
        said.contains(&format!("varid: {kept} samples in")),
        "{kept}: {said}"
    );
    Ok(())
}
