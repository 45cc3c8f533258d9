//! Parses the lines of `/proc/PID/maps`.
//!
//! Lines are parsed as bytes: a file's name can be anything, and need not be UTF-8.

use crate::{Address, Device, Mode};
use std::ops::Range;

/// A line of the memory map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsEntry<'a> {
    /// Its addresses.
    pub range: Range<Address>,
    /// The access mode.
    pub mode: Mode,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The file's device.
    pub device: Device,
    /// The file's inode. 0 for memory without a file.
    pub inode: u64,
    /// The file's path relative to the process's root, a name in brackets, or empty.
    pub path: &'a [u8],
}

impl<'a> MapsEntry<'a> {
    /// None if the line does not have the format of a memory map.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let start = rest.iter().position(|byte| *byte != b' ')?;
            let (_, from) = rest.split_at_checked(start)?;
            let end = from.iter().position(|byte| *byte == b' ');
            let (word, behind) = from.split_at_checked(end.unwrap_or(from.len()))?;
            rest = behind;
            std::str::from_utf8(word).ok()
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let hex32 = |text: &str| u32::from_str_radix(text, 16).ok();
        let (start, end) = word()?.split_once('-')?;
        let [read, write, execute, shared] = *word()?.as_bytes() else {
            return None;
        };
        let offset = hex(word()?)?;
        let (major, minor) = word()?.split_once(':')?;
        let inode = word()?.parse().ok()?;
        let path = rest.iter().position(|byte| *byte != b' ');
        Some(Self {
            range: Address::new(hex(start)?)..Address::new(hex(end)?),
            mode: Mode {
                read: read == b'r',
                write: write == b'w',
                execute: execute == b'x',
                shared: shared == b's',
            },
            offset,
            device: Device {
                major: hex32(major)?,
                minor: hex32(minor)?,
            },
            inode,
            path: path.and_then(|start| rest.get(start..)).unwrap_or_default(),
        })
    }
}

/// The entries of a memory map. Invalid lines are left out.
pub fn maps_entries(maps: &[u8]) -> impl Iterator<Item = MapsEntry<'_>> {
    maps.split(|byte| *byte == b'\n')
        .filter_map(MapsEntry::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_line_is_parsed_into_its_fields() {
        let line =
            b"7f12-7f34 rw-s 00001000 fd:0a 77                         /a b/\xff (deleted)\n";
        let found: Vec<_> = maps_entries(line).collect();
        let expected = MapsEntry {
            range: Address::new(0x7f12)..Address::new(0x7f34),
            mode: Mode {
                read: true,
                write: true,
                execute: false,
                shared: true,
            },
            offset: 0x1000,
            device: Device {
                major: 0xfd,
                minor: 0xa,
            },
            inode: 77,
            path: b"/a b/\xff (deleted)",
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn memory_has_no_path() {
        let text = b"1000-2000 ---p 00000000 00:00 0 \n2000-3000 r-xp 0 00:00 0";
        let found: Vec<_> = maps_entries(text)
            .map(|map| (map.range.start.get()..map.range.end.get(), map.path))
            .collect();
        assert_eq!(
            found,
            [(0x1000..0x2000, &b""[..]), (0x2000..0x3000, &b""[..])]
        );
    }

    #[test]
    fn a_line_that_is_no_entry_is_left_out() {
        for text in [
            "",
            "1000",
            "1000-2000",
            "1000-2000 rw-",
            "x-y rw-p 0 0:0 0",
            "\n\n",
        ] {
            assert_eq!(maps_entries(text.as_bytes()).count(), 0, "{text}");
        }
    }

    #[test]
    fn a_file_has_the_device_that_its_mapping_has() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let program = std::env::current_exe().unwrap();
        let meta = std::fs::metadata(&program).unwrap();
        let is_program = |map: &MapsEntry<'_>| map.inode == meta.ino();
        let found = maps_entries(&maps).find(is_program).unwrap();
        assert_eq!(found.device, Device::of_number(meta.dev()));
        assert_eq!(found.path, program.as_os_str().as_encoded_bytes());
    }
}
