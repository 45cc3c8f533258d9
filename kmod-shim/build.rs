//! Compiles the BPF program with clang and the walker for user space with cc.
// The build fails by a panic.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use flate2::Compression;
use flate2::write::ZlibEncoder;
use object::{Object, ObjectSection};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=src/walk.c");
    let headers = ["include".to_owned(), tunnel_headers()];
    println!("cargo:rerun-if-env-changed=VARID_CLANG");
    println!("cargo::rustc-check-cfg=cfg(has_bpf_program)");
    bpf(&headers);
    cc::Build::new()
        .file("src/walk.c")
        .includes(&headers)
        // So that cross-compiling needs only a compiler, and no C library.
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .compile("varid_walk");
}

/// The folder of varid-tunnel's headers.
fn tunnel_headers() -> String {
    let headers = std::env::var("DEP_VARID_TUNNEL_INCLUDE").expect("varid-tunnel says where");
    println!("cargo:rerun-if-changed={headers}");
    headers
}

fn bpf(headers: &[String]) {
    let arch = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        // Its kernels have no BTF, by which the program is relocated. They use the module.
        Ok("arm") => return,
        other => panic!("the shim knows x86_64, aarch64 and arm, not {other:?}"),
    };
    println!("cargo::rustc-cfg=has_bpf_program");
    for object in ["varid", "off_cpu", "tracepoint", "probe"] {
        compile(object, arch, headers);
    }
}

fn compile(object: &str, arch: &str, headers: &[String]) {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let out = out.join(format!("{object}.bpf.o"));
    let source = format!("bpf/{object}.bpf.c");
    let clang = std::env::var("VARID_CLANG").unwrap_or_else(|_| "clang-16".to_owned());
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror"])
        .args(["-c", &source, "-o"])
        .arg(&out)
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(headers.iter().map(|dir| format!("-I{dir}")))
        // The folder of asm/types.h, where clang does not search when it targets bpf.
        .arg(format!(
            "-I/usr/include/{}-linux-gnu",
            std::env::consts::ARCH
        ))
        .status();
    match status {
        Ok(status) if status.success() => compress(&out),
        Ok(status) => panic!("{clang} could not compile {source}: {status}"),
        Err(error) => panic!(
            "cannot run {clang}: {error}. Install clang-16, libbpf-dev and linux-libc-dev, or set VARID_CLANG"
        ),
    }
}

/// Writes a compressed copy of an object file beside it. It has no DWARF, which clang needs only to make BTF: this saves almost half of
/// the size.
fn compress(object: &Path) {
    let mut content = std::fs::read(object).expect("clang has written it");
    let parsed = object::File::parse(&*content).expect("clang has written ELF");
    // Relocation sections are kept: the loader reads those of every section.
    let debug = parsed.sections().filter(|section| {
        let name = section.name().unwrap_or_default();
        name.starts_with(".debug_")
    });
    let debug: Vec<_> = debug.filter_map(|section| section.file_range()).collect();
    for (offset, size) in debug {
        let start = usize::try_from(offset).expect("it is in memory");
        let size = usize::try_from(size).expect("it is in memory");
        content[start..start + size].fill(0);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&content).expect("memory takes it");
    let compressed = encoder.finish().expect("memory takes it");
    let written = std::fs::write(object.with_extension("o.z"), compressed);
    written.unwrap_or_else(|error| panic!("cannot write {}.z: {error}", object.display()));
}
