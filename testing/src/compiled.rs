//! A library compiled for a test.

use std::path::PathBuf;
use std::process::Command;

/// A library compiled for a test, in a folder of its own that goes with it.
pub struct Compiled {
    folder: PathBuf,
}

impl Compiled {
    /// Compiles the text of a C (`.c`) or assembly (`.s`) file.
    pub fn new(name: &str, source: &str) -> Self {
        let id = format!(
            "varid-{name}-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let folder = std::env::temp_dir().join(id.replace(['(', ')'], ""));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), source).unwrap();
        let compiled = Self { folder };
        let output = Command::new("cc")
            .args([
                "-O2",
                "-fomit-frame-pointer",
                "-fasynchronous-unwind-tables",
                "-shared",
                "-fPIC",
                "-o",
            ])
            .args([compiled.path(), compiled.folder.join(name)])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        compiled
    }

    /// The library.
    pub fn path(&self) -> PathBuf {
        self.folder.join("library.so")
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
