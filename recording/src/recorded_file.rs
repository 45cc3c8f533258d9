//! Identifies the file that had a path when it was mapped, where it has no build-id.

use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use varid_model::Device;

/// A mapped file without a build-id. In another mount namespace, in a chroot, or after an update the same path leads to another file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedFile {
    /// The path as mappings have it (lossy if it is not UTF-8).
    pub path: String,
    /// The inode.
    pub inode: u64,
    /// The major and minor number of the device. `None` if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<(u32, u32)>,
    /// The size in bytes, and the second and nanosecond of the last change. `None` if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<(u64, i64, i64)>,
}

impl RecordedFile {
    /// Describes a file that is open here.
    #[must_use]
    pub fn of(path: String, file: &Metadata) -> Self {
        Self::of_version(path, file.ino(), version(file))
    }

    /// Describes a file of this version: its size in bytes, and the second and nanosecond of its last change. The device is not recorded,
    /// as it may have another number after the next mount or boot.
    #[must_use]
    pub const fn of_version(path: String, inode: u64, version: (u64, i64, i64)) -> Self {
        Self {
            path,
            inode,
            device: None,
            version: Some(version),
        }
    }

    /// Describes a file as the kernel's record of a mapping has it. Returns `None` for memory without a file.
    #[must_use]
    pub fn of_mapping(path: String, device: Device, inode: u64) -> Option<Self> {
        (inode != 0).then_some(Self {
            path,
            inode,
            device: Some((device.major, device.minor)),
            version: None,
        })
    }

    /// Returns true if a file is this one.
    #[must_use]
    pub fn is(&self, file: &Metadata) -> bool {
        let found = Device::of_number(file.dev());
        let same_device = self.device.is_none_or(|(major, minor)| {
            // File systems without a device have their own number in stat(2), which changes with each mount.
            major == 0 || found.major == 0 || (found.major, found.minor) == (major, minor)
        });
        let same_version = self
            .version
            .is_none_or(|recorded| recorded == version(file));
        self.inode == file.ino() && same_device && same_version
    }
}

fn version(file: &Metadata) -> (u64, i64, i64) {
    (file.len(), file.mtime(), file.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_with_the_same_content_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "content").unwrap();
            std::fs::metadata(path).unwrap()
        };
        let (one, other) = (write("one"), write("other"));
        let recorded = RecordedFile::of("one".to_owned(), &one);
        assert!(recorded.is(&one) && !recorded.is(&other));
        let changed = RecordedFile {
            version: Some((8, one.mtime(), one.mtime_nsec())),
            ..recorded
        };
        assert!(!changed.is(&one));
    }

    #[test]
    fn a_device_counts_where_it_has_a_number_that_lasts() {
        let file = std::fs::metadata("/proc/self/exe").unwrap();
        let own = Device::of_number(file.dev());
        let with = |major, minor| {
            let device = Device { major, minor };
            RecordedFile::of_mapping(String::new(), device, file.ino()).unwrap()
        };
        assert!(with(own.major, own.minor).is(&file));
        assert!(with(0, own.minor + 1).is(&file));
        assert_eq!(with(own.major.max(1) + 1, 0).is(&file), own.major == 0);
        let memory = Device { major: 0, minor: 1 };
        assert!(RecordedFile::of_mapping(String::new(), memory, 0).is_none());
    }
}
