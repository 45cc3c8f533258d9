//! The Java workloads of `jvm/truth`, and programs and agents of `system/jvm`, which a JDK of this machine compiles.

use crate::command::printed;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The programs of Debian 12's JDK.
pub const JDK: &str = "/usr/lib/jvm/java-17-openjdk-amd64/bin";
/// The package of the workloads.
pub const JAVA_PACKAGE: &str = "org.example.truth";

/// Returns true if the JDK is installed.
pub fn has_jdk() -> bool {
    let tools = ["java", "javac", "javap", "jimage"];
    tools.iter().all(|tool| Path::new(JDK).join(tool).exists())
}

/// Returns the homes of the JDKs of this machine, Debian 12's among them, and those of the variable JAVA_HOMES, separated by colons.
pub fn java_homes() -> Result<Vec<PathBuf>> {
    let installed = std::fs::read_dir("/usr/lib/jvm")?;
    let mut homes: Vec<_> = installed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|home| home.join("lib/server/libjvm.so").exists() && !home.is_symlink())
        .collect();
    if let Some(more) = std::env::var_os("JAVA_HOMES") {
        homes.extend(std::env::split_paths(&more));
    }
    Ok(homes)
}

/// Returns the compiler of the JDK, as a VM that compiles little: it ends before more would pay.
pub fn javac() -> Command {
    let mut javac = Command::new(format!("{JDK}/javac"));
    javac.args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]);
    javac
}

/// Returns the folder of the workloads' classes. They are compiled once in a test program.
pub fn java_classes() -> Result<&'static Path> {
    static CLASSES: OnceLock<TempDir> = OnceLock::new();
    made_once(&CLASSES, |folder| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("jvm/truth");
        let sources = [
            "Truth.java",
            "Shares.java",
            "Deep.java",
            "Reflected.java",
            "Allocations.java",
            "Contended.java",
        ]
        .map(|name| sources.join(name));
        let mut javac = javac();
        javac.args(["--release", "11", "-d"]).arg(folder);
        printed(javac.args(sources)).map(|_| ())
    })
}

/// Compiles the class `name` of `system/jvm` to `folder`.
pub fn compile_class(name: &str, folder: &Path) -> Result<()> {
    let mut javac = javac();
    javac.args(["--release", "17", "-d"]).arg(folder);
    printed(javac.arg(sources().join(name).with_extension("java"))).map(|_| ())
}

/// The options of `java` and `javac` for a program that writes class files with the library that the JDK has for itself.
pub const GENERATOR_OPTIONS: [&str; 2] = [
    "--add-exports",
    "java.base/jdk.internal.org.objectweb.asm=ALL-UNNAMED",
];

/// Compiles the class `name` of `system/jvm`, which writes class files, to `folder`.
pub fn compile_generator(name: &str, folder: &Path) -> Result<()> {
    let mut javac = javac();
    javac.args(GENERATOR_OPTIONS).arg("-d").arg(folder);
    printed(javac.arg(sources().join(name).with_extension("java"))).map(|_| ())
}

/// Compiles the agent `name` of `system/jvm` to a library in `folder`, and returns its path.
pub fn compile_agent(name: &str, folder: &Path) -> Result<PathBuf> {
    let library = folder.join(name).with_extension("so");
    let include = Path::new(JDK).join("../include");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-O1", "-shared", "-fPIC", "-I"])
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .arg("-o")
        .arg(&library);
    printed(cc.arg(sources().join(name).with_extension("c")))?;
    Ok(library)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("system/jvm")
}

/// Returns the folder of the classes of module `java.base` in the JDK of a folder. They are extracted once in a test program.
pub fn base_classes(jdk: &Path) -> Result<PathBuf> {
    static CLASSES: OnceLock<TempDir> = OnceLock::new();
    let extracted = made_once(&CLASSES, |folder| {
        let mut jimage = Command::new(format!("{JDK}/jimage"));
        jimage.args(["extract", "--include", "regex:/java\\.base/.*", "--dir"]);
        printed(jimage.arg(folder).arg(jdk.join("lib/modules"))).map(|_| ())
    })?;
    Ok(extracted.join("java.base"))
}

fn made_once(
    made: &'static OnceLock<TempDir>,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<&'static Path> {
    if let Some(folder) = made.get() {
        return Ok(folder.path());
    }
    let folder = tempfile::tempdir()?;
    make(folder.path())?;
    Ok(made.get_or_init(|| folder).path())
}
