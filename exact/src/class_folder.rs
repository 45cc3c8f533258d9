//! Writes the class files of a run, as they were loaded, into a folder.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    tables::{LoadedClass, Tables},
};

/// The longest name of a file in bytes, on Linux's file systems.
const MAX_NAME: usize = 255;
/// The extension of class files.
const EXTENSION: &str = ".class";

/// What was written of class files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenClasses {
    /// Class files.
    pub written: u64,
    /// Classes whose names are no paths below a folder.
    pub left_out: u64,
}

/// Writes the class files of VMs into a folder, each once: `DIR/org/example/App.class`. Further classes with that name and other bytes, which
/// other loaders have defined, are in `DIR/2`, `DIR/3` and so on.
///
/// # Errors
///
/// The folder has something in it, or cannot be written.
pub fn write_classes<'t>(
    vms: impl IntoIterator<Item = &'t Tables>,
    folder: &Path,
) -> Result<WrittenClasses> {
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let mut inside = fs::read_dir(folder).map_err(Error::io("read", folder))?;
    if inside.next().is_some() {
        let full = io::Error::from(io::ErrorKind::DirectoryNotEmpty);
        return Err(Error::io("write classes into", folder)(full));
    }
    let mut versions: HashMap<&str, Vec<&[u8]>> = HashMap::new();
    let mut found = WrittenClasses::default();
    for class in vms.into_iter().flat_map(|tables| &tables.classes) {
        let Some(below) = path_of(class) else {
            found.left_out = found.left_out.saturating_add(1);
            continue;
        };
        let known = versions.entry(&class.name).or_default();
        if known.contains(&class.bytes.as_slice()) {
            continue;
        }
        known.push(&class.bytes);
        let path = match known.len() {
            1 => folder.join(below),
            number => folder.join(number.to_string()).join(below),
        };
        write(&path, &class.bytes).map_err(Error::io("write", &path))?;
        found.written = found.written.saturating_add(1);
    }
    Ok(found)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create_new(path)?.write_all(bytes)
}

/// Returns the path of a class below a folder. None if its name leads elsewhere, or cannot be a file's.
fn path_of(class: &LoadedClass) -> Option<PathBuf> {
    let file = format!("{}{EXTENSION}", class.name);
    let is_name = |part: &str| {
        !matches!(part, "" | "." | "..") && part.len() <= MAX_NAME && !part.contains('\0')
    };
    file.split('/').all(is_name).then(|| file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(classes: &[(&str, &str)]) -> Tables {
        let loaded = |(name, bytes): &(&str, &str)| LoadedClass {
            name: (*name).to_owned(),
            bytes: bytes.as_bytes().to_vec(),
        };
        Tables {
            classes: classes.iter().map(loaded).collect(),
            ..Tables::default()
        }
    }

    #[test]
    fn classes_of_several_loaders_have_folders_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let one = tables(&[("a/A", "first"), ("B", "b"), ("a/A", "second")]);
        let two = tables(&[("a/A", "second"), ("a/A", "third")]);
        let written = write_classes([&one, &two], folder.path()).unwrap();
        assert_eq!((written.written, written.left_out), (4, 0));
        for (path, bytes) in [
            ("a/A.class", "first"),
            ("B.class", "b"),
            ("2/a/A.class", "second"),
            ("3/a/A.class", "third"),
        ] {
            let found = fs::read_to_string(folder.path().join(path)).unwrap();
            assert_eq!(found, bytes, "{path}");
        }
        assert!(write_classes([&one], folder.path()).is_err());
    }

    #[test]
    fn no_class_is_written_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("classes");
        let long = "a".repeat(MAX_NAME);
        let names = ["../A", "/A", "a//A", "a/../../A", "a/./A", "a\0/A", &long];
        let classes: Vec<_> = names.iter().map(|name| (*name, "")).collect();
        let written = write_classes([&tables(&classes)], &below).unwrap();
        assert_eq!((written.written, written.left_out), (0, 7));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    }
}
