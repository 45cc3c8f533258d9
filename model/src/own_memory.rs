//! Recognizes mappings of memory that is not a file on a disk.

use std::path::Path;

/// Returns true if a mapping with this path is the process's own memory, which may contain generated code.
#[must_use]
pub fn is_own_memory(path: &Path) -> bool {
    let path = path.to_string_lossy();
    // The kernel maps this page into every process.
    !(path.starts_with('/') || path == "[vsyscall]")
        || [
            "//anon",
            "/anon_hugepage",
            "/memfd:",
            "/dev/zero",
            "/dev/ashmem/",
        ]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_known_by_its_path() {
        for path in [
            "//anon",
            "[heap]",
            "",
            "/memfd:jit-cache (deleted)",
            "/dev/zero (deleted)",
            "/anon_hugepage (deleted)",
        ] {
            assert!(is_own_memory(Path::new(path)), "{path}");
        }
        for path in ["/usr/lib/libc.so.6", "[vsyscall]"] {
            assert!(!is_own_memory(Path::new(path)), "{path}");
        }
    }
}
