//! The ELF files that a process keeps in its memory for GDB, and the names of code in them.

use super::super::image::ProcessImage;
use super::super::reader::ForeignMemory;
use super::super::space::AddressSpace;
use super::ReadBudget;
use super::files::News;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use varid_model::Pid;
use varid_symbolizer::jit::{
    CodeMap, JitAbi, JitDescriptor, JitEntry, JitFunction, descriptors_of, symfile_codes,
};
use varid_tunnel::Memory;

/// A larger file in memory is not read.
const MAX_SYMFILE: u64 = 1 << 24;
/// Bytes of such files that are read of a process.
const MAX_SYMFILES: u64 = 1 << 28;
/// Bytes of those without times that are read at each look: others have no names.
const MAX_COMPARED: u64 = 1 << 26;
/// Names that are taken in at once: one may be dear.
const CODES: usize = 1024;
/// Nanoseconds after which a list is read whatever its descriptor says: a program that keeps
/// no count of its changes may have changed it anywhere.
const LOOK: u64 = 500_000_000;

/// A process's descriptors, and what they led to.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// Libraries that were searched, by where they are: one that is loaded again is elsewhere.
    searched: HashSet<(PathBuf, u64)>,
    /// How they are laid out, and where they are.
    found: Vec<(JitAbi, u64)>,
    /// As they were when their lists were read.
    known: Vec<(u64, JitDescriptor)>,
    map: CodeMap,
    /// Where the functions of each file start.
    entries: HashMap<Registered, Vec<u64>>,
    /// Bytes of files with times that were read.
    bytes: u64,
    /// The last turn left files, or names of some, to be read.
    more: bool,
}

/// A file in a list.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Registered {
    /// Where the list's descriptor is.
    descriptor: u64,
    entry: JitEntry,
    /// What its bytes are, where there is no time to tell it from what took its place.
    content: Option<u64>,
}

impl Descriptors {
    /// What they say, if there are any.
    pub(super) fn map(&self) -> Option<&CodeMap> {
        (!self.map.codes().is_empty()).then_some(&self.map)
    }

    /// Whether the last turn left something to be read.
    pub(super) const fn has_more(&self) -> bool {
        self.more
    }

    /// Reads what has been registered and unregistered since the last time.
    pub(super) fn read(
        &mut self,
        pid: Pid,
        space: &AddressSpace,
        now: u64,
        budget: &ReadBudget,
    ) -> News {
        self.search(space);
        let memory = ForeignMemory::new(pid);
        let mut read = |address: u64, to: &mut [u8]| memory.read(address, to).is_ok();
        // One that cannot be read, because its library has gone, costs the others nothing.
        let current: Vec<(u64, JitDescriptor)> = self
            .found
            .iter()
            .filter_map(|&(abi, at)| Some((at, JitDescriptor::read(abi, at, &mut read).ok()?)))
            .collect();
        let uncounted = current.iter().any(|(_, known)| known.seqlock.is_none());
        let before = self.map.last_listing();
        let due = uncounted && now.saturating_sub(before) >= LOOK;
        if current == self.known && !due {
            return News::default();
        }
        let (mut whole, mut there, mut new) = (HashSet::new(), HashSet::new(), Vec::new());
        let mut compared = 0;
        self.more = false;
        for (descriptor, known) in &current {
            let list = known.list(&mut read);
            if list.is_whole {
                whole.insert(*descriptor);
            }
            for entry in list.entries {
                if budget.is_over() {
                    // It is looked at again.
                    whole.remove(descriptor);
                    self.more = true;
                    break;
                }
                let mut bytes = None;
                if entry.time.is_none() {
                    bytes = contents(&entry, &memory, &mut compared, MAX_COMPARED);
                    if bytes.is_none() {
                        continue;
                    }
                }
                let registered = Registered {
                    descriptor: *descriptor,
                    content: bytes.as_deref().map(hash),
                    entry,
                };
                if self.entries.contains_key(&registered) {
                    there.insert(registered);
                    continue;
                }
                if bytes.is_none() {
                    bytes = contents(&registered.entry, &memory, &mut self.bytes, MAX_SYMFILES);
                }
                new.push((registered, codes(&bytes.unwrap_or_default())));
            }
        }
        if whole.len() == current.len() {
            self.known = current;
        }
        let mut news = !new.is_empty();
        let map = &mut self.map;
        self.entries.retain(|registered, starts| {
            let stays = there.contains(registered) || !whole.contains(&registered.descriptor);
            if !stays {
                news = true;
                starts.iter().for_each(|start| map.unload(*start, before));
            }
            stays
        });
        let mut replaced = Vec::new();
        for (registered, codes) in new {
            let starts = codes.iter().map(|code| code.range.start).collect();
            for part in codes.chunks(CODES) {
                self.more |= budget.is_over();
                if !self.more {
                    replaced.extend(self.map.appear(part.iter().cloned(), now));
                }
            }
            self.entries.insert(registered, starts);
        }
        self.map.finish_listing(now);
        (replaced, news)
    }

    /// Looks for descriptors in programs and libraries that have not been searched yet.
    fn search(&mut self, space: &AddressSpace) {
        for mapped in space.iter() {
            let ProcessImage::Elf(elf) = &mapped.image else {
                continue;
            };
            if !self.searched.insert((elf.path.clone(), mapped.start)) {
                continue;
            }
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
                tracing::debug!(name, address, "names its code for GDB");
                self.found.push((symbols.abi, address));
            }
        }
    }
}

/// A registered file's bytes, unless they are too many.
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

/// The functions of a registered file; none if it is no ELF file.
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

    /// A list of one file without a time, in this process; what is there when it is read.
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
        assert!(descriptors.read(pid, &space, 10, &ReadBudget::ALL).1);
        assert!(!descriptors.read(pid, &space, 20, &ReadBudget::ALL).1);
        assert!(
            !descriptors.read(pid, &space, LOOK + 20, &ReadBudget::ALL).1,
            "it is the same"
        );
        program.file.copy_from_slice(&elf("new"));
        let now = 3 * LOOK;
        let (replaced, news) = descriptors.read(pid, &space, now, &ReadBudget::ALL);
        assert_eq!(replaced, std::slice::from_ref(&(0x1000..0x1010)));
        assert!(news);
        assert_eq!(name(&descriptors, 15).unwrap(), "old");
        assert_eq!(name(&descriptors, now - 1), None, "either was there");
        assert_eq!(name(&descriptors, now).unwrap(), "new");
        assert_eq!(program.entry[3], program.file.len() as u64);
    }

    #[test]
    fn what_a_turn_has_no_time_for_is_read_in_the_next_one() {
        let program = Program::new(elf("here"));
        let mut descriptors = program.descriptors(&[]);
        let (pid, space) = (Pid::new(std::process::id()), AddressSpace::default());
        let late = ReadBudget {
            until: Some(std::time::Instant::now()),
            ..ReadBudget::ALL
        };
        descriptors.read(pid, &space, 10, &late);
        assert!(descriptors.has_more() && descriptors.map().is_none());
        descriptors.read(pid, &space, LOOK + 20, &ReadBudget::ALL);
        assert!(!descriptors.has_more());
        assert_eq!(name(&descriptors, LOOK + 20).unwrap(), "here");
    }

    #[test]
    fn a_descriptor_that_has_gone_silences_no_other() {
        let program = Program::new(elf("here"));
        let mut descriptors = program.descriptors(&[8]);
        assert!(
            descriptors
                .read(
                    Pid::new(std::process::id()),
                    &AddressSpace::default(),
                    10,
                    &ReadBudget::ALL
                )
                .1
        );
        assert_eq!(name(&descriptors, 10).unwrap(), "here");
    }
}
