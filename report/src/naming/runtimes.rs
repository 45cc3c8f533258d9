//! Detects the runtime of a language by its files.
//!
//! A recording lists the libraries of the VMs that it unwinds, ART and HotSpot. Other runtimes also run managed code,
//! and some are linked into the program: their time is spent on behalf of the program that they run.

use std::path::Path;

use varid_symbolizer::elf::ElfSymbols;

/// Programs that include V8.
const PROGRAMS: [&str; 3] = ["node", "nodejs", "deno"];
/// Libraries without their version.
const V8: [&str; 2] = ["libnode", "libv8"];
const PYTHON: [&str; 2] = ["libpython2", "libpython3"];

/// A runtime that names the functions of its program only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    V8,
    Python,
}

impl Runtime {
    /// Returns the runtime of a file. None if it is not a runtime.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(|name| name.to_str())?;
        // The kernel appends this to the path of a deleted file.
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        let is_library = |libraries: [&str; 2]| {
            let named = libraries.iter().any(|library| name.starts_with(library));
            let version = name.split_once(".so").map(|(_, version)| version);
            named && version.is_some_and(|it| it.is_empty() || it.starts_with('.'))
        };
        if PROGRAMS.contains(&name) || is_library(V8) {
            Some(Self::V8)
        } else {
            (is_library(PYTHON) || is_python(name)).then_some(Self::Python)
        }
    }

    /// The prefix of function names.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::V8 => "JS:",
            Self::Python => "py::",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::V8 => "V8",
            Self::Python => "CPython",
        }
    }

    /// The command that enables names.
    pub const fn command(self) -> &'static str {
        match self {
            Self::V8 => "node --perf-basic-prof --interpreted-frames-native-stack",
            Self::Python => "python -X perf (3.12 or later)",
        }
    }

    /// Returns true if a file is another program with the same name: it has function names, but none of the runtime.
    pub fn is_refuted_by(self, symbols: &ElfSymbols) -> bool {
        let of_v8 = ["_ZN2v8", "_ZNK2v8", "_ZN4node", "Builtins_"];
        let mut names = symbols.functions().peekable();
        // No other program uses Python's names.
        self == Self::V8
            && names.peek().is_some()
            && !names.any(|symbol| of_v8.iter().any(|start| symbol.raw.starts_with(start)))
    }
}

/// Returns true if a file name is that of a shared library: `libm.so`, `libc.so.6`.
pub fn is_library(name: &str) -> bool {
    let mut ends = name
        .match_indices(".so")
        .filter_map(|(at, so)| name.get(at.saturating_add(so.len())..));
    ends.any(|version| version.is_empty() || version.starts_with('.'))
}

/// Returns true if a program is `python`, `python3`, `python3.12`, or a debug or free-threaded build of these.
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
        let is_runtime = |path: &str| Runtime::of(Path::new(path)).is_some();
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
            assert!(is_runtime(path), "{path}");
        }
        for path in [
            "/usr/bin/nodemon",
            "/usr/bin/python3-config",
            "/usr/bin/pythond",
            "/srv/node/server",
            "/usr/lib/libpython3.12.sources",
            "/usr/lib/libc.so.6",
        ] {
            assert!(!is_runtime(path), "{path}");
        }
        let of = |path| Runtime::of(Path::new(path));
        assert_eq!(of("/usr/lib/libnode.so.108"), Some(Runtime::V8));
        assert_eq!(of("/usr/bin/python3"), Some(Runtime::Python));
    }
}
