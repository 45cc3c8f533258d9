//! Finds source files.
//!
//! A recording has file names as the compiler recorded them: `org/example/Balls.java`, `/build/src/../balls.c`. Only
//! the last parts of such a name are used, to find a file below a folder or an entry of an archive that the user names.
//! Nothing else is read, regardless of `..` and links.

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

/// The most files below a folder.
const MAX_FILES: usize = 500_000;
/// The deepest nesting of folders.
const MAX_DEPTH: usize = 64;
/// The most files with the same name that are read.
const MAX_READ: usize = 64;
/// The most folders of a recorded name that are compared.
const MAX_PARTS: usize = 64;

/// The folders and archives with sources, in order of precedence.
#[derive(Debug)]
pub struct Sources(Vec<Root>);

#[derive(Debug)]
struct Root {
    /// As given by the user.
    path: PathBuf,
    /// Canonical, with links resolved.
    real: PathBuf,
    kind: RootKind,
}

#[derive(Debug)]
enum RootKind {
    Folder {
        /// All files below the folder by name, read on first use.
        files: OnceCell<HashMap<String, Vec<PathBuf>>>,
    },
    /// A folder of which only the file at the recorded name counts.
    ClassFolder,
    Archive,
}

/// A source that was found.
#[derive(Debug)]
pub struct Source {
    /// Its displayed path.
    pub place: String,
    /// Its text.
    pub text: SourceText,
}

/// A file that was found.
#[derive(Debug)]
pub struct FoundFile {
    /// Its displayed path.
    pub place: String,
    pub bytes: Vec<u8>,
}

/// How a recorded name is matched with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// The folders are the package: all parts must match, or the file must declare the package.
    Package,
    /// The folders are from the build machine: the match with the most equal parts wins.
    Path,
}

impl Sources {
    /// Opens these folders and archives.
    ///
    /// # Errors
    ///
    /// One does not exist.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        paths
            .iter()
            .map(|path| Root::open(path))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Adds the entries of a recorded class path that exist. Their folders are not searched, as a recording may name any.
    pub fn add_class_path(&mut self, entries: &[PathBuf]) {
        let roots = entries.iter().flat_map(|path| Root::open(path));
        self.0.extend(roots.map(|root| match root.kind {
            RootKind::Folder { .. } => Root {
                kind: RootKind::ClassFolder,
                ..root
            },
            RootKind::ClassFolder | RootKind::Archive => root,
        }));
    }

    /// Finds the first file with this recorded name that is the one. `is_it` gets its bytes and its displayed path.
    pub fn file(
        &self,
        recorded: &str,
        mut is_it: impl FnMut(&[u8], &str) -> bool,
    ) -> Option<FoundFile> {
        let parts = parts(recorded);
        let mut files = self.0.iter().flat_map(|root| root.files(&parts));
        files.find(|file| is_it(&file.bytes, &file.place))
    }

    /// Finds the source with this recorded name.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
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

/// Splits a recorded name into parts, without `.`, and resolves `..`. Windows names are split at `\`.
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

impl Root {
    fn open(path: &Path) -> Result<Self> {
        let wrong = |source| Error::SourcePath {
            path: path.to_owned(),
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
        Ok(Self {
            path: path.to_owned(),
            real,
            kind,
        })
    }

    /// Returns the files whose name is the last of these parts, and whose path ends with all of them. They are read one by one. Those that
    /// cannot be read are left out.
    fn files(&self, parts: &[&str]) -> impl Iterator<Item = FoundFile> {
        let places = match self.joined(parts, NameKind::Package) {
            Some(path) => vec![Place::File(path)],
            None => {
                let mut named = self.named(parts).unwrap_or_default();
                named.retain(|place| place.equal_parts(parts) == parts.len());
                named
            }
        };
        places.into_iter().take(MAX_READ).filter_map(move |place| {
            let bytes = self.bytes(&place).ok()?;
            let place = place.shown(&self.path);
            Some(FoundFile { place, bytes })
        })
    }

    /// Returns the files whose name is the last of these parts.
    fn named(&self, parts: &[&str]) -> Result<Vec<Place>, String> {
        Ok(match &self.kind {
            RootKind::Folder { files } => {
                let files = files.get_or_init(|| files_below(&self.real));
                let name = parts.last().copied().unwrap_or_default();
                let named = files.get(name).into_iter().flatten();
                named.cloned().map(Place::File).collect()
            }
            RootKind::ClassFolder => Vec::new(),
            RootKind::Archive => self.entries(parts)?,
        })
    }

    /// Finds the file whose path ends with these parts.
    fn find(&self, parts: &[&str], kind: NameKind) -> Result<Option<Source>, String> {
        match self.joined(parts, kind) {
            Some(path) => self.read(&Place::File(path)).map(Some),
            None => self.best(parts, kind, self.named(parts)?),
        }
    }

    /// Returns the best match of files with the right file name.
    fn best(
        &self,
        parts: &[&str],
        kind: NameKind,
        candidates: Vec<Place>,
    ) -> Result<Option<Source>, String> {
        let equal = |place: &Place| place.equal_parts(parts);
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
                // Limits the number of files that are read. Few have the same name.
                for place in candidates.iter().take(MAX_READ) {
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

    /// Returns the file at the last parts of a recorded name below the folder, using as many parts as possible. The
    /// resolved path must also be below the folder. None in an archive.
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

    /// Returns the entries of an archive with the right file name.
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
        let bytes = self.bytes(place)?;
        let text = SourceText::new(&bytes).map_err(|why| format!("{shown} {why}"))?;
        Ok(Source { place: shown, text })
    }

    fn bytes(&self, place: &Place) -> Result<Vec<u8>, String> {
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
        match bytes.len() as u64 > MAX_SOURCE {
            true => Err(too_large()),
            false => Ok(bytes),
        }
    }
}

/// A candidate location of a source.
#[derive(Debug)]
enum Place {
    /// A file below a folder.
    File(PathBuf),
    /// An entry of an archive.
    Entry(Box<varid_symbolizer::container::ContainerEntry>),
}

impl Place {
    /// The path, relative to the archive for an entry.
    fn inner(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Entry(entry) => entry.name.clone(),
        }
    }

    /// Number of parts at the end of the path that equal these parts.
    fn equal_parts(&self, parts: &[&str]) -> usize {
        let path = self.inner();
        let candidate = path.split('/').filter(|part| !part.is_empty());
        let pairs = parts.iter().rev().zip(candidate.rev());
        pairs.take_while(|(one, other)| *one == other).count()
    }

    /// The displayed path.
    fn shown(&self, root: &Path) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Entry(entry) => format!("{}!{}", root.display(), entry.name),
        }
    }
}

/// Returns the files below a folder by name. Links are not followed, because they may leave the folder or form cycles.
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
        // A file with this name in another package does not match.
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
