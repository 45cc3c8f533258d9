//! Which layer is a file of?
//!
//! A recording of varid knows the VM's boot class path. Another one knows paths only, so this is a rule over paths, which
//! docs/session-format.md describes.

use varid_model::Layer;

/// Where Android has the code of its framework: dex files, and what ART has compiled of them.
const FRAMEWORK: [&str; 6] = [
    "/system/framework/",
    "/system_ext/framework/",
    "/product/framework/",
    "/vendor/framework/",
    "/apex/",
    "/data/misc/apexdata/",
];

/// The layer of a file of managed code: dex, or compiled ahead.
pub(crate) fn of_managed(path: &str) -> Layer {
    let in_cache = path.contains("/system@framework@") || path.contains("/apex@");
    if in_cache || FRAMEWORK.iter().any(|folder| path.starts_with(folder)) {
        Layer::Framework
    } else {
        Layer::App
    }
}

/// The layer of an ELF file or of other native code.
pub(crate) fn of_native(path: &str) -> Layer {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_compiled = [".oat", ".odex", ".art"]
        .iter()
        .any(|end| name.ends_with(end));
    if is_compiled || name.contains(".oat!") {
        return of_managed(path);
    }
    let is_library = name.ends_with(".so");
    let in_vm_folder = path.starts_with("/apex/com.android.art/")
        || path.starts_with("/apex/com.android.art.debug/")
        || path.starts_with("/apex/com.android.runtime/") && name.starts_with("libart");
    let is_vm = name.starts_with("libart.so")
        || ["libart", "libdvm", "libjvm", "libdexfile"]
            .iter()
            .any(|vm| name.starts_with(vm) && is_library)
        || in_vm_folder && is_library;
    if is_vm { Layer::Vm } else { Layer::Native }
}

/// The layer of a file that a process has mapped.
pub(crate) fn of_image(path: &str) -> Layer {
    // What perf makes of a jitdump, and what names code that was made at run time.
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_jit = name.starts_with("jitted-") && name.ends_with(".so")
        || name.starts_with("perf-") && name.ends_with(".map");
    // What executes in an .apk is a native library.
    let is_managed = [".dex", ".vdex", ".jar"]
        .iter()
        .any(|end| name.ends_with(end));
    match (is_jit, is_managed) {
        (true, _) => Layer::App,
        (_, true) => of_managed(path),
        _ => of_native(path),
    }
}

/// The layer of a file, or of what is none, as `perf script` and simpleperf name it.
pub(crate) fn of_named(image: &str) -> Layer {
    let in_brackets = image.starts_with('[') && image.ends_with(']');
    match image {
        "[vdso]" | "[unknown]" | "[heap]" | "[stack]" | "[vsyscall]" => Layer::Native,
        "[JIT]" | "[jit]" | "[JIT app cache]" => Layer::App,
        "[JIT zygote cache]" | "[jit-zygote]" => Layer::Framework,
        _ if image.starts_with("[kernel") || image.ends_with(".ko") => Layer::Kernel,
        // A module, or a BPF program.
        _ if in_brackets || image.starts_with("bpf_prog_") => Layer::Kernel,
        _ => of_image(image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_paths() {
        for (path, layer) in [
            ("/apex/com.android.art/lib64/libart.so", Layer::Vm),
            ("/system/lib/libdvm.so", Layer::Vm),
            ("/usr/lib/jvm/lib/server/libjvm.so", Layer::Vm),
            (
                "/system/framework/arm64/boot-framework.oat",
                Layer::Framework,
            ),
            ("/data/app/~~a/org.example/oat/arm64/base.odex", Layer::App),
            ("/data/app/~~a/org.example/lib/arm64/libx.so", Layer::Native),
            (
                "/apex/com.android.runtime/lib64/bionic/libc.so",
                Layer::Native,
            ),
            ("/usr/bin/artist", Layer::Native),
        ] {
            assert_eq!(of_native(path), layer, "{path}");
        }
        for (path, layer) in [
            ("/system/framework/framework.jar", Layer::Framework),
            (
                "/apex/com.android.art/javalib/core-oj.jar",
                Layer::Framework,
            ),
            (
                "/data/dalvik-cache/arm64/system@framework@boot.jar",
                Layer::Framework,
            ),
            ("/data/app/~~a/org.example/base.apk", Layer::App),
        ] {
            assert_eq!(of_managed(path), layer, "{path}");
        }
    }

    #[test]
    fn what_is_no_file_has_a_layer_by_its_name() {
        for (image, layer) in [
            ("[kernel.kallsyms]", Layer::Kernel),
            ("[ext4]", Layer::Kernel),
            ("/lib/modules/6.1/kernel/fs/ext4.ko", Layer::Kernel),
            ("[vdso]", Layer::Native),
            ("[JIT app cache]", Layer::App),
            ("/tmp/perf-12.map", Layer::App),
            ("/root/.debug/jit/x/jitted-12-3.so", Layer::App),
            ("/data/app/base.apk", Layer::Native),
            ("/data/app/base.vdex", Layer::App),
            ("libart.so", Layer::Vm),
            ("//anon", Layer::Native),
        ] {
            assert_eq!(of_named(image), layer, "{image}");
        }
    }
}
