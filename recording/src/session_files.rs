//! Lists the files that a session's folder may hold, by their paths in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{SYMBOLS, may_hold, plain_name::is_plain_name};

/// Returns true if a path relative to a session's folder is one of a session's files: a file of its own, `symbols/NAME`, or
/// `symbols/ID/NAME`. A file that is being written (`*.new`, `symbols/*.new`) does not count.
#[must_use]
pub fn is_session_file(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [name] => may_hold(name) && *name != SYMBOLS && !name.ends_with(".new"),
        [SYMBOLS, name] => is_plain_name(name) && !name.ends_with(".new"),
        [SYMBOLS, id, name] => is_plain_name(id) && is_plain_name(name),
        [_, ..] => false,
        [] => false,
    }
}

/// Returns the files of a session, relative to its folder. Links are not followed.
///
/// # Errors
///
/// A folder cannot be read.
pub fn session_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            let kind = entry.file_type()?;
            let is_ours = path.to_str().is_some_and(is_session_file);
            if kind.is_file() && is_ours {
                found.push(path);
            } else if kind.is_dir() && path.starts_with(SYMBOLS) && path.components().count() < 3 {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_no_files_but_its_own() {
        for file in [
            "perf.data",
            "session.json",
            "symbols/0a.elf",
            "symbols/vdso-1.so",
            "symbols/0a/libstdc++.so.6",
            "symbols/0a/prog.new",
            "symbols/0a/base.apk-classes2.dex",
            "contexts.data",
            "call-order.data",
            "compiled-code.data",
            "calls.tsv",
            "calls.log.12",
        ] {
            assert!(is_session_file(file), "{file}");
        }
        for file in [
            "",
            "/etc/passwd",
            "../x",
            "symbols/../x",
            "symbols/..",
            "symbols/",
            "symbols/a/b/c",
            "symbols//b",
            "symbols/../b",
            "symbols/a/..",
            "/symbols/a",
            "other/x",
            "symbols/.x",
            "symbols",
            "symbols/a\rb",
            "perf.data.new",
            "session.json.new",
            "symbols/kept.new",
            "calls.tsv.new",
            "calls.log.12\r",
        ] {
            assert!(!is_session_file(file), "{file:?}");
        }
    }

    #[test]
    fn files_are_listed_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let symbols = folder.path().join("symbols");
        fs::create_dir_all(symbols.join("0a/deep")).unwrap();
        for file in [
            "perf.data",
            "contexts.data",
            "notes",
            "symbols/1.elf",
            "symbols/0a/prog",
            "symbols/0a/deep/x",
        ] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", symbols.join("etc")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", symbols.join("passwd")).unwrap();
        let found = session_files(folder.path()).unwrap();
        let expected = [
            "contexts.data",
            "perf.data",
            "symbols/0a/prog",
            "symbols/1.elf",
        ];
        let expected = expected.map(PathBuf::from);
        assert_eq!(found, expected);
    }
}
