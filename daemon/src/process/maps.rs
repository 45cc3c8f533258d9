//! What is mapped in the process? Its memory map as it is now, and each mapping that comes.

use super::{ElfImage, Image, Images, Mapped, MappedFile, Process, jit};
use procfs::process::MMPermissions;
use std::rc::Rc;
use varid_recording::{Mode, is_own_memory};
use varid_tunnel::abi::NAME;
use varid_tunnel::{Memory, ProcessMemory};

impl Process {
    /// Takes in the memory map as it is now. A process that has ended is left as it was.
    pub fn read_maps(&mut self, images: &mut Images) {
        let Ok(maps) =
            procfs::process::Process::new(self.pid as i32).and_then(|process| process.maps())
        else {
            return;
        };
        for map in maps {
            let path = match &map.pathname {
                procfs::process::MMapPath::Path(path) => path.to_string_lossy().into_owned(),
                procfs::process::MMapPath::Vdso => "[vdso]".to_owned(),
                procfs::process::MMapPath::Vsyscall => "[vsyscall]".to_owned(),
                procfs::process::MMapPath::Anonymous => "//anon".to_owned(),
                _ => String::new(),
            };
            self.map(
                images,
                &MappedFile {
                    pid: self.pid,
                    start: map.address.0,
                    end: map.address.1,
                    pgoff: map.offset,
                    inode: map.inode,
                    mode: mode_of(map.perms),
                    path: &path,
                },
            );
        }
    }

    /// A mapping has appeared; true: it may be a VM's, look for one.
    pub fn map(&mut self, images: &mut Images, mapped: &MappedFile<'_>) -> bool {
        if is_tunnel(mapped.path) {
            let tunnel = (mapped.start, mapped.end.saturating_sub(mapped.start));
            /// A process has one, and a forked one its parent's as well.
            const MAX_TUNNELS: usize = 8;
            self.tunnels.retain(|known| known.0 != mapped.start);
            self.tunnels.push(tunnel);
            self.tunnels.truncate(MAX_TUNNELS);
            return true;
        }
        if mapped.mode.execute && jit::is_jitdump(mapped.path) {
            self.jit.map_jitdump(mapped);
        }
        self.no_dex
            .retain(|range| range.end <= mapped.start || mapped.end <= range.start);
        let parts = if mapped.path == "[vdso]" {
            self.vdso(mapped)
                .map_or_else(Vec::new, |vdso| mapped.whole(vdso))
        } else {
            images.get(mapped, &self.space)
        };
        if parts.is_empty() && self.is_part_of_dex(mapped) {
            return false;
        }
        self.space.remove(mapped.start, mapped.end);
        self.forget_memory_dexes(|start, end, _| mapped.start < end && start < mapped.end);
        let is_vm = |part: &Mapped| matches!(&part.image, Image::Elf(elf) if elf.is_vm_library());
        let may_be_vm = parts.iter().any(is_vm);
        for part in parts {
            if let Image::Other(path) = &part.image
                && is_own_memory(path)
            {
                self.jit.expect(self.pid);
            }
            self.space.insert(part);
        }
        may_be_vm
    }

    /// A part of a known dex file was mapped again, or its protection changed: the file is
    /// still there.
    fn is_part_of_dex(&self, mapped: &MappedFile<'_>) -> bool {
        self.space.at(mapped.start).is_some_and(|known| {
            let offset = mapped
                .start
                .wrapping_sub(known.start)
                .wrapping_add(known.pgoff);
            let Image::Dex(dex) = &known.image else {
                return false;
            };
            dex.path.as_os_str() == mapped.path
                && offset.wrapping_add(dex.file_offset) == mapped.pgoff
                && mapped.end <= known.end
        })
    }

    /// The kernel's code in the process: an ELF file that is nowhere but in memory.
    fn vdso(&self, mapped: &MappedFile<'_>) -> Option<Image> {
        /// The vdso is a page or two.
        const MAX_VDSO: u64 = 1 << 16;
        let len = mapped
            .end
            .checked_sub(mapped.start)
            .filter(|len| *len <= MAX_VDSO)?;
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        ProcessMemory::new(self.pid)
            .read(mapped.start, &mut bytes)
            .ok()?;
        Some(Image::Elf(Rc::new(ElfImage::from_bytes(
            &bytes,
            std::path::Path::new(mapped.path),
        ))))
    }
}

fn is_tunnel(path: &str) -> bool {
    let path = path.trim_end_matches(" (deleted)");
    path.strip_prefix("/memfd:")
        .or_else(|| path.rsplit('/').next())
        .is_some_and(|name| name.starts_with(NAME))
}

fn mode_of(perms: MMPermissions) -> Mode {
    Mode {
        read: perms.contains(MMPermissions::READ),
        write: perms.contains(MMPermissions::WRITE),
        execute: perms.contains(MMPermissions::EXECUTE),
        shared: perms.contains(MMPermissions::SHARED),
    }
}
