//! Which dex file is in memory that no file shows?
//!
//! A VM that finds dex files compressed in an archive, or gets them as bytes, copies them to memory of their own. Where
//! it does not say so in a tunnel they are looked for when a sample lands there: when such memory is mapped it is empty.

use super::{DexImage, Image, Mapped, Process};
use procfs::process::{MMPermissions, MMapPath};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use varid_tunnel::{Memory, ProcessMemory};

/// No dex file is larger; a tunnel or a header that says so lies.
const MAX_DEX: u64 = 1 << 26;
/// No VM has more of them in memory.
const MAX_DEXES: usize = 256;
/// After so many places where none was no other is looked at: looking reads the whole memory map.
const MAX_MISSES: usize = 1024;
/// They start at pages; no page is smaller.
const PAGE: u64 = 4096;

impl Process {
    /// Whether bytecode at an address is a dex file's; what is not known yet is looked for in the process's memory.
    pub fn has_dex_at(&mut self, address: u64) -> bool {
        match self.space.at(address).map(|mapped| &mapped.image) {
            Some(Image::Dex(_)) => return true,
            Some(_) => return false,
            None => {}
        }
        let is_known = self.no_dex.iter().any(|range| range.contains(&address));
        if is_known || self.no_dex.len() >= MAX_MISSES {
            return false;
        }
        let page = address & !PAGE.wrapping_sub(1);
        let looked_at = match anonymous_at(self.pid, address) {
            None => page..page.saturating_add(PAGE),
            Some((memory, name)) => {
                let found = find(&ProcessMemory::new(self.pid), &memory, address);
                if found.is_some_and(|(start, size)| self.take_in_memory(start, size, 0, &name)) {
                    return true;
                }
                memory
            }
        };
        self.no_dex.push(looked_at);
        false
    }

    /// Reads a dex file of `size` bytes from the process's memory, that its VM, or the memory map, calls `location`.
    pub(super) fn take_in_memory(
        &mut self,
        start: u64,
        size: u64,
        time: u64,
        location: &str,
    ) -> bool {
        if self.memory_dexes.len() >= MAX_DEXES || size > MAX_DEX {
            return false;
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        if let Err(error) = ProcessMemory::new(self.pid).read(start, &mut bytes) {
            tracing::warn!(
                "process {}: cannot read the dex file '{location}' at {start:#x}: {error}",
                self.pid
            );
            return false;
        }
        match DexImage::parse(bytes, Path::new(location), 0) {
            Ok(dex) => {
                let end = start.saturating_add(size);
                self.memory_dexes.insert(start, (end, time));
                self.space.insert(Mapped {
                    start,
                    end,
                    pgoff: 0,
                    image: Image::Dex(Rc::new(dex)),
                    recorded: false,
                });
                true
            }
            Err(error) => {
                tracing::warn!("process {}: '{location}' at {start:#x}: {error}", self.pid);
                false
            }
        }
    }
}

/// The memory without a file that an address is in, and its name.
fn anonymous_at(pid: u32, address: u64) -> Option<(Range<u64>, String)> {
    let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
    let map = process
        .maps()
        .ok()?
        .into_iter()
        .find(|map| (map.address.0..map.address.1).contains(&address))?;
    let name = match &map.pathname {
        MMapPath::Anonymous => "//anon".to_owned(),
        MMapPath::Other(name) => location(name)?,
        _ => return None,
    };
    (map.inode == 0 && map.perms.contains(MMPermissions::READ))
        .then_some((map.address.0..map.address.1, name))
}

/// What to call a dex file in memory that is called `anon:dalvik-classes2.dex extracted in memory from /a/b.apk`.
fn location(name: &str) -> Option<String> {
    let name = name.strip_prefix("anon:")?;
    let name = name.strip_prefix("dalvik-").unwrap_or(name);
    Some(match name.split_once(" extracted in memory from ") {
        Some((entry, archive)) => format!("{archive}!{entry}"),
        None => format!("[{name}]"),
    })
}

/// The start and size of the dex file that covers an address of a stretch of memory.
fn find(memory: &dyn Memory, within: &Range<u64>, address: u64) -> Option<(u64, u64)> {
    let mut start = address & !PAGE.wrapping_sub(1);
    let lowest = within.start.max(address.saturating_sub(MAX_DEX));
    while start >= lowest {
        if let Some(size) = size_at(memory, start) {
            // Another one, which ends before: this one's start is lost, or there is none.
            let end = start.checked_add(size)?;
            return (address < end && end <= within.end).then_some((start, size));
        }
        start = start.checked_sub(PAGE)?;
    }
    None
}

/// The size that a dex file's header at an address states; None: there is no header.
fn size_at(memory: &dyn Memory, start: u64) -> Option<u64> {
    let mut magic = [0; 8];
    memory.read(start, &mut magic).ok()?;
    let field = |offset: u64| memory.read_u32(start.checked_add(offset)?).ok();
    let endian = || field(0x28).filter(|tag| *tag == 0x1234_5678);
    match magic {
        // A container of several.
        [b'd', b'e', b'x', b'\n', b'0', b'4', b'1'..=b'9', 0] => {
            endian().and_then(|_| field(0x70)).map(u64::from)
        }
        [b'd', b'e', b'x', b'\n', _, _, _, 0] => endian().and_then(|_| field(0x20)).map(u64::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_tunnel::ByteMemory;

    /// Memory of ten pages with a dex file of two and a half in the fourth, and one of a page in the seventh.
    fn memory() -> Vec<u8> {
        let mut bytes = vec![0; 10 * PAGE as usize];
        for (page, size) in [(3, 0x2800u32), (6, 0x1000)] {
            let header = &mut bytes[page * PAGE as usize..];
            header[..8].copy_from_slice(b"dex\n039\0");
            header[0x20..0x24].copy_from_slice(&size.to_le_bytes());
            header[0x28..0x2c].copy_from_slice(&0x1234_5678u32.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_dex_file_is_found_from_any_address_in_it() {
        let bytes = memory();
        let memory = ByteMemory {
            start: 0x10000,
            bytes: &bytes,
        };
        let within = 0x10000..0x1a000;
        let first = Some((0x13000, 0x2800));
        for (address, expected) in [
            (0x12fff, None),
            (0x13000, first),
            (0x14abc, first),
            (0x157ff, first),
            (0x15800, None),
            (0x16010, Some((0x16000, 0x1000))),
            (0x17000, None),
            (0x19fff, None),
        ] {
            assert_eq!(find(&memory, &within, address), expected, "{address:#x}");
        }
        // What reaches beyond its memory is not read.
        assert_eq!(find(&memory, &(0x10000..0x15000), 0x14000), None);
        assert_eq!(find(&memory, &(0x14000..0x1a000), 0x14abc), None);
    }

    #[test]
    fn android_s_names_of_memory_say_where_a_dex_file_is_from() {
        let extracted = "anon:dalvik-classes2.dex extracted in memory from /data/app/base.apk";
        assert_eq!(
            location(extracted).unwrap(),
            "/data/app/base.apk!classes2.dex"
        );
        assert_eq!(location("anon:dalvik-DEX data").unwrap(), "[DEX data]");
        assert_eq!(location("vvar"), None);
    }
}
