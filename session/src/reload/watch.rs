//! Detects changes of the configuration file.

use crate::request::Stamp;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The interval at which the file is checked. A changed file is read when two consecutive checks find it unchanged, because its
/// writer may not have finished before.
const INTERVAL: Duration = Duration::from_millis(200);

/// A watched file.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// The stamp of the contents that were read, or None if they could not be read.
    read: Option<Stamp>,
    /// The stamp at the last check.
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

    /// Returns true if the file differs from the one that was read, and is the same as at the last check.
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

    /// Records that the file was read with this stamp, which may be newer than the one that [`Watch::has_changed`] has seen.
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
