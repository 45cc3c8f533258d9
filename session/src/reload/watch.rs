//! Has the configuration file changed since it was read?

use crate::request::Stamp;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the file is looked at. A changed file is read when two looks in a row find it the same: its writer may not
/// have finished before.
const INTERVAL: Duration = Duration::from_millis(200);

/// A file that may change.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// The stamp of what was read; None: it could not be read.
    read: Option<Stamp>,
    /// The stamp at the last look.
    seen: Option<Stamp>,
    looked: Instant,
}

impl Watch {
    /// Watches a file that was read with this stamp.
    pub fn new(path: PathBuf, read: Option<Stamp>) -> Self {
        Self {
            path,
            read,
            seen: read,
            looked: Instant::now(),
        }
    }

    /// Whether the file is another than the one that was read, and the same as at the last look.
    pub fn has_changed(&mut self) -> bool {
        if self.looked.elapsed() < INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        let now = Stamp::at(&self.path).ok();
        let settled = now == self.seen;
        self.seen = now;
        let changed = settled && now != self.read;
        if changed {
            self.read = now;
        }
        changed
    }

    /// The file was read with this stamp: it may have changed once more since [`Watch::has_changed`].
    pub fn was_read(&mut self, stamp: Option<Stamp>) {
        self.read = stamp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_when_it_has_stopped_changing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("varid.toml");
        std::fs::write(&path, "a").unwrap();
        let mut watch = Watch::new(path.clone(), Stamp::at(&path).ok());
        let mut look = || {
            watch.looked = Instant::now().checked_sub(INTERVAL).unwrap();
            watch.has_changed()
        };
        assert!(!look() && !look());
        std::fs::write(&path, "ab").unwrap();
        assert!(!look(), "it may still be written");
        std::fs::write(&path, "abc").unwrap();
        assert!(!look());
        assert!(look());
        assert!(!look());
        std::fs::remove_file(&path).unwrap();
        assert!(!look(), "an editor may be replacing it");
        assert!(look() && !look());
        std::fs::write(&path, "a").unwrap();
        assert!(!look() && look());
    }
}
