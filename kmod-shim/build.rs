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
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;
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
        // Without the table of addresses taken, of a kind that only LLVM reads.
        .args([
            "-target",
            "bpf",
            "-O2",
            "-g",
            "-fno-addrsig",
            "-Wall",
            "-Werror",
        ])
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

/// Writes a compressed copy of an object file beside it, without what nobody reads: DWARF, which clang needs only to make BTF, and the
/// lines of the source, which the kernel only shows of a program that it refuses. It has a third of the size.
fn compress(object: &Path) {
    let content = std::fs::read(object).expect("clang has written it");
    let mut parsed = Builder::read(&*content).expect("clang has written ELF");
    for section in &mut parsed.sections {
        let name = String::from_utf8_lossy(&section.name).into_owned();
        // Its relocations are as those of DWARF: the loader takes the offsets that stand there already.
        section.delete = [".debug_", ".rel.debug_", ".rel.BTF"]
            .iter()
            .any(|start| name.starts_with(start));
        if let (".BTF.ext", SectionData::Data(data)) = (&*name, &mut section.data) {
            remove_lines(data.to_mut());
        }
    }
    // clang has one table for the names of symbols and sections; the writer has two.
    let names = parsed.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = SHT_STRTAB;
    names.data = SectionData::SectionString;
    let mut small = Vec::new();
    parsed.write(&mut small).expect("memory takes it");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&small).expect("memory takes it");
    let compressed = encoder.finish().expect("memory takes it");
    let written = std::fs::write(object.with_extension("o.z"), compressed);
    written.unwrap_or_else(|error| panic!("cannot write {}.z: {error}", object.display()));
}

/// Empties the table of lines of `.BTF.ext`. Its header (`btf_ext_header` of libbpf) has, as 32-bit words from byte 4 on: its own length,
/// and of functions, lines and relocations each the offset, from the header's end, and the length.
fn remove_lines(data: &mut [u8]) {
    let word = |at: usize| -> usize {
        let bytes = data[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("it is in memory")
    };
    let start = word(4) + word(16);
    let end = start + word(20);
    data[start..end].fill(0);
    data[20..24].fill(0);
}
