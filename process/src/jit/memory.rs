//! Reads the names of code that a process publishes in memory, by GDB's JIT interface.
//!
//! A `__jit_debug_descriptor` in a program or library is the head of a list of ELF files in memory (`struct jit_code_entry`).

use super::super::image::ProcessImage;
use super::super::reader::ForeignMemory;
use super::super::space::AddressSpace;
use super::ReadBudget;
use super::files::NameUpdate;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;
use varid_model::{MonotonicNs, Pid};
use varid_symbolizer::jit::{
    CodeMap, JitAbi, JitDescriptor, JitEntry, JitFunction, Replacement, descriptors_of,
    symfile_codes,
};
use varid_tunnel::Memory;

/// The largest file in memory that is read, in bytes.
const MAX_SYMFILE: u64 = 1 << 24;
/// The most bytes of files with times that are read of a process.
const MAX_SYMFILES: u64 = 1 << 28;
/// The most bytes of files without times that are read and compared whenever a list is read. Further files get no names.
const MAX_COMPARED: u64 = 1 << 26;
/// Functions that are added at a time. Adding functions can take long, so a turn's budget is checked in between.
const CODES: usize = 1024;
/// How often a list without a sequence lock is read. Its descriptor need not change when one of its entries does.
const LIST_INTERVAL: Duration = Duration::from_millis(500);

/// The descriptors of a process, and the functions in the files of their lists.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// Programs and libraries that have been searched for a descriptor, by path and first address.
    searched: HashSet<(PathBuf, u64)>,
    /// The layout and the address of each descriptor.
    found: Vec<(JitAbi, u64)>,
    /// The descriptors with their addresses, when all lists were last read completely.
    known: Vec<(u64, JitDescriptor)>,
    map: CodeMap,
    /// The first addresses of each file's functions.
    entries: HashMap<RegisteredFile, Vec<u64>>,
    /// The bytes of files with times that have been read.
    bytes: u64,
    /// The budget of the last turn was spent before everything was read.
    has_unread: bool,
}

/// A file in a list.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RegisteredFile {
    /// Address of the list's descriptor.
    descriptor: u64,
    entry: JitEntry,
    /// A hash of its bytes, if the entry has no time to distinguish the file from another one at the same address.
    content: Option<u64>,
}

/// What the lists of a process have.
#[derive(Debug, Default)]
struct Listing {
    /// The descriptors whose lists were read completely.
    complete: HashSet<u64>,
    /// The files that were known before.
    present: HashSet<RegisteredFile>,
    /// The other files, and their functions.
    new: Vec<(RegisteredFile, Vec<JitFunction>)>,
}

impl Descriptors {
    /// Returns the names, if there are any.
    pub(super) fn map(&self) -> Option<&CodeMap> {
        (!self.map.codes().is_empty()).then_some(&self.map)
    }

    /// Returns true if the budget of the last turn was spent before everything was read.
    pub(super) const fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// Reads which files were registered and unregistered since the last turn.
    pub(super) fn read(
        &mut self,
        pid: Pid,
        space: &AddressSpace,
        now: MonotonicNs,
        budget: &ReadBudget,
    ) -> NameUpdate {
        self.search(space);
        let memory = ForeignMemory::new(pid);
        let mut read = |address: u64, to: &mut [u8]| memory.read(address, to).is_ok();
        // A descriptor that cannot be read is skipped: its library was unloaded.
        let current: Vec<(u64, JitDescriptor)> = self
            .found
            .iter()
            .filter_map(|&(abi, at)| Some((at, JitDescriptor::read(abi, at, &mut read).ok()?)))
            .collect();
        let uncounted = current.iter().any(|(_, known)| known.seqlock.is_none());
        let before = self.map.last_listing();
        let is_due = uncounted && now.since(MonotonicNs::new(before)) >= LIST_INTERVAL;
        if current == self.known && !is_due {
            return NameUpdate::default();
        }
        let listing = self.list(&current, &memory, budget);
        if listing.complete.len() == current.len() {
            self.known = current;
        }
        let removed = self.remove_missing(&listing, before);
        let changed = removed || !listing.new.is_empty();
        let replaced = self.add(listing.new, now, budget);
        self.map.finish_listing(now.get());
        NameUpdate { replaced, changed }
    }

    /// Reads the lists, and the files that have not been read yet.
    fn list(
        &mut self,
        descriptors: &[(u64, JitDescriptor)],
        memory: &ForeignMemory,
        budget: &ReadBudget,
    ) -> Listing {
        let mut read = |address: u64, to: &mut [u8]| memory.read(address, to).is_ok();
        let mut listing = Listing::default();
        let mut compared = 0;
        self.has_unread = false;
        for (descriptor, known) in descriptors {
            let list = known.list(&mut read);
            if list.is_whole {
                listing.complete.insert(*descriptor);
            }
            for entry in list.entries {
                if budget.is_over() {
                    listing.complete.remove(descriptor);
                    self.has_unread = true;
                    break;
                }
                let mut bytes = None;
                if entry.time.is_none() {
                    bytes = contents(&entry, memory, &mut compared, MAX_COMPARED);
                    if bytes.is_none() {
                        continue;
                    }
                }
                let registered = RegisteredFile {
                    descriptor: *descriptor,
                    content: bytes.as_deref().map(hash),
                    entry,
                };
                if self.entries.contains_key(&registered) {
                    listing.present.insert(registered);
                    continue;
                }
                if bytes.is_none() {
                    bytes = contents(&registered.entry, memory, &mut self.bytes, MAX_SYMFILES);
                }
                let codes = codes(&bytes.unwrap_or_default());
                listing.new.push((registered, codes));
            }
        }
        listing
    }

    /// Removes the names of files that are no longer registered, and returns true if there were any. `before`: the time of the last
    /// listing.
    fn remove_missing(&mut self, listing: &Listing, before: u64) -> bool {
        let mut removed = false;
        let map = &mut self.map;
        self.entries.retain(|registered, starts| {
            let stays = listing.present.contains(registered)
                || !listing.complete.contains(&registered.descriptor);
            if !stays {
                removed = true;
                starts.iter().for_each(|start| map.unload(*start, before));
            }
            stays
        });
        removed
    }

    /// Adds the names of new files, and returns the code that they replace.
    fn add(
        &mut self,
        new: Vec<(RegisteredFile, Vec<JitFunction>)>,
        now: MonotonicNs,
        budget: &ReadBudget,
    ) -> Vec<Replacement> {
        let mut replaced = Vec::new();
        for (registered, codes) in new {
            let starts = codes.iter().map(|code| code.range.start).collect();
            for part in codes.chunks(CODES) {
                self.has_unread |= budget.is_over();
                if !self.has_unread {
                    replaced.extend(self.map.appear(part.iter().cloned(), now.get()));
                }
            }
            self.entries.insert(registered, starts);
        }
        replaced
    }

    /// Searches programs and libraries that have not been searched yet for descriptors.
    fn search(&mut self, space: &AddressSpace) {
        for mapped in space.iter() {
            let ProcessImage::Elf(elf) = &mapped.image else {
                continue;
            };
            if !self.searched.insert((elf.path.clone(), mapped.start)) {
                continue;
            }
            let name = elf.path.display().to_string();
            let Some(file) = elf.file() else {
                continue;
            };
            let symbols = descriptors_of(file, &name).ok().flatten();
            if file.take_failure() {
                // It is read the next time.
                self.searched.remove(&(elf.path.clone(), mapped.start));
            }
            let Some(symbols) = symbols else {
                continue;
            };
            let bias = elf.contents().and_then(|contents| {
                let module = contents.module.borrow();
                Some(
                    mapped.start.wrapping_sub(
                        module
                            .address_of_mapping(
                                mapped.pgoff,
                                mapped.end.wrapping_sub(mapped.start),
                            )?
                            .get(),
                    ),
                )
            });
            let (Some(bias), Some(symbol)) = (bias, symbols.jit) else {
                continue;
            };
            let address = bias.wrapping_add(symbol);
            if !self.found.contains(&(symbols.abi, address)) {
                tracing::debug!(name, address, "has a list of generated code for GDB");
                self.found.push((symbols.abi, address));
            }
        }
    }
}

/// Returns the bytes of a registered file. None if they are too many, or cannot be read. `spent` counts the bytes that were read, up to
/// `limit`.
fn contents(
    entry: &JitEntry,
    memory: &ForeignMemory,
    spent: &mut u64,
    limit: u64,
) -> Option<Vec<u8>> {
    let size = entry.symfile.end.saturating_sub(entry.symfile.start);
    let total = spent.saturating_add(size);
    if size > MAX_SYMFILE || total > limit {
        return None;
    }
    *spent = total;
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    memory.read(entry.symfile.start, &mut bytes).ok()?;
    Some(bytes)
}

/// Returns the functions of a registered file, or none if it is not an ELF file.
fn codes(file: &[u8]) -> Vec<JitFunction> {
    symfile_codes(file, "an ELF file in memory")
        .inspect_err(|error| tracing::debug!(%error, "a registered file is not used"))
        .unwrap_or_default()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = LIST_INTERVAL.as_nanos() as u64;

    /// A list of one file without a time, in this process; `file` has the bytes of the file.
    struct Program {
        descriptor: Box<[u64; 5]>,
        entry: Box<[u64; 4]>,
        file: Vec<u8>,
    }

    impl Program {
        fn new(file: Vec<u8>) -> Self {
            let entry = Box::new([0, 0, file.as_ptr() as u64, file.len() as u64]);
            // Version and action, the relevant entry, the first one.
            let descriptor = Box::new([1, 0, entry.as_ptr() as u64, 0, 0]);
            Self {
                descriptor,
                entry,
                file,
            }
        }

        fn descriptors(&self, others: &[u64]) -> Descriptors {
            let own = self.descriptor.as_ptr() as u64;
            let addresses = others.iter().copied().chain([own]);
            Descriptors {
                found: addresses.map(|at| (JitAbi::Bits64, at)).collect(),
                ..Descriptors::default()
            }
        }
    }

    /// An ELF file with one function of this name.
    fn elf(name: &str) -> Vec<u8> {
        let slot = varid_symbolizer::substitute::Slot {
            offset: 0x1000,
            size: 0x10,
            name: name.to_owned(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("elf");
        varid_symbolizer::substitute::Substitute::remap([slot], 0x2000, &[1])
            .unwrap()
            .write(&path)
            .unwrap();
        std::fs::read(path).unwrap()
    }

    fn name(descriptors: &Descriptors, time: u64) -> Option<String> {
        let code = descriptors.map()?.lookup(time, 0x1000)?;
        Some(code.name.to_string())
    }

    #[test]
    fn another_file_at_the_same_place_has_its_own_names() {
        let mut program = Program::new(elf("old"));
        let mut descriptors = program.descriptors(&[]);
        let (pid, space) = (Pid::new(std::process::id()), AddressSpace::default());
        let read = |descriptors: &mut Descriptors, now| {
            descriptors.read(pid, &space, MonotonicNs::new(now), &ReadBudget::ALL)
        };
        assert!(read(&mut descriptors, 10).changed);
        assert!(!read(&mut descriptors, 20).changed);
        assert!(
            !read(&mut descriptors, INTERVAL + 20).changed,
            "it is the same"
        );
        program.file.copy_from_slice(&elf("new"));
        let now = 3 * INTERVAL;
        let update = read(&mut descriptors, now);
        let [replaced] = update.replaced.as_slice() else {
            panic!("{update:?}");
        };
        assert_eq!((&replaced.range, replaced.from), (&(0x1000..0x1010), now));
        assert!(update.changed);
        assert_eq!(name(&descriptors, 15).unwrap(), "old");
        assert_eq!(name(&descriptors, now - 1), None, "either was there");
        assert_eq!(name(&descriptors, now).unwrap(), "new");
        assert_eq!(program.entry[3], program.file.len() as u64);
    }

    #[test]
    fn what_is_left_when_a_turn_ends_is_read_in_the_next_one() {
        let program = Program::new(elf("here"));
        let mut descriptors = program.descriptors(&[]);
        let (pid, space) = (Pid::new(std::process::id()), AddressSpace::default());
        let late = ReadBudget {
            until: Some(std::time::Instant::now()),
            ..ReadBudget::ALL
        };
        descriptors.read(pid, &space, MonotonicNs::new(10), &late);
        assert!(descriptors.has_unread() && descriptors.map().is_none());
        let later = MonotonicNs::new(INTERVAL + 20);
        descriptors.read(pid, &space, later, &ReadBudget::ALL);
        assert!(!descriptors.has_unread());
        assert_eq!(name(&descriptors, INTERVAL + 20).unwrap(), "here");
    }

    #[test]
    fn an_unreadable_descriptor_does_not_hide_the_names_of_others() {
        let program = Program::new(elf("here"));
        let mut descriptors = program.descriptors(&[8]);
        let (pid, space) = (Pid::new(std::process::id()), AddressSpace::default());
        let update = descriptors.read(pid, &space, MonotonicNs::new(10), &ReadBudget::ALL);
        assert!(update.changed);
        assert_eq!(name(&descriptors, 10).unwrap(), "here");
    }
}
