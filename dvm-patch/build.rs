//! Compiles the table of VM builds, which is written in C.
#![allow(clippy::expect_used)] // The build fails by a panic.

fn main() {
    for input in ["art/builds.c", "art/builds.h", "include/varid_tunnel.h"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={here}/include");
    cc::Build::new()
        .std("c99")
        .include("include")
        .include("art")
        .file("art/builds.c")
        // So that cross-compiling needs only a compiler, and no C library.
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .compile("varid_art_builds");
}
