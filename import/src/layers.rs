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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_paths() {
        for (path, layer) in [
            ("/apex/com.android.art/lib64/libart.so", Layer::Vm),
            ("/system/lib/libdvm.so", Layer::Vm),
            ("/usr/lib/jvm/lib/server/libjvm.so", Layer::Vm),
            ("/system/framework/arm64/boot-framework.oat", Layer::Framework),
            ("/data/app/~~a/org.example/oat/arm64/base.odex", Layer::App),
            ("/data/app/~~a/org.example/lib/arm64/libx.so", Layer::Native),
            ("/apex/com.android.runtime/lib64/bionic/libc.so", Layer::Native),
            ("/usr/bin/artist", Layer::Native),
        ] {
            assert_eq!(of_native(path), layer, "{path}");
        }
        for (path, layer) in [
            ("/system/framework/framework.jar", Layer::Framework),
            ("/apex/com.android.art/javalib/core-oj.jar", Layer::Framework),
            ("/data/dalvik-cache/arm64/system@framework@boot.jar", Layer::Framework),
            ("/data/app/~~a/org.example/base.apk", Layer::App),
        ] {
            assert_eq!(of_managed(path), layer, "{path}");
        }
    }
}
