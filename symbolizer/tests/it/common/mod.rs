//! Helpers of the tests: fixtures, and the tools for comparison.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The dex file from the smali fixtures: assembled for `api`, or the stored one if there is no assembler.
pub fn assemble(api: u32, folder: &Path) -> PathBuf {
    let dex = folder.join(format!("names-{api}.dex"));
    let status = Command::new(fixtures().join("assemble.sh"))
        .arg(&dex)
        .arg(api.to_string())
        .status();
    if status.is_ok_and(|status| status.success()) && dex.exists() {
        return dex;
    }
    eprintln!("no smali here: reading the dex file kept with the fixtures");
    fixtures().join("names.dex")
}

/// Returns what a program prints, including its errors. None if it is not installed; the reason is printed.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        ),
        Err(error) => {
            eprintln!("not compared with {program}: {error}");
            None
        }
    }
}

/// Returns a path as text for an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// A small pseudorandom generator, which gives the same numbers in every run.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

/// Compiles a source file of this name with `gcc`. None if there is no compiler; the reason is printed.
pub fn compiled(
    folder: &Path,
    (name, source): (&str, &str),
    output: &str,
    arguments: &[&str],
) -> Option<PathBuf> {
    let (input, output) = (folder.join(name), folder.join(output));
    std::fs::write(&input, source).unwrap();
    let made = Command::new("gcc")
        .args(arguments)
        .arg("-o")
        .args([&output, &input])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("not tried: there is no gcc");
        return None;
    }
    Some(output)
}
