//! What the tests share: fixtures, and the tools that they are compared with.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The dex file made from the smali fixtures: assembled now for `api`, or the one kept
/// beside them where there is no assembler.
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

/// What a program prints, its errors included; none, with a reason, if it is not installed.
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

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// A small generator of numbers, the same at every run.
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

/// What `gcc` makes of a source file of this name; none, with a reason, without a compiler.
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
