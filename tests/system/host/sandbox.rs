//! Tests the privileges of varid and of the launched command during a recording.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{App, Home, Running, manifest, printed, skip_without_root, testbed};

/// An unprivileged user: Debian's nobody.
const USER: u32 = 65534;
/// From linux/capability.h.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_PTRACE: u64 = 1 << 19;
const CAP_SYS_MODULE: u64 = 1 << 16;
const CAP_SETUID: u64 = 1 << 7;

/// A process's privileges according to the kernel.
#[derive(Debug)]
struct Rights {
    no_new_privileges: bool,
    filters: bool,
    effective: u64,
    bounding: u64,
}

impl Rights {
    fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let lines: BTreeMap<_, _> = status
            .lines()
            .filter_map(|line| line.split_once(":\t"))
            .collect();
        let set = |name: &str| -> Result<u64> { Ok(u64::from_str_radix(lines[name], 16)?) };
        Ok(Self {
            no_new_privileges: lines["NoNewPrivs"] == "1",
            // SECCOMP_MODE_FILTER
            filters: lines["Seccomp"] == "2",
            effective: set("CapEff")?,
            bounding: set("CapBnd")?,
        })
    }

    /// Returns true if they are those of a recording varid.
    fn are_reduced(&self) -> bool {
        let given_up = CAP_SYS_ADMIN | CAP_SYS_MODULE | CAP_SETUID;
        self.no_new_privileges
            && self.filters
            && (self.effective | self.bounding) & given_up == 0
            && self.effective & CAP_SYS_PTRACE != 0
    }
}

/// Returns the children of a process, with their command lines.
fn children(pid: u32) -> Result<Vec<(u32, String)>> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let mut found = Vec::new();
    for child in children.split_whitespace() {
        let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        found.push((
            child.parse()?,
            String::from_utf8_lossy(&line).replace('\0', " "),
        ));
    }
    Ok(found)
}

/// Returns a process's nice value.
fn nice(pid: u32) -> Result<i32> {
    let output = Command::new("ps")
        .args(["-o", "ni=", "-p", &pid.to_string()])
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

#[test]
fn varid_gives_up_what_recording_does_not_need_and_its_command_does_not() -> Result<()> {
    if skip_without_root("sandbox") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let mut varid = testbed()?.varid();
    varid.args(["record", "-o"]).arg(&session);
    varid.args(["--", "sh", "-c", "read line; while :; do :; done"]);
    varid
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut varid = Running(varid.spawn()?);
    // varid reads the command's memory once that runs, by a second process.
    let (helper, command) = loop {
        let children = children(varid.0.id())?;
        let find = |word: &str| {
            children
                .iter()
                .find(|(_, line)| line.contains(word))
                .map(|(pid, _)| *pid)
        };
        if let (Some(helper), Some(command)) = (find("read-processes"), find("sh -c read")) {
            break (helper, command);
        }
        ensure!(varid.0.try_wait()?.is_none(), "varid has ended");
        std::thread::yield_now();
    };
    let own_nice = nice(std::process::id())?;
    for pid in [varid.0.id(), helper] {
        let rights = Rights::of(pid)?;
        ensure!(rights.are_reduced(), "{pid}: {rights:x?}");
        let expected = if own_nice == 0 { -10 } else { own_nice };
        ensure!(nice(pid)? == expected, "{pid}: nice {}", nice(pid)?);
    }
    ensure!(nice(command)? == own_nice, "nice {}", nice(command)?);
    let (own, rights) = (Rights::of(std::process::id())?, Rights::of(command)?);
    ensure!(!rights.no_new_privileges && !rights.filters, "{rights:x?}");
    ensure!(
        (rights.effective, rights.bounding) == (own.effective, own.bounding),
        "{rights:x?}"
    );
    Command::new("kill")
        .arg(varid.0.id().to_string())
        .status()?;
    ensure!(varid.0.wait()?.success(), "varid failed");
    ensure!(manifest(&session)?["state"] == "complete");
    Ok(())
}

#[test]
fn the_daemon_has_as_little_and_nothing_of_the_environment_of_whoever_came_first() -> Result<()> {
    if skip_without_root("sandbox") {
        return Ok(());
    }
    let home = Home::new()?;
    let mut start = home.varid()?;
    start.env("SECRET", "token");
    printed(start.args(["start", "--app", "org.example.absent"]))?;
    let status = home.status()?;
    let pid = status["daemon"]["pid"]
        .as_u64()
        .with_context(|| status.to_string())?;
    let environment = fs::read(format!("/proc/{pid}/environ"))?;
    let environment = String::from_utf8_lossy(&environment);
    ensure!(
        environment.contains("VARID_HOME=") && !environment.contains("SECRET"),
        "{environment}"
    );
    let rights = Rights::of(u32::try_from(pid)?)?;
    ensure!(rights.are_reduced(), "{rights:x?}");
    Ok(())
}

/// A process that makes the kernel log its further system calls by SECCOMP_RET_LOG. It prints its id.
const LOGGED: &str = "
import ctypes, os, struct
print(os.getpid(), flush=True)
program = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7ffc0000))
filter = ctypes.create_string_buffer(struct.pack('H6xQ', 1, ctypes.addressof(program)))
kernel = ctypes.CDLL(None)
assert kernel.prctl(38, 1, 0, 0, 0) == 0 and kernel.prctl(22, 2, filter) == 0
";

/// The kernel has written its log after this time.
const WRITTEN: Duration = Duration::from_secs(20);

/// Returns the kernel's log of system calls of this program or process.
fn logged(whose: &str) -> Result<Vec<String>> {
    let log = printed(&mut Command::new("dmesg"))?;
    let lines = log.lines().filter(|line| line.contains("type=1326"));
    Ok(lines
        .filter(|line| line.contains(whose))
        .map(str::to_owned)
        .collect())
}

#[test]
fn recording_makes_no_system_call_that_would_be_refused() -> Result<()> {
    if skip_without_root("sandbox") {
        return Ok(());
    }
    let app = App::new("math", "run", 2)?.arguments();
    let folder = tempfile::tempdir()?;
    for (run, options) in [
        &["--keep-raw"][..],
        &["--stack", "full"],
        &["--shim", "perf"],
        &["--mode", "count-calls"],
    ]
    .into_iter()
    .enumerate()
    {
        let mut varid = testbed()?.varid();
        varid
            .env("VARID_SANDBOX", "log")
            .arg("record")
            .args(options);
        varid.arg("-o").arg(folder.path().join(run.to_string()));
        printed(varid.arg("--").args(&app))?;
    }
    let home = Home::new()?;
    let mut start = home.varid()?;
    start.env("VARID_SANDBOX", "log");
    printed(start.args(["start", "--app", "org.example.math"]))?;
    printed(Command::new(&app[0]).args(&app[1..]))?;
    for words in [&["status"][..], &["stop"]] {
        printed(home.varid()?.args(words))?;
    }
    // At the end, because the kernel limits the rate of log lines. It writes them later, in their order.
    let control = printed(Command::new("python3").args(["-c", LOGGED]))?;
    let control = format!(" pid={} ", control.trim());
    let written = Instant::now() + WRITTEN;
    while logged(&control)?.is_empty() {
        ensure!(Instant::now() < written, "the kernel logs no system calls");
        std::thread::sleep(Duration::from_millis(50));
    }
    let refused = logged(&format!(
        "exe=\"{}\"",
        testbed()?.release.join("varid").display()
    ))?;
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}

#[test]
fn a_setuid_program_is_one_under_varid_too() -> Result<()> {
    if skip_without_root("sandbox") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777))?;
    let program = folder.path().join("id");
    fs::copy("/usr/bin/id", &program)?;
    fs::set_permissions(&program, Permissions::from_mode(0o4755))?;
    let output = testbed()?
        .varid()
        .env("VARID_HOME", folder.path().join("home"))
        .args(["record", "-o"])
        .arg(folder.path().join("session"))
        .arg("--")
        .args([program.as_os_str(), "-u".as_ref()])
        .uid(USER)
        .gid(USER)
        .output()?;
    let shown = String::from_utf8(output.stdout).context("no text")?;
    ensure!(
        shown.contains("0\n"),
        "{shown} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
