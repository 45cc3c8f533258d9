//! Which files are the runtime of a language?
//!
//! A recording lists the libraries of the VMs that it walks, ART's and HotSpot's. Other runtimes run managed code, too, and some are linked into one
//! program: what they take, the program that they run has asked for.

use std::path::Path;

/// Programs that have V8 in them.
const V8: [&str; 3] = ["node", "nodejs", "deno"];
/// Libraries, up to their version.
const LIBRARIES: [&str; 4] = ["libnode", "libv8", "libpython2", "libpython3"];

/// Whether a file's name is that of a shared library: `libm.so`, `libc.so.6`.
pub fn is_library(name: &str) -> bool {
    let mut ends = name
        .match_indices(".so")
        .filter_map(|(at, so)| name.get(at.saturating_add(so.len())..));
    ends.any(|version| version.is_empty() || version.starts_with('.'))
}

/// Whether a file is V8's or CPython's.
pub fn is_runtime(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    // As the kernel names a file that is no longer at its path.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let is_library = name.split_once(".so").is_some_and(|(_, version)| {
        let named = LIBRARIES.iter().any(|library| name.starts_with(library));
        named && (version.is_empty() || version.starts_with('.'))
    });
    V8.contains(&name) || is_library || is_python(name)
}

/// Whether a program is `python`, `python3`, `python3.12`, or a debug or free-threaded one of these.
fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python");
    version.is_some_and(|version| {
        let number = version.trim_end_matches(['d', 't']);
        let is_part = |char: char| char.is_ascii_digit() || char == '.';
        number.chars().all(is_part) && (version == number || !number.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_told_by_the_end_of_its_name_or_by_its_version() {
        let libraries = [
            "libm.so",
            "libc.so.6",
            "base.apk!lib/x86_64/libx.so",
            "a.sort.so",
        ];
        assert!(libraries.into_iter().all(is_library));
        assert!(
            !["radix.sort", "app.socket", "server"]
                .into_iter()
                .any(is_library)
        );
    }

    #[test]
    fn runtimes_are_known_by_their_files() {
        for path in [
            "/usr/bin/node",
            "/usr/bin/python3.11",
            "/opt/python3.13t/bin/python3.13t",
            "/usr/bin/python3",
            "/usr/lib/libpython3.12.so.1.0",
            "/usr/lib/x86_64-linux-gnu/libnode.so.108",
            "/usr/bin/node (deleted)",
            "/snap/x/libv8_libbase.so",
        ] {
            assert!(is_runtime(Path::new(path)), "{path}");
        }
        for path in [
            "/usr/bin/nodemon",
            "/usr/bin/python3-config",
            "/usr/bin/pythond",
            "/srv/node/server",
            "/usr/lib/libpython3.12.sources",
            "/usr/lib/libc.so.6",
        ] {
            assert!(!is_runtime(Path::new(path)), "{path}");
        }
    }
}
