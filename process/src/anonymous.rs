//! Finds dex files in anonymous memory.
//!
//! A VM copies dex files to anonymous memory if they are compressed in an archive, or were given to it as bytes. If the VM does not
//! describe them in a tunnel, they are searched for when a sample is in such memory. When the memory is mapped, it is still empty.

use super::format::{BytecodeFormat, Dex};
use crate::budget::Claim;
use crate::reader::{self, ForeignMemory};
use crate::{CodeImage, MappingId, Process, ProcessImage, ProcessMapping};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, MonotonicNs, Pid, maps_entries};
use varid_tunnel::Memory;

/// The largest dex file, in bytes. A tunnel or a header with a larger size is wrong.
const MAX_DEX: u64 = 1 << 26;
/// The most dex files in the anonymous memory of a process.
const MAX_DEXES: usize = 256;
/// After this many failed searches in a process, no further one is made. A search reads the whole memory map, and memory.
const MAX_MISSES: usize = 1024;
/// The smallest page size. Dex files start at page boundaries.
const PAGE: u64 = 4096;
/// Bytes that are read at a time: whole pages.
const PIECE: u64 = 1 << 20;

impl Process {
    /// Returns true if an address is in a bytecode file. In anonymous memory, a dex file is searched for.
    pub fn has_bytecode_at(&mut self, address: u64) -> bool {
        match self.space.at(address).map(|mapped| &mapped.image) {
            Some(ProcessImage::Code(_)) => return true,
            Some(_) => return false,
            None => {}
        }
        let is_known = self.no_dex.iter().any(|range| range.contains(&address));
        if is_known || self.misses >= MAX_MISSES {
            return false;
        }
        let page = address & !PAGE.wrapping_sub(1);
        let looked_at = match anonymous_at(self.pid, address) {
            None => page..page.saturating_add(PAGE),
            Some((memory, name)) => {
                let found = find(&ForeignMemory::new(self.pid), &memory, address);
                if found
                    .is_some_and(|(start, size)| self.map_dex_from_memory(start, size, None, &name))
                {
                    return true;
                }
                memory
            }
        };
        self.misses = self.misses.saturating_add(1);
        self.no_dex.push(looked_at);
        false
    }

    /// Reads a dex file of `size` bytes from the process's memory and maps it. `location`: its name in the memory map, or the VM's name for
    /// it, published at `time`. Returns false if that fails.
    pub fn map_dex_from_memory(
        &mut self,
        start: u64,
        size: u64,
        time: Option<MonotonicNs>,
        location: &str,
    ) -> bool {
        if self.memory_dexes.len() >= MAX_DEXES || size > MAX_DEX {
            return false;
        }
        let memory = match Claim::new(size, self.space.code_memory()) {
            Ok(memory) => memory,
            Err(reason) => {
                let pid = self.pid;
                tracing::warn!("process {pid}: '{location}' at {start:#x}: {reason}");
                return false;
            }
        };
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        if let Err(error) = ForeignMemory::new(self.pid).read(start, &mut bytes) {
            tracing::warn!(
                "process {}: cannot read the dex file '{location}' at {start:#x}: {error}",
                self.pid
            );
            return false;
        }
        match Dex.parse(bytes) {
            Ok(bytecode) => {
                let code = CodeImage::new(bytecode, memory, Path::new(location), 0);
                let end = start.saturating_add(size);
                self.memory_dexes.insert(start, (end, time));
                self.space.insert(ProcessMapping {
                    start,
                    end,
                    pgoff: 0,
                    image: ProcessImage::Code(Rc::new(code)),
                    mode: self.space.at(start).and_then(|mapped| mapped.mode),
                    id: MappingId::default(),
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

/// Returns the range and the name of the anonymous memory that contains an address.
fn anonymous_at(pid: Pid, address: u64) -> Option<(Range<u64>, String)> {
    let maps = reader::contents(pid, "maps").ok()?;
    let map = maps_entries(&maps).find(|map| map.range.contains(&Address::new(address)))?;
    let name = match map.path {
        b"" => "//anon".to_owned(),
        [b'[', name @ .., b']'] => location(&String::from_utf8_lossy(name))?,
        _ => return None,
    };
    let range = map.range.start.get()..map.range.end.get();
    (map.inode == 0 && map.mode.read).then_some((range, name))
}

/// Returns the name of a dex file in memory. For `anon:dalvik-classes2.dex extracted in memory from /a/b.apk` in the memory map, it is
/// `/a/b.apk!classes2.dex`.
fn location(name: &str) -> Option<String> {
    let name = name.strip_prefix("anon:")?;
    let name = name.strip_prefix("dalvik-").unwrap_or(name);
    Some(match name.split_once(" extracted in memory from ") {
        Some((entry, archive)) => format!("{archive}!{entry}"),
        None => format!("[{name}]"),
    })
}

/// Returns the start and the size of the dex file that contains an address, within a range of memory.
fn find(memory: &dyn Memory, within: &Range<u64>, address: u64) -> Option<(u64, u64)> {
    let page = |address: u64| address & !PAGE.wrapping_sub(1);
    let lowest = within.start.max(page(address.saturating_sub(MAX_DEX)));
    let mut end = page(address).checked_add(PAGE)?;
    let mut bytes = Vec::new();
    while end > lowest {
        let start = lowest.max(end.saturating_sub(PIECE));
        bytes.resize(usize::try_from(end.checked_sub(start)?).ok()?, 0);
        memory.read(start, &mut bytes).ok()?;
        let pages = (start..)
            .step_by(PAGE as usize)
            .zip(bytes.chunks(PAGE as usize));
        let headers = pages.filter_map(|(at, page)| Some((at, size_of(page)?)));
        if let Some((start, size)) = headers.last() {
            // The nearest header before the address may be that of a dex file that ends before the address.
            let end = start.checked_add(size)?;
            return (address < end && end <= within.end).then_some((start, size));
        }
        end = start;
    }
    None
}

/// Returns the size in a dex file's header. None if there is no header.
fn size_of(bytes: &[u8]) -> Option<u64> {
    let field = |offset: usize| {
        bytes
            .get(offset..)?
            .first_chunk()
            .map(|field| u32::from_le_bytes(*field))
    };
    let offset = match bytes.first_chunk()? {
        // A container of several dex files.
        [b'd', b'e', b'x', b'\n', b'0', b'4', b'1'..=b'9', 0] => 0x70,
        [b'd', b'e', b'x', b'\n', _, _, _, 0] => 0x20,
        _ => return None,
    };
    field(0x28).filter(|tag| *tag == 0x1234_5678)?;
    field(offset).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use varid_tunnel::ByteMemory;

    /// A dex file that only this process's memory holds, at the start of a page.
    struct Held {
        _memory: Vec<u8>,
        start: u64,
        len: u64,
    }

    fn held() -> Held {
        let dex = testing::dex();
        let dex = dex.bytecode.bytes();
        // So much is a mapping of its own, of which nothing is touched but the dex file.
        let mut memory = vec![0u8; 40 << 20];
        let first = memory.as_ptr().align_offset(PAGE as usize);
        memory[first..first + dex.len()].copy_from_slice(dex);
        Held {
            start: memory[first..].as_ptr() as u64,
            len: dex.len() as u64,
            _memory: memory,
        }
    }

    #[test]
    fn a_dex_file_in_memory_is_known_until_something_else_is_mapped_there() {
        let held = held();
        let mut process = Process::new(Pid::new(std::process::id()));
        let image = |process: &Process| match process.space.at(held.start) {
            Some(ProcessMapping {
                image: ProcessImage::Code(dex),
                ..
            }) => Some(dex.clone()),
            _ => None,
        };
        assert!(process.has_bytecode_at(held.start + 0x80));
        assert!(image(&process).is_some());
        process.forget_memory_dexes(|_, _, _| true);
        assert!(process.has_bytecode_at(held.start + 0x80));
        let other = crate::KernelMapping {
            pid: process.pid,
            start: held.start,
            end: held.start + held.len.next_multiple_of(PAGE),
            pgoff: 0,
            device: Default::default(),
            inode: 0,
            mode: varid_model::Mode::default(),
            path: Path::new("//anon"),
        };
        process.map(&mut Default::default(), &other);
        assert!(image(&process).is_none() && process.memory_dexes.is_empty());
    }

    #[test]
    fn the_number_of_searches_in_a_process_is_bounded() {
        let held = held();
        let mut process = Process::new(Pid::new(std::process::id()));
        let nothing = held.start + (8 << 20);
        for _ in 0..MAX_MISSES {
            assert!(!process.has_bytecode_at(1));
            process.no_dex.clear();
        }
        assert!(!process.has_bytecode_at(nothing) && process.no_dex.is_empty());
    }

    /// Counts how often it is read.
    struct Counted<'a>(ByteMemory<'a>, std::cell::Cell<u64>);

    impl Memory for Counted<'_> {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), varid_tunnel::TunnelError> {
            self.1.set(self.1.get() + 1);
            self.0.read(address, out)
        }
    }

    #[test]
    fn memory_is_searched_in_large_pieces() {
        let bytes = vec![0; (MAX_DEX + PIECE) as usize];
        let start = 0x10000;
        let all = ByteMemory {
            start,
            bytes: &bytes,
        };
        let memory = Counted(all, 0.into());
        let end = start + bytes.len() as u64;
        assert_eq!(find(&memory, &(start..end), end - 1), None);
        assert!(memory.1.get() <= MAX_DEX / PIECE + 1, "{}", memory.1.get());
    }

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
