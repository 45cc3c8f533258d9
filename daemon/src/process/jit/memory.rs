//! The ELF files that a process keeps in its memory for GDB, and the names of code in them.

use super::super::image::Image;
use super::super::space::AddressSpace;
use super::files::News;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use varid_symbolizer::jit::{Abi, CodeMap, Descriptor, Entry, List, descriptors_of, symfile_codes};
use varid_tunnel::{Memory, ProcessMemory};

/// A larger file in memory is not read.
const MAX_SYMFILE: u64 = 1 << 24;
/// Bytes of such files that are read of a process.
const MAX_SYMFILES: u64 = 1 << 28;
/// Nanoseconds after which a list is read whatever its descriptor says: a program that keeps
/// no count of its changes may have changed it anywhere.
const LOOK: u64 = 500_000_000;

/// A process's descriptors, and what they led to.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// Libraries that were searched.
    searched: HashSet<PathBuf>,
    /// How they are laid out, and where they are.
    found: Vec<(Abi, u64)>,
    /// As they were when their lists were read.
    known: Vec<Descriptor>,
    map: CodeMap,
    /// Where the functions of each file start.
    entries: HashMap<Entry, Vec<u64>>,
    looked: u64,
    bytes: u64,
}

impl Descriptors {
    /// What they say, if there are any.
    pub fn map(&self) -> Option<&CodeMap> {
        (!self.map.codes().is_empty()).then_some(&self.map)
    }

    /// Reads what has been registered and unregistered since the last time.
    pub fn read(&mut self, pid: u32, space: &AddressSpace, now: u64) -> News {
        self.search(space);
        let memory = ProcessMemory::new(pid);
        let mut read = |address: u64, to: &mut [u8]| memory.read(address, to).is_ok();
        let current: Result<Vec<Descriptor>, _> = self
            .found
            .iter()
            .map(|(abi, address)| Descriptor::read(*abi, *address, &mut read))
            .collect();
        let Ok(current) = current else {
            return News::default();
        };
        let uncounted = current.iter().any(|known| known.seqlock.is_none());
        let due = uncounted && now.saturating_sub(self.looked) >= LOOK;
        if current == self.known && !due {
            return News::default();
        }
        let lists: Vec<List> = current.iter().map(|known| known.list(&mut read)).collect();
        let whole = lists.iter().all(|list| list.is_whole);
        if whole {
            self.known = current;
        }
        let before = std::mem::replace(&mut self.looked, now);
        let there: HashSet<Entry> = lists.into_iter().flat_map(|list| list.entries).collect();
        let mut news = false;
        if whole {
            let map = &mut self.map;
            self.entries.retain(|entry, starts| {
                let stays = there.contains(entry);
                if !stays {
                    news = true;
                    starts.iter().for_each(|start| map.unload(*start, before));
                }
                stays
            });
        }
        let mut replaced = Vec::new();
        for entry in there {
            if self.entries.contains_key(&entry) {
                continue;
            }
            let codes = self.symfile(&entry, &memory);
            news = true;
            let starts = codes.iter().map(|code| code.range.start).collect();
            replaced.extend(self.map.appear(codes, before, now));
            self.entries.insert(entry, starts);
        }
        (replaced, news)
    }

    /// The functions of a registered file; none if it is no ELF file, or too much.
    fn symfile(
        &mut self,
        entry: &Entry,
        memory: &ProcessMemory,
    ) -> Vec<varid_symbolizer::jit::Code> {
        let size = entry.symfile.end.saturating_sub(entry.symfile.start);
        let total = self.bytes.saturating_add(size);
        let Some(len) = usize::try_from(size)
            .ok()
            .filter(|_| size <= MAX_SYMFILE && total <= MAX_SYMFILES)
        else {
            return Vec::new();
        };
        self.bytes = total;
        let mut bytes = vec![0; len];
        if memory.read(entry.symfile.start, &mut bytes).is_err() {
            return Vec::new();
        }
        symfile_codes(&bytes, "an ELF file in memory")
            .inspect_err(|error| tracing::debug!(%error, "a registered file is not used"))
            .unwrap_or_default()
    }

    /// Looks for descriptors in programs and libraries that have not been searched yet.
    fn search(&mut self, space: &AddressSpace) {
        for mapped in space.iter() {
            let Image::Elf(elf) = &mapped.image else {
                continue;
            };
            if self.searched.contains(&elf.path) {
                continue;
            }
            self.searched.insert(elf.path.clone());
            let name = elf.path.display().to_string();
            let Some(symbols) = elf
                .file()
                .and_then(|file| descriptors_of(file, &name).ok().flatten())
            else {
                continue;
            };
            let bias = elf.contents().and_then(|contents| {
                let module = contents.module.borrow();
                Some(
                    mapped
                        .start
                        .wrapping_sub(module.address_of_offset(mapped.pgoff)?),
                )
            });
            let (Some(bias), Some(symbol)) = (bias, symbols.jit) else {
                continue;
            };
            let address = bias.wrapping_add(symbol);
            tracing::debug!(name, address, "names its code for GDB");
            self.found.push((symbols.abi, address));
        }
    }
}
