//! Finds the session's file with the symbols of a recorded file.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::{Path, PathBuf},
};

use varid_recording::{KeptFile, SYMBOLS, is_session_file};
use varid_symbolizer::hex;

/// The symbol files of a session, by the path and the build-id of their mappings. The value is None if several files
/// have both in common.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeptSymbols(HashMap<(String, String), Option<PathBuf>>);

impl KeptSymbols {
    /// Collects the files in the manifest of a session.
    pub fn new(session: &Path, kept: &[KeptFile]) -> Self {
        let mut found = HashMap::new();
        for file in kept {
            // The manifest is not trusted.
            let is_inside = file.file.starts_with(SYMBOLS) && is_session_file(&file.file);
            let place = is_inside.then(|| session.join(&file.file));
            match found.entry((file.path.clone(), file.build_id.clone())) {
                Entry::Vacant(entry) => _ = entry.insert(place),
                Entry::Occupied(mut entry) if *entry.get() != place => _ = entry.insert(None),
                Entry::Occupied(_) => {}
            }
        }
        Self(found)
    }

    /// Returns the file with the symbols for this path.
    pub fn of(&self, path: &Path, build_id: &[u8]) -> Option<PathBuf> {
        if self.0.is_empty() {
            return None;
        }
        let key = (path.to_string_lossy().into_owned(), hex(build_id));
        self.0.get(&key)?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_files_with_the_same_path_none_is_chosen() {
        let file = |path: &str, file: &str| KeptFile {
            path: path.to_owned(),
            build_id: "0a".to_owned(),
            file: file.to_owned(),
        };
        let listed = [
            file("/one", "symbols/1/one"),
            file("/one", "symbols/1/one"),
            file("/two", "symbols/2/two"),
            file("/two", "symbols/3/two"),
            file("/out", "symbols/../../out"),
            file("/records", "perf.data"),
        ];
        let kept = KeptSymbols::new(Path::new("/s"), &listed);
        let of = |path: &str, id: &[u8]| kept.of(Path::new(path), id);
        assert_eq!(of("/one", &[10]), Some("/s/symbols/1/one".into()));
        for (path, id) in [
            ("/one", &[11][..]),
            ("/one", &[]),
            ("/two", &[10]),
            ("/out", &[10]),
            ("/records", &[10]),
        ] {
            assert_eq!(of(path, id), None, "{path}");
        }
    }
}
