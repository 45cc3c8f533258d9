//! Reads a process's memory map, and adds the mappings that the kernel reports later.

use crate::reader::{self, ForeignMemory};
use crate::remapped_text::{Between, kernel_mapping};
use crate::{ElfImage, Images, KernelMapping, Process, ProcessImage, ProcessMapping, file, jit};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{MapsEntry, is_own_memory, maps_entries};
use varid_tunnel::Memory;
use varid_tunnel::abi::NAME;
use varid_tunnel::file::is_served_here;

/// The kind of a new mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewMapping {
    /// The description of a VM.
    Tunnel,
    /// ELF files, which have been added to the address space.
    Elf,
    /// Anything else.
    Other,
}

impl Process {
    /// Reads the memory map and adds its mappings. Nothing changes if the process has ended.
    pub fn read_maps(&mut self, images: &mut Images) {
        let Ok(maps) = reader::contents(self.pid, "maps") else {
            return;
        };
        let entries: Vec<_> = maps_entries(&maps).collect();
        for (number, entry) in entries.iter().enumerate() {
            let text = Between::at(&entries, number);
            let text = text.and_then(|text| text.text(self.pid, images, &self.budget));
            self.add(images, &kernel_mapping(self.pid, entry), text);
        }
    }

    /// Adds a mapping.
    pub fn map(&mut self, images: &mut Images, mapped: &KernelMapping<'_>) -> NewMapping {
        let text = self.replaced_text(images, mapped);
        self.add(images, mapped, text)
    }

    /// Returns the mapping for memory that replaces an ELF file's text, if it is a copy of that text. The file's other segments are then
    /// still mapped, which only the memory map shows.
    fn replaced_text(
        &self,
        images: &mut Images,
        mapped: &KernelMapping<'_>,
    ) -> Option<ProcessMapping> {
        let range = mapped.start..mapped.end;
        let is_file = |known: &ProcessMapping| matches!(&known.image, ProcessImage::Elf(elf) if elf.memory().is_empty());
        let replaces = mapped.mode.execute
            && is_own_memory(mapped.path)
            && self.space.within(&range).iter().any(is_file)
            && self.budget.read_maps();
        let maps = replaces.then(|| reader::contents(self.pid, "maps").ok())??;
        let entries: Vec<_> = maps_entries(&maps).collect();
        // Several mapped pieces may be one mapping by now.
        let holds = |entry: &MapsEntry<'_>| {
            entry.range.start.get() <= mapped.start && mapped.end <= entry.range.end.get()
        };
        let text = Between::at(&entries, entries.iter().position(holds)?)?;
        text.text(self.pid, images, &self.budget)
    }

    /// Adds a mapping. `text`: the mapping of an ELF file's text, if this is memory with a copy of it.
    fn add(
        &mut self,
        images: &mut Images,
        mapped: &KernelMapping<'_>,
        text: Option<ProcessMapping>,
    ) -> NewMapping {
        if is_tunnel(mapped.path) && is_served_here(mapped.device) {
            let tunnel = (mapped.start, mapped.end.saturating_sub(mapped.start));
            /// A process has one tunnel; a forked one has its parent's as well.
            const MAX_TUNNELS: usize = 8;
            self.tunnels.retain(|known| known.0 != mapped.start);
            self.tunnels.push(tunnel);
            self.tunnels.truncate(MAX_TUNNELS);
            return NewMapping::Tunnel;
        }
        if mapped.mode.execute && jit::is_jitdump(mapped.path) {
            self.jit.map_jitdump(mapped);
        }
        self.no_dex
            .retain(|range| range.end <= mapped.start || mapped.end <= range.start);
        let left_out = self.budget.left_out.get();
        let parts = if let Some(text) = text {
            vec![text]
        } else if mapped.path.as_os_str() == "[vdso]" {
            self.vdso(mapped)
                .map_or_else(Vec::new, |vdso| vec![ProcessMapping::whole(mapped, vdso)])
        } else {
            images.get(mapped, &self.space, &self.budget)
        };
        if parts.is_empty() && self.is_part_of_dex(mapped) {
            return NewMapping::Other;
        }
        self.space.remove(mapped.start, mapped.end);
        self.forget_memory_dexes(|start, end, _| mapped.start < end && start < mapped.end);
        let has_elf = parts
            .iter()
            .any(|part| matches!(part.image, ProcessImage::Elf(_)));
        for part in parts {
            if let ProcessImage::Other(path) = &part.image
                && is_own_memory(path)
            {
                self.jit.open_name_files(self.pid);
            }
            // A mapping whose file was not opened has been counted already.
            if !self.space.insert(part) && self.budget.left_out.get() == left_out {
                self.budget.leave_out();
            }
        }
        match has_elf {
            true => NewMapping::Elf,
            false => NewMapping::Other,
        }
    }

    /// Returns true if a mapping is a part of a known dex file that was mapped again, or whose protection changed.
    fn is_part_of_dex(&self, mapped: &KernelMapping<'_>) -> bool {
        self.space.at(mapped.start).is_some_and(|known| {
            let offset = known.offset_of(mapped.start);
            let ProcessImage::Code(code) = &known.image else {
                return false;
            };
            code.path == mapped.path
                && offset.wrapping_add(code.file_offset) == mapped.pgoff
                && mapped.end <= known.end
        })
    }

    /// Returns the image of the vDSO, an ELF file that is only in memory.
    fn vdso(&self, mapped: &KernelMapping<'_>) -> Option<ProcessImage> {
        /// The largest vDSO that is read, in bytes. It has one or two pages.
        const MAX_VDSO: u64 = 1 << 16;
        let len = mapped
            .end
            .checked_sub(mapped.start)
            .filter(|len| *len <= MAX_VDSO)?;
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        ForeignMemory::new(self.pid)
            .read(mapped.start, &mut bytes)
            .ok()?;
        Some(ProcessImage::Elf(Rc::new(ElfImage::from_bytes(
            &bytes,
            mapped.path,
        ))))
    }
}

fn is_tunnel(path: &Path) -> bool {
    let path = file::without_deleted(path).as_os_str().as_bytes();
    path.strip_prefix(b"/memfd:")
        .or_else(|| path.rsplit(|byte| *byte == b'/').next())
        .is_some_and(|name| name.starts_with(NAME.as_bytes()))
}
