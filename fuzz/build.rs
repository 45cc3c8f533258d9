//! Which fuzz targets contain C, and need the runtime of the sanitizer that run.sh has it compiled with?

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CFLAGS");
    let flags = std::env::var("CFLAGS").unwrap_or_default();
    if flags.contains("-fsanitize=address") {
        for target in [
            "calls",
            "code_info",
            "control",
            "oat_file",
            "record",
            "tunnel",
            "walk",
        ] {
            // rustc has the compiler leave its libraries out. Whole, so that it sees what is allocated.
            let runtime = "-Wl,--whole-archive,-l:libasan.a,--no-whole-archive";
            println!("cargo::rustc-link-arg-bin={target}={runtime}");
        }
    }
}
