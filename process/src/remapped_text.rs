//! Recognises text of an ELF file that is mapped as memory without a file.
//!
//! A program that wants its text in huge pages copies it into memory and maps that in place of the file. The file's other segments are
//! still mapped before and after it and show the load address. The program headers confirm that the text belongs where the memory is.

use crate::budget::LookBudget;
use crate::image::ProcessImage;
use crate::images::Images;
use crate::mapping_id::MappingId;
use crate::{KernelMapping, ProcessMapping};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use varid_model::{Address, MapsEntry, Pid, is_own_memory};

/// The most memory mappings between the text and the file's other segments, on either side.
const MAX_BETWEEN: usize = 16;

/// Memory between mappings of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Between<'m> {
    memory: &'m MapsEntry<'m>,
    before: &'m MapsEntry<'m>,
    behind: &'m MapsEntry<'m>,
}

impl<'m> Between<'m> {
    /// Returns the mapping with this number, if it is executable memory without a file and the nearest files on both sides are the same
    /// one.
    pub(super) fn at(maps: &'m [MapsEntry<'m>], number: usize) -> Option<Self> {
        let (before, rest) = maps.split_at_checked(number)?;
        let (memory, behind) = rest.split_first()?;
        if !memory.mode.execute || !is_memory(memory) {
            return None;
        }
        let is_file = |entry: &&MapsEntry<'_>| !is_memory(entry);
        let before = before.iter().rev().take(MAX_BETWEEN).find(is_file)?;
        let behind = behind.iter().take(MAX_BETWEEN).find(is_file)?;
        let identity = |entry: &MapsEntry<'m>| (entry.device, entry.inode, entry.path);
        (identity(before) == identity(behind)).then_some(Self {
            memory,
            before,
            behind,
        })
    }

    /// Returns the memory as a mapping of the file, if that is an ELF file with its text there.
    pub(super) fn text(
        &self,
        pid: Pid,
        images: &mut Images,
        budget: &LookBudget,
    ) -> Option<ProcessMapping> {
        let elf = images.elf(&kernel_mapping(pid, self.before), budget)?;
        let image = ProcessImage::Elf(elf.clone());
        let module = elf.contents()?.module.borrow();
        // A mapping at the edge of two segments may belong to either.
        let biases = |entry: &MapsEntry<'_>| {
            let start = entry.range.start.get();
            let size = entry.range.end.get().saturating_sub(start);
            let own = module.addresses_of_mapping(entry.offset, size);
            let biases = own.map(|own| start.wrapping_sub(own.get()));
            biases.collect::<Vec<u64>>()
        };
        let (before, behind) = (biases(self.before), biases(self.behind));
        let (start, end) = (self.memory.range.start, self.memory.range.end);
        let both = before.into_iter().filter(|bias| behind.contains(bias));
        let mut offsets = both.filter_map(|bias| {
            let own = |address: Address| address.wrapping_add(bias.wrapping_neg());
            module.offset_of_code(&(own(start)..own(end)))
        });
        Some(ProcessMapping {
            start: start.get(),
            end: end.get(),
            pgoff: offsets.next()?,
            image,
            mode: Some(self.memory.mode),
            id: MappingId::default(),
        })
    }
}

/// Returns a line of the memory map in the form in which the kernel reports mappings.
pub(super) fn kernel_mapping<'a>(pid: Pid, entry: &MapsEntry<'a>) -> KernelMapping<'a> {
    let path = match entry.path {
        b"" => b"//anon".as_slice(),
        b"[vdso]" | b"[vsyscall]" => entry.path,
        // Named anonymous memory: a heap, a stack.
        [b'[', ..] => b"",
        path => path,
    };
    KernelMapping {
        pid,
        start: entry.range.start.get(),
        end: entry.range.end.get(),
        pgoff: entry.offset,
        device: entry.device,
        inode: entry.inode,
        mode: entry.mode,
        path: Path::new(OsStr::from_bytes(path)),
    }
}

/// Returns true if a mapping is memory: it has no file that others could open.
fn is_memory(entry: &MapsEntry<'_>) -> bool {
    entry.inode == 0 || is_own_memory(Path::new(OsStr::from_bytes(entry.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::maps_entries;

    /// Which mappings are memory between those of one file.
    fn between(maps: &str) -> Vec<usize> {
        let entries: Vec<_> = maps_entries(maps.as_bytes()).collect();
        let numbers = 0..entries.len();
        numbers
            .filter(|number| Between::at(&entries, *number).is_some())
            .collect()
    }

    #[test]
    fn text_stands_between_the_mappings_of_its_file() {
        let prog = "\
55550000-55551000 r--p 00000000 08:01 7 /srv/prog
55551000-55552000 r-xp 00000000 00:00 0
55552000-55553000 r-xp 00000000 00:01 9 /memfd:text (deleted)
55553000-55554000 rw-p 00000000 00:00 0
55554000-55555000 r--p 00002000 08:01 7 /srv/prog
55555000-55556000 rwxp 00000000 00:00 0 [heap]
7f000000-7f001000 r-xp 00000000 08:01 8 /srv/libc.so
7f001000-7f002000 r-xp 00000000 00:00 0
7f002000-7f003000 r--p 00000000 08:01 9 /srv/libc.so
";
        assert_eq!(between(prog), [1, 2]);
        assert_eq!(between(""), Vec::<usize>::new());
    }

    #[test]
    fn a_program_that_makes_code_everywhere_does_not_take_the_square_of_its_mappings() {
        let code = |number: u64| {
            format!(
                "{:x}-{:x} r-xp 0 00:00 0\n",
                number << 12,
                (number + 1) << 12
            )
        };
        let maps: String = (1..60_000).map(code).collect();
        assert_eq!(between(&maps), Vec::<usize>::new());
    }
}
