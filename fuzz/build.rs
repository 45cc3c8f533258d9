//! Which runtime do the fuzz targets need? That of the sanitizer that run.sh has the C in varid's crates compiled with: a target that
//! calls none of it may be linked with some.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CFLAGS");
    let flags = std::env::var("CFLAGS").unwrap_or_default();
    if flags.contains("-fsanitize=address") {
        // rustc has the compiler leave its libraries out. Whole, so that it sees what is allocated.
        println!("cargo::rustc-link-arg-bins=-Wl,--whole-archive,-l:libasan.a,--no-whole-archive");
    }
}
