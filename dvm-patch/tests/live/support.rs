//! Builds C programs with dim and finds their tunnels, for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A timeout that only a failure reaches; it is no measurement.
const NEVER: Duration = Duration::from_secs(120);

/// Polls until a value is available.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < NEVER, "never came: {what}");
        std::thread::yield_now();
    }
}

pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// dim's sources.
pub fn dim() -> Vec<PathBuf> {
    ["base", "calls", "control", "dim", "files", "log"]
        .map(|part| crate_dir().join(format!("dim/{part}.c")))
        .to_vec()
}

/// The mappings of a process whose names contain the tunnel's: (start, bytes, line).
pub fn tunnels(pid: u32) -> Vec<(u64, u64, String)> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines()
        .filter(|line| line.contains(varid_tunnel::abi::NAME))
        .map(|line| {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let start = u64::from_str_radix(start, 16).unwrap();
            let end = u64::from_str_radix(end, 16).unwrap();
            (start, end - start, line.to_owned())
        })
        .collect()
}

/// Compiles C sources with dim's include paths.
pub fn compile(sources: &[PathBuf], flags: &[&str], out: &Path) {
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-I")
        .arg(crate_dir().join("dim"))
        .args(sources)
        .arg("-o")
        .arg(out)
        .status()
        .unwrap();
    assert!(status.success(), "cc failed for {sources:?}");
}
