//! Determines the layer of a file.
//!
//! A recording of varid contains the VM's boot class path. Other recordings only have paths, so this is a rule over paths.
//! docs/session-format.md describes it.

use varid_model::Layer;

/// The folders of Android's framework: dex files, and their code compiled by ART.
const FRAMEWORK: [&str; 6] = [
    "/system/framework/",
    "/system_ext/framework/",
    "/product/framework/",
    "/vendor/framework/",
    "/apex/",
    "/data/misc/apexdata/",
];

/// The folders of ART on Android.
const VM_FOLDERS: [&str; 2] = ["/apex/com.android.art/", "/apex/com.android.art.debug/"];

/// Libraries of ART, which are in other folders before Android 11 and on other systems (`art/build/apex/art_apex_test.py`), and of other
/// VMs.
const VM_LIBRARIES: [&str; 22] = [
    "libart",
    "libartd",
    "libart-compiler",
    "libartd-compiler",
    "libart-dexlayout",
    "libartd-dexlayout",
    "libart-disassembler",
    "libartd-disassembler",
    "libart-simulator-container",
    "libartd-simulator-container",
    "libartbase",
    "libartbased",
    "libartimagevalues",
    "libartpalette",
    "libartpalette-system",
    "libartservice",
    "libdexfile",
    "libdexfiled",
    "libdexfile_external",
    "libdexfile_support",
    "libdvm",
    "libjvm",
];

/// Names that the kernel and perf give memory of a process without a file.
const USER_MEMORY: [&str; 12] = [
    "anon", "vdso", "vdso32", "vdsox32", "vvar", "vsyscall", "vectors", "sigpage", "uprobes",
    "heap", "stack", "unknown",
];

/// The layer of a file of managed code: dex, or compiled ahead of time.
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
    let in_vm_folder = VM_FOLDERS.iter().any(|folder| path.starts_with(folder));
    // Some systems append a version.
    let library = name.split_once(".so").and_then(|(library, version)| {
        (version.is_empty() || version.starts_with('.')).then_some(library)
    });
    match library {
        Some(library) if in_vm_folder || VM_LIBRARIES.contains(&library) => Layer::Vm,
        _ => Layer::Native,
    }
}

/// The layer of a mapped file.
pub(crate) fn of_image(path: &str) -> Layer {
    if let Some(layer) = of_code_cache(path) {
        return layer;
    }
    // Files that perf makes from a jitdump, and files that name code generated at run time.
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_jit = name.starts_with("jitted-") && name.ends_with(".so")
        || name.starts_with("perf-") && name.ends_with(".map");
    // Code in an .apk is a native library.
    let is_managed = [".dex", ".vdex", ".jar"]
        .iter()
        .any(|end| name.ends_with(end));
    match (is_jit, is_managed) {
        (true, _) => Layer::App,
        (_, true) => of_managed(path),
        _ => of_native(path),
    }
}

/// The layer of memory in which ART's JIT keeps its code (`jit_memory_region.cc`): `/memfd:jit-cache (deleted)`; before Android 11
/// `[anon:dalvik-jit-code-cache]` and `/dev/ashmem/dalvik-jit-code-cache (deleted)`.
fn of_code_cache(path: &str) -> Option<Layer> {
    let name = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = match name.strip_prefix("[anon:") {
        Some(name) => name.strip_suffix(']')?,
        None => name
            .strip_prefix("/memfd:")
            .or_else(|| name.strip_prefix("/dev/ashmem/"))?,
    };
    match name.strip_prefix("dalvik-").unwrap_or(name) {
        "jit-cache" | "jit-code-cache" => Some(Layer::App),
        "jit-zygote-cache" | "zygote-jit-code-cache" => Some(Layer::Framework),
        _ => None,
    }
}

/// The layer of an image by its name in `perf script` and simpleperf. It need not be a file.
pub(crate) fn of_named(image: &str) -> Layer {
    if image.starts_with("[JIT] ") {
        // perf's name for functions of a perf map.
        return Layer::App;
    }
    let bracketed = image
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bracketed {
        Some("JIT" | "jit" | "JIT app cache") => Layer::App,
        Some("JIT zygote cache" | "jit-zygote") => Layer::Framework,
        Some(name) if USER_MEMORY.contains(&name) => Layer::Native,
        Some(name) if name.starts_with("kernel.") || name.starts_with("guest.kernel.") => {
            Layer::Kernel
        }
        // The kernel, or a module. Other memory of a process has a colon in its name.
        Some(name) if name.bytes().all(is_module_character) => Layer::Kernel,
        Some(_) => of_image(image),
        None => match image.ends_with(".ko") || image.starts_with("bpf_prog_") {
            true => Layer::Kernel,
            false => of_image(image),
        },
    }
}

/// Returns true for a character of a module's name.
const fn is_module_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
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
            ("/apex/com.android.art/lib64/libopenjdkjvm.so", Layer::Vm),
            ("/apex/com.android.runtime/lib64/libartbase.so", Layer::Vm),
            ("/system/lib64/libart-compiler.so", Layer::Vm),
            ("/usr/lib/x86_64-linux-gnu/android/libart.so.0", Layer::Vm),
            (
                "/data/app/~~a/org.example/lib/arm64/libarticles.so",
                Layer::Native,
            ),
            (
                "/data/app/~~a/org.example/lib/arm64/libartoolkit.so",
                Layer::Native,
            ),
            ("/opt/libjvm.sources", Layer::Native),
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
    fn pseudo_files_have_a_layer_by_their_name() {
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
            ("[guest.kernel.kallsyms.12]", Layer::Kernel),
            ("[kernel]", Layer::Kernel),
            ("[nf_tables]", Layer::Kernel),
            ("[heap]", Layer::Native),
            ("[stack:12]", Layer::Native),
            ("[anon]", Layer::Native),
            ("[anon:scudo:primary]", Layer::Native),
            ("[uprobes]", Layer::Native),
            ("[vsyscall]", Layer::Native),
            ("[anon:dalvik-jit-code-cache]", Layer::App),
            ("[anon:dalvik-zygote-jit-code-cache]", Layer::Framework),
            ("/dev/ashmem/dalvik-jit-code-cache (deleted)", Layer::App),
            ("/memfd:jit-cache (deleted)", Layer::App),
            ("/memfd:jit-zygote-cache (deleted)", Layer::Framework),
            ("[JIT] tid 12", Layer::App),
        ] {
            assert_eq!(of_named(image), layer, "{image}");
        }
    }
}
