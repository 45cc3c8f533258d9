//! The device of a file.

/// A device by its numbers, as in `stat` and memory maps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// The number of the driver. 0 for a file system without a device, such as tmpfs, overlayfs or FUSE.
    pub major: u32,
    /// The number of the device within the driver.
    pub minor: u32,
}

impl Device {
    /// Decodes a file's `st_dev`, like `gnu_dev_major` and `gnu_dev_minor`.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self {
            major: ((number >> 8) & 0xfff) as u32 | ((number >> 32) as u32 & !0xfff),
            minor: (number & 0xff) as u32 | ((number >> 12) as u32 & !0xff),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_parts_that_the_c_library_gives_it() {
        for (number, major, minor) in [
            (0x802, 8, 2),
            (0xfd0a, 0xfd, 0x0a),
            (0x10_3000, 0x30, 0x100),
            (0x1234_5678_9abc_def0, 0x1234_5cde, 0x6789_abf0),
        ] {
            assert_eq!(Device::of_number(number), Device { major, minor });
        }
    }
}
