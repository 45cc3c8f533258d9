//! Links all fuzz targets with the runtime of the sanitizer with which run.sh compiles the C code in varid's crates.
//! Even a target that does not call that code may be linked with parts of it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CFLAGS");
    let flags = std::env::var("CFLAGS").unwrap_or_default();
    if flags.contains("-fsanitize=address") {
        // rustc makes the compiler omit its libraries. The whole archive is linked so that it sees all allocations.
        println!("cargo::rustc-link-arg-bins=-Wl,--whole-archive,-l:libasan.a,--no-whole-archive");
    }
}
