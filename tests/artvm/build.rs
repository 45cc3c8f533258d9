//! Which libraries stand beside artvm? The three that libart loads for its core library, built from `native/`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each library with its source and what it links.
const LIBRARIES: [(&str, &str, &[&str]); 3] = [
    ("libicu_jni.so", "native/jni_onload.c", &[]),
    ("libjavacore.so", "native/jni_onload.c", &[]),
    ("libopenjdk.so", "native/libopenjdk.c", &["-lm"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=native");
    // src/worker_stacks.rs: libart finds it only if the executable exports it.
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=pthread_attr_setstack");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // OUT_DIR is PROFILE/build/artvm-HASH/out: the executable goes to PROFILE.
    let profile = out
        .ancestors()
        .nth(3)
        .ok_or("OUT_DIR has no profile folder above it")?;
    for (name, source, libraries) in LIBRARIES {
        build(source, &out.join(name), name, libraries)?;
        // By rename, so that a VM that has the old one mapped keeps it.
        let fresh = profile.join(format!(".{name}.new"));
        std::fs::copy(out.join(name), &fresh)?;
        std::fs::rename(&fresh, profile.join(name))?;
    }
    Ok(())
}

/// Compiles one shared library.
fn build(source: &str, out: &Path, name: &str, libraries: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut command: Command = cc::Build::new()
        .opt_level(2)
        .pic(true)
        .warnings(true)
        .get_compiler()
        .to_command();
    command.args([
        "-std=gnu11",
        "-g",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fno-math-errno",
        // GCC 12 for ARM fails over a conditional move of a double.
        "-fno-if-conversion2",
    ]);
    command
        .arg(format!("-Wl,-soname,{name}"))
        .arg("-Wl,--build-id")
        .arg(source)
        .arg("-o")
        .arg(out)
        .args(libraries);
    let status = command.status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(())
}
