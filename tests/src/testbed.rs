//! The programs under test. They are built once in each test program, like `make testbed`.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The programs under test.
#[derive(Debug)]
pub struct Testbed {
    /// The folder with `varid`, `artvm` and `boot.dex`.
    pub release: PathBuf,
    /// The folder with the workloads' dex files and libraries.
    pub workloads: PathBuf,
    /// The folder with `shadowvm` and its dex file.
    pub shadowvm: PathBuf,
    /// The folder with `areavm`, and `areavm32` if the compiler supports the other word size.
    pub areavm: PathBuf,
    /// The folder with `stackvm` and its program, on x86-64.
    pub stackvm: PathBuf,
    /// The folder with the output of ART 11's compiler.
    pub art11: PathBuf,
    /// The folder with the output of ART 14's compiler.
    pub art14: PathBuf,
    /// The folder with ART's method traces of apps.
    pub traces: PathBuf,
    /// The folder in which varid keeps data beyond a session.
    pub home: PathBuf,
}

impl Testbed {
    /// Returns varid as a command without arguments.
    pub fn varid(&self) -> Command {
        let mut varid = Command::new(self.release.join("varid"));
        varid.env("VARID_HOME", &self.home);
        varid
    }

    /// Returns artvm's boot class path.
    pub fn boot_dex(&self) -> PathBuf {
        self.release.join("boot.dex")
    }
}

/// Brings the programs under test up to date.
pub fn testbed() -> Result<&'static Testbed> {
    static TESTBED: OnceLock<std::result::Result<Testbed, String>> = OnceLock::new();
    let built = TESTBED.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built
        .as_ref()
        .map_err(|error| anyhow::anyhow!(error.clone()))
}

/// Builds what tests run, below a target folder. A script that has built all of it says so by the variable VARID_BUILT: then no test waits
/// for cargo while that compiles something else.
fn build_in(root: &Path, target: &Path) -> Result<()> {
    run(Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--release",
            "-p",
            "varid",
            "-p",
            "varid-exact-agent",
            "-p",
            "varid-calibrate-counter",
            "-p",
            "artvm",
            "-p",
            "varid-stackvm",
        ])
        .env("CARGO_TARGET_DIR", target))?;
    run(Command::new("make")
        .current_dir(root)
        .args(["--silent", "--no-print-directory", "testbed"])
        .env_remove("MAKEFLAGS")
        .env("CARGO_TARGET_DIR", target))
}

fn build() -> Result<Testbed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // The path of this program is PROFILE/deps/NAME.
    let test = std::env::current_exe()?;
    let release = test
        .ancestors()
        .nth(2)
        .context("this program has no profile folder above it")?
        .to_owned();
    let target = release
        .parent()
        .context("the profile has no target folder above it")?
        .to_owned();
    if std::env::var_os("VARID_BUILT").is_none() {
        build_in(&root, &target)?;
    }
    let folder = target.join("testbed");
    Ok(Testbed {
        release,
        workloads: folder.join("workloads"),
        shadowvm: folder.join("shadowvm"),
        areavm: folder.join("areavm"),
        stackvm: folder.join("stackvm"),
        art11: folder.join("art11"),
        art14: folder.join("art14"),
        traces: folder.join("traces"),
        home: folder.join("home"),
    })
}

/// Runs a tool that must succeed. Its output is shown only if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    // Cargo would rebuild crates with this variable, which makes the test harness report times.
    command.env_remove("RUSTC_BOOTSTRAP");
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Returns true, with a message, if the test must be skipped.
pub fn skip_without_root(test: &str) -> bool {
    let skip = !nix::unistd::geteuid().is_root();
    if skip {
        skipped(test, "sampling whole processes needs root here");
    }
    skip
}

/// Prints that a test was skipped, and why. It is visible although the test passes; libtest captures only the print
/// macros.
pub fn skipped(test: &str, why: &str) {
    // Without a standard error, the message is dropped.
    drop(writeln!(std::io::stderr(), "{test}: skipped: {why}"));
}
