//! Where are the sources?
//!
//! A recording names files as their compiler did: `org/example/Balls.java`, `/build/src/../balls.c`. Only the last parts of such a name lead to a
//! file below a folder, or to an entry of an archive, that the user names: nothing else is read, wherever `..` and links lead.

use std::{
    cell::OnceCell,
    collections::HashMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use object::ReadCache;
use varid_symbolizer::container::zip;

use super::source_text::{MAX_SOURCE, SourceText};
use crate::error::{Error, Result};

/// The most files below a folder that are looked at.
const MAX_FILES: usize = 500_000;
/// How deep folders are nested at most.
const MAX_DEPTH: usize = 64;
/// So many folders of a recorded name matter.
const MAX_PARTS: usize = 64;

/// The folders and archives that have sources, that which counts first first.
#[derive(Debug)]
pub struct Sources(Vec<Root>);

#[derive(Debug)]
struct Root {
    /// As the user names it.
    path: PathBuf,
    /// Without links.
    real: PathBuf,
    kind: RootKind,
}

#[derive(Debug)]
enum RootKind {
    Folder {
        /// All files below it by their names, once they are needed.
        files: OnceCell<HashMap<String, Vec<PathBuf>>>,
    },
    Archive,
}

/// A source that was found.
#[derive(Debug)]
pub struct Source {
    /// Where.
    pub place: String,
    /// What is in it.
    pub text: SourceText,
}

/// How a recorded name leads to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// The folders are the package: all parts count, or the file says that it is of the package.
    Package,
    /// The folders are those of the machine where it was compiled: the more parts are equal, the better.
    Path,
}

impl Sources {
    /// The sources below these folders and in these archives.
    ///
    /// # Errors
    ///
    /// One is not there.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let root = |path: &PathBuf| {
            let wrong = |source| Error::SourcePath {
                path: path.clone(),
                source,
            };
            let real = fs::canonicalize(path).map_err(wrong)?;
            let meta = fs::metadata(&real).map_err(wrong)?;
            let kind = match (meta.is_dir(), meta.is_file()) {
                (true, _) => RootKind::Folder {
                    files: OnceCell::new(),
                },
                (_, true) => RootKind::Archive,
                _ => return Err(wrong(std::io::ErrorKind::InvalidInput.into())),
            };
            Ok(Root {
                path: path.clone(),
                real,
                kind,
            })
        };
        paths.iter().map(root).collect::<Result<_>>().map(Self)
    }

    /// The source that a recording calls so.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn find(&self, recorded: &str, kind: NameKind) -> Result<Source, String> {
        let parts = parts(recorded);
        if parts.is_empty() {
            return Err("it has no name".to_owned());
        }
        let mut problems = Vec::new();
        for root in &self.0 {
            match root.find(&parts, kind) {
                Ok(Some(source)) => return Ok(source),
                Ok(None) => {}
                Err(why) => problems.push(why),
            }
        }
        Err(match (&problems[..], &self.0[..]) {
            ([], []) => "--source-path DIR or JAR says where sources are".to_owned(),
            ([], roots) => {
                let roots: Vec<_> = roots
                    .iter()
                    .map(|root| root.path.display().to_string())
                    .collect();
                format!(
                    "it is not in {}: --source-path takes the folder that has its packages or modules",
                    roots.join(", ")
                )
            }
            (problems, _) => problems.join("; "),
        })
    }
}

/// The parts of a recorded name, without `.`, and without those that `..` takes back; on Windows they are told apart by `\`.
fn parts(recorded: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in recorded.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let start = parts.len().saturating_sub(MAX_PARTS);
    parts.split_off(start)
}

/// How many of the last parts are equal.
fn equal_parts(parts: &[&str], candidate: &[&str]) -> usize {
    let pairs = parts.iter().rev().zip(candidate.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

impl Root {
    /// The file that has these parts at the end of its path; none: there is none.
    fn find(&self, parts: &[&str], kind: NameKind) -> Result<Option<Source>, String> {
        let candidates = match &self.kind {
            RootKind::Folder { files } => {
                if let Some(path) = self.joined(parts, kind) {
                    return self.read(&Place::File(path)).map(Some);
                }
                let files = files.get_or_init(|| files_below(&self.real));
                let name = parts.last().copied().unwrap_or_default();
                let named = files.get(name).into_iter().flatten();
                named.cloned().map(Place::File).collect()
            }
            RootKind::Archive => self.entries(parts)?,
        };
        self.best(parts, kind, candidates)
    }

    /// The likeliest of some files with the right name.
    fn best(
        &self,
        parts: &[&str],
        kind: NameKind,
        candidates: Vec<Place>,
    ) -> Result<Option<Source>, String> {
        let equal = |place: &Place| {
            let path = place.inner();
            let candidate: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
            equal_parts(parts, &candidate)
        };
        let most = candidates.iter().map(equal).max().unwrap_or(0);
        let best: Vec<&Place> = candidates
            .iter()
            .filter(|place| equal(place) == most)
            .collect();
        match (kind, &best[..]) {
            (_, []) => Ok(None),
            (NameKind::Package, _) if most < parts.len() => {
                let (_, package) = parts.split_last().unwrap_or((&"", &[]));
                let package = package.join(".");
                // A name that few files have.
                for place in candidates.iter().take(64) {
                    if let Ok(source) = self.read(place)
                        && source.text.belongs_to_package(&package)
                    {
                        return Ok(Some(source));
                    }
                }
                Ok(None)
            }
            (_, [one]) => self.read(one).map(Some),
            (_, [one, other, ..]) => Err(format!(
                "{} and {} both may be it: --source-path takes the folder that has only one of them",
                one.shown(&self.path),
                other.shown(&self.path)
            )),
        }
    }

    /// The file at the last parts of a recorded name below the folder, the more of them the better. It is below the folder in truth, too.
    fn joined(&self, parts: &[&str], kind: NameKind) -> Option<PathBuf> {
        let last = match kind {
            NameKind::Package => 1,
            NameKind::Path => parts.len(),
        };
        (0..last).find_map(|skipped| {
            let path: PathBuf = parts.iter().skip(skipped).collect();
            let real = fs::canonicalize(self.real.join(path)).ok()?;
            let below = real.starts_with(&self.real);
            (below && fs::metadata(&real).ok()?.is_file()).then_some(real)
        })
    }

    /// The entries of an archive with the right name.
    fn entries(&self, parts: &[&str]) -> Result<Vec<Place>, String> {
        let shown = self.path.display().to_string();
        let name = parts.last().copied().unwrap_or_default();
        let file = fs::File::open(&self.real).map_err(|error| format!("{shown}: {error}"))?;
        let is_named = |entry: &str| entry.rsplit('/').next() == Some(name);
        let entries = zip::entries(&shown, &ReadCache::new(file), is_named);
        let entries = entries.map_err(|error| error.to_string())?;
        Ok(entries
            .into_iter()
            .flatten()
            .map(|entry| Place::Entry(Box::new(entry)))
            .collect())
    }

    fn read(&self, place: &Place) -> Result<Source, String> {
        let shown = place.shown(&self.path);
        let wrong = |why: String| format!("{shown}: {why}");
        let too_large = || wrong(format!("larger than {MAX_SOURCE} bytes, so no source"));
        let bytes = match place {
            Place::File(path) => {
                let mut bytes = Vec::new();
                let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
                file.take(MAX_SOURCE.saturating_add(1))
                    .read_to_end(&mut bytes)
                    .map_err(|error| wrong(error.to_string()))?;
                bytes
            }
            Place::Entry(entry) => {
                let size = entry.compression.map_or(entry.len, |packed| packed.size);
                if size > MAX_SOURCE {
                    return Err(too_large());
                }
                let file = fs::File::open(&self.real).map_err(|error| wrong(error.to_string()))?;
                let data = ReadCache::new(file);
                let bytes = entry.read(&shown, &data);
                bytes.map_err(|error| error.to_string())?.into_owned()
            }
        };
        if bytes.len() as u64 > MAX_SOURCE {
            return Err(too_large());
        }
        let text = SourceText::new(&bytes).map_err(|why| format!("{shown} {why}"))?;
        Ok(Source { place: shown, text })
    }
}

/// Where a source may be.
#[derive(Debug)]
enum Place {
    /// A file below a folder.
    File(PathBuf),
    /// An entry of an archive.
    Entry(Box<varid_symbolizer::container::ContainerEntry>),
}

impl Place {
    /// Its path, in the archive if it is in one.
    fn inner(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Entry(entry) => entry.name.clone(),
        }
    }

    /// Its path as people are told it.
    fn shown(&self, root: &Path) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Entry(entry) => format!("{}!{}", root.display(), entry.name),
        }
    }
}

/// The files below a folder by their names. Links are not followed: they may lead out of it, or in circles.
fn files_below(root: &Path) -> HashMap<String, Vec<PathBuf>> {
    let mut found: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let mut left = MAX_FILES;
    let mut folders = vec![(root.to_owned(), 0usize)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(fewer) = left.checked_sub(1) else {
                return found;
            };
            left = fewer;
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push((entry.path(), depth.saturating_add(1)));
            } else if kind.is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.entry(name).or_default().push(entry.path());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn found(root: &Path, recorded: &str, kind: NameKind) -> Result<String, String> {
        let sources = Sources::open(&[root.to_owned()]).unwrap();
        let source = sources.find(recorded, kind)?;
        Ok(source.text.line(1).unwrap_or_default())
    }

    #[test]
    fn the_last_parts_of_a_recorded_name_lead_to_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(&root.join("app/src/main/java/org/example/A.java"), "maven");
        write(&root.join("kotlin/B.kt"), "package org.example\n");
        write(&root.join("lib/one/util.c"), "one");
        write(&root.join("lib/two/util.c"), "two");
        let package = |name| found(root, name, NameKind::Package);
        let path = |name| found(root, name, NameKind::Path);
        assert_eq!(package("org/example/A.java").unwrap(), "maven");
        assert_eq!(
            package("./org/example/B.kt").unwrap(),
            "package org.example"
        );
        // Another package's file of this name is another file.
        assert!(package("com/example/A.java").is_err());
        assert_eq!(path("/build/lib/two/util.c").unwrap(), "two");
        assert_eq!(path("/build/lib/x/../one/util.c").unwrap(), "one");
        let why = path("util.c").unwrap_err();
        assert!(why.contains("both may be it"), "{why}");
        assert!(path("other.c").unwrap_err().contains("--source-path"));
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        write(&root.join("in.c"), "in");
        write(&dir.path().join("secret.c"), "secret");
        let absolute = dir.path().join("secret.c").display().to_string();
        std::os::unix::fs::symlink(dir.path().join("secret.c"), root.join("link.c")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        for name in [
            "../secret.c",
            "x/../../secret.c",
            "../../../../../../../../etc/passwd",
            "/etc/passwd",
            &absolute,
            "link.c",
            "up/secret.c",
            "..",
            "/",
            "",
            "\0",
            "in.c/",
        ] {
            for kind in [NameKind::Package, NameKind::Path] {
                let found = found(&root, name, kind);
                let is_own = found.as_ref().is_ok_and(|text| text == "in");
                assert!(
                    found.is_err() || is_own && name == "in.c/",
                    "{name}: {found:?}"
                );
            }
        }
        assert_eq!(found(&root, "../in.c", NameKind::Path).unwrap(), "in");
    }

    #[test]
    fn a_pipe_and_a_folder_are_no_sources() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a.c")).unwrap();
        let socket = dir.path().join("b.c");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(found(dir.path(), "a.c", NameKind::Path).is_err());
        assert!(found(dir.path(), "b.c", NameKind::Path).is_err());
        assert!(Sources::open(&[socket]).is_err());
        assert!(Sources::open(&[dir.path().join("none")]).is_err());
    }
}
