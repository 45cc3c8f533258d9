//! What is mapped in a process, as `/proc/PID/maps` lists it.
//!
//! Read as bytes: whoever maps a file chooses its name, and it need not be text.

use std::ops::Range;

/// A device, as `stat` and memory maps number it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// The driver; 0: no device, but a file system of its own, as tmpfs, overlayfs or FUSE.
    pub major: u32,
    /// Which one of the driver's.
    pub minor: u32,
}

impl Device {
    /// The device of a file's `st_dev`.
    pub fn of_number(number: u64) -> Self {
        let part = |part: u64| u32::try_from(part).unwrap_or(u32::MAX);
        Self {
            major: part(nix::sys::stat::major(number)),
            minor: part(nix::sys::stat::minor(number)),
        }
    }
}

/// A line of the memory map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Its addresses.
    pub range: Range<u64>,
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
    /// What is written there is written to the file, or seen by others.
    pub shared: bool,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The file's device.
    pub device: Device,
    /// The file's inode; 0: memory without a file.
    pub inode: u64,
    /// The file's path as the process's root sees it, a name in brackets, or nothing.
    pub path: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// None: it is no line of a memory map.
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
            range: hex(start)?..hex(end)?,
            read: read == b'r',
            write: write == b'w',
            execute: execute == b'x',
            shared: shared == b's',
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

/// The mappings of a memory map. Lines that are none are left out.
pub fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(Mapping::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            b"7f12-7f34 rw-s 00001000 fd:0a 77                         /a b/\xff (deleted)\n";
        let found: Vec<_> = mappings(line).collect();
        let expected = Mapping {
            range: 0x7f12..0x7f34,
            read: true,
            write: true,
            execute: false,
            shared: true,
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
        let found: Vec<_> = mappings(text).map(|map| (map.range, map.path)).collect();
        assert_eq!(
            found,
            [(0x1000..0x2000, &b""[..]), (0x2000..0x3000, &b""[..])]
        );
    }

    #[test]
    fn what_is_no_line_is_left_out() {
        for text in [
            "",
            "1000",
            "1000-2000",
            "1000-2000 rw-",
            "x-y rw-p 0 0:0 0",
            "\n\n",
        ] {
            assert_eq!(mappings(text.as_bytes()).count(), 0, "{text}");
        }
    }

    #[test]
    fn a_file_has_the_device_that_its_mapping_has() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let program = std::env::current_exe().unwrap();
        let meta = std::fs::metadata(&program).unwrap();
        let is_program = |map: &Mapping<'_>| map.inode == meta.ino();
        let found = mappings(&maps).find(is_program).unwrap();
        assert_eq!(found.device, Device::of_number(meta.dev()));
        assert_eq!(found.path, program.as_os_str().as_encoded_bytes());
    }
}
