//! Which device is a file on?

/// A device, as `stat` and memory maps number it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// The driver; 0: no device, but a file system of its own, as tmpfs, overlayfs or FUSE.
    pub major: u32,
    /// Which one of the driver's.
    pub minor: u32,
}

impl Device {
    /// The device of a file's `st_dev`, decoded as `gnu_dev_major` and `gnu_dev_minor` do.
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
