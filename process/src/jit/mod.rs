//! Code that a process generates while it runs: where it was sampled, and its names.
//!
//! A sample in generated code is recorded at once, but its name is often known only later: a VM may write its perf map when it exits. So
//! each range of such memory gets an [`Area`], a range of offsets in a substitute ELF file of the process. The symbols of that file name
//! the sampled addresses as of the times of their samples. When new code replaces other code at the same addresses, it gets another area,
//! from its own time on. A jitdump file contains these times, and is read before the samples of a turn are recorded. If the replacement
//! becomes known only after both were sampled at the same address, the address gets neither name.

mod adapter;
mod files;
mod memory;
mod unwinding;

use super::file;
use super::file::KernelMapping;
use super::space::AddressSpace;
use crate::clock;
use crate::reader::BatchMemory;
use files::NameFiles;
use memory::Descriptors;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use unwinding::UnwindRules;
use varid_model::{Address, MonotonicNs, Pid};
use varid_symbolizer::jit::{CodeMap, JitFunction};
use varid_symbolizer::substitute::Slot;
use varid_unwind::{CodeRule, FixedFrame, NativeFrame};

/// Offset of the first area: the page after the headers of the ELF file.
const FIRST_AREA: u64 = 0x1000;
/// The most bytes of all areas of a process.
const MAX_AREAS: u64 = 1 << 40;
/// The minimum time between two writes of the file, as a multiple of the duration of the last write.
const WRITE_INTERVAL: u32 = 50;
/// The most bytes of all symbol names of a process. Further symbols have no name.
const MAX_NAMES: usize = 1 << 24;
/// How often names are read. Reading them takes requests, and code of a known VM has names without them.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// The most replaced pieces of code whose time no sample has reached. Further code shares the areas of the code that it replaces.
const MAX_PENDING: usize = 1 << 16;
/// The most sampled addresses that may get a name.
const MAX_SAMPLED: usize = 1 << 20;

/// How much of a process's name files and descriptors is read in one turn, before it is the turn of other processes.
#[derive(Debug, Clone, Copy)]
pub struct ReadBudget {
    /// The bytes of each file.
    pub bytes: u64,
    /// The end of the turn. None: there is no limit.
    pub until: Option<Instant>,
    /// There may be no later turn: the process, or the session, has ended.
    pub is_last: bool,
}

impl ReadBudget {
    /// No limit.
    #[cfg(test)]
    pub const ALL: Self = Self {
        bytes: u64::MAX,
        until: None,
        is_last: true,
    };

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The code that a process generates.
#[derive(Debug, Default)]
pub struct JitCode {
    files: NameFiles,
    descriptors: Descriptors,
    unwinding: UnwindRules,
    /// By first address.
    areas: BTreeMap<u64, Area>,
    /// Offset of the end of the last area.
    end: u64,
    /// Replaced code that keeps its area until a time.
    pending: BTreeSet<ReplacedCode>,
    /// By offset in the file.
    sampled: BTreeMap<u64, SampledAddress>,
    /// The file lacks something that is known.
    changed: bool,
    /// When names were last read.
    read: Option<MonotonicNs>,
    /// When the file may be written next.
    next_write: Option<Instant>,
    /// The substitute file, once there is one.
    pub file: Option<JitFile>,
}

/// Why generated code has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingNames {
    /// The process publishes no names.
    Absent,
    /// It publishes several names for an address, and the one that was valid at the time of the sample is not known.
    Ambiguous,
}

/// The substitute ELF file of a process's generated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitFile {
    /// Its name.
    pub name: String,
    /// A random build-id, which identifies the file while it grows.
    pub build_id: [u8; 20],
}

/// A range of memory and its offsets in the substitute file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    end: u64,
    /// The file offset of the first address.
    offset: u64,
}

/// Code that is replaced from a time on. The first to be replaced is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ReplacedCode {
    from: u64,
    /// The first address.
    start: u64,
    /// The first address after the last.
    end: u64,
}

/// A sampled address.
#[derive(Debug, Clone, Copy)]
struct SampledAddress {
    address: u64,
    /// The first offset of its area, and the first one after it. The range of a name is cut to these.
    area: (u64, u64),
    /// The time of its first sample.
    first: MonotonicNs,
    /// The time of its last sample.
    last: MonotonicNs,
}

/// Returns true if the path of a mapping is that of a jitdump file.
pub(crate) fn is_jitdump(path: &Path) -> bool {
    let name = file::without_deleted(path).file_name();
    name.and_then(|name| name.to_str()?.strip_prefix("jit-")?.strip_suffix(".dump"))
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|digit| digit.is_ascii_digit()))
}

impl JitCode {
    /// Opens the folder of the perf map. This is called when the process maps memory that may contain generated code: once the process has
    /// exited, the map can be found only through a descriptor that was opened before.
    pub fn open_name_files(&mut self, pid: Pid) {
        self.files.open(pid);
    }

    /// Opens a jitdump file that the process has mapped, which is how a VM announces it to profilers.
    pub fn map_jitdump(&mut self, mapped: &KernelMapping<'_>) {
        let path = file::without_deleted(mapped.path);
        match file::open(mapped) {
            Ok((file, _)) => self.files.set_jitdump(file, path),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "cannot open a jitdump file")
            }
        }
    }

    /// Returns the generated code of a forked child. The child has its parent's jitdump file. Its areas and its perf map are its own.
    pub fn fork(&self, pid: Pid) -> Self {
        let mut child = Self {
            files: self.files.fork(),
            ..Self::default()
        };
        if self.files.are_open() {
            child.open_name_files(pid);
        }
        child
    }

    /// Returns the area of an address: its addresses, and the offset of the first of them. For an address without an area, a new area gets
    /// those addresses of its mapping `mapped` that no other area has. None if there is no room.
    pub fn area(&mut self, address: u64, mapped: &Range<u64>) -> Option<(Range<u64>, u64)> {
        let before = self.areas.range(..=address).next_back();
        if let Some((&start, area)) = before.filter(|(_, area)| address < area.end) {
            let from = start.max(mapped.start);
            let offset = area.offset.wrapping_add(from.wrapping_sub(start));
            return Some((from..area.end.min(mapped.end), offset));
        }
        let start = before.map_or(mapped.start, |(_, area)| area.end.max(mapped.start));
        let after = self.areas.range(address..).next();
        let end = after.map_or(mapped.end, |(&next, _)| next.min(mapped.end));
        let offset = self.end.max(FIRST_AREA);
        let size = end.checked_sub(start).filter(|size| *size > 0)?;
        let behind = offset
            .checked_add(size)?
            .checked_next_multiple_of(FIRST_AREA)?;
        if behind > MAX_AREAS {
            return None;
        }
        self.areas.insert(start, Area { end, offset });
        (self.end, self.changed) = (behind, true);
        Some((start..end, offset))
    }

    /// Adds a sample of an address that has an area. It gets its name when the file is written.
    pub fn add_sample(&mut self, address: Address, time: MonotonicNs) {
        let address = address.get();
        let Some((&start, area)) = self.areas.range(..=address).next_back() else {
            return;
        };
        if address >= area.end {
            return;
        }
        let offset = area.offset.wrapping_add(address.wrapping_sub(start));
        if let Some(known) = self.sampled.get_mut(&offset) {
            known.first = known.first.min(time);
            known.last = known.last.max(time);
        } else if self.sampled.len() < MAX_SAMPLED {
            let (first, last) = (time, time);
            let size = area.end.saturating_sub(start);
            let new = SampledAddress {
                address,
                area: (area.offset, area.offset.saturating_add(size)),
                first,
                last,
            };
            self.sampled.insert(offset, new);
            self.changed = true;
        }
    }

    /// Returns how a frame of generated code is unwound, according to the jitdump file of the code's producer. `time`: the time of the
    /// frame's sample.
    pub fn described_rule(&self, frame: &NativeFrame, time: MonotonicNs) -> Option<CodeRule> {
        let code = self.files.in_dump(frame.lookup(), time)?;
        self.unwinding.described(code, frame)
    }

    /// Returns the frame of generated code that calls one function and returns, as found from the instructions after the call.
    pub fn adapter(&self, memory: &dyn BatchMemory, frame: &NativeFrame) -> Option<FixedFrame> {
        self.unwinding.of_adapter(memory, frame)
    }

    /// Returns true if any generated code has been sampled.
    pub fn is_sampled(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Returns true if names must be read: some code has been sampled, or a jitdump file says which code is where at which time.
    pub fn needs_names(&self) -> bool {
        self.is_sampled() || self.files.has_jitdump()
    }

    /// Returns why none of the sampled generated code has a name. None if some of it has a name, or none was sampled.
    pub fn missing_names(&self, space: &AddressSpace) -> Option<MissingNames> {
        let is_code = |sampled: &&SampledAddress| {
            let mode = space.at(sampled.address).and_then(|mapped| mapped.mode);
            mode.is_some_and(|mode| mode.execute)
        };
        let mut code = self.sampled.values().filter(is_code).peekable();
        code.peek()?;
        if !self.slots().is_empty() {
            return None;
        }
        let was_named = |sampled: &SampledAddress| {
            let end = sampled.address.saturating_add(1);
            self.maps()
                .any(|map| map.holds_any(&(sampled.address..end)))
        };
        Some(match code.any(was_named) {
            true => MissingNames::Ambiguous,
            false => MissingNames::Absent,
        })
    }

    /// Returns true if the last refresh left something unread, because its budget was spent.
    pub const fn has_unread(&self) -> bool {
        self.files.has_unread() || self.descriptors.has_unread()
    }

    /// Returns true if the process has named more functions than are kept, so that some have no names.
    pub fn is_full(&self) -> bool {
        self.maps().any(CodeMap::is_full)
    }

    /// Reads the names that the process has published since the last refresh. The jitdump file is read each time; sources that take
    /// requests are read only if that was not done just before. `now`: the time of the refresh.
    pub fn refresh(
        &mut self,
        pid: Pid,
        space: &AddressSpace,
        now: MonotonicNs,
        budget: &ReadBudget,
    ) {
        let is_early = self
            .read
            .is_some_and(|read| now.since(read) < READ_INTERVAL);
        let is_due = self.is_sampled() && (!is_early || budget.is_last || self.has_unread());
        let mut update = self.files.read_dump(budget);
        if is_due {
            self.read = Some(now);
            if let Some(of_map) = self.files.read_map(now, budget) {
                update.add(of_map);
            }
            update.add(self.descriptors.read(pid, space, now, budget));
        }
        self.changed |= update.changed;
        for replaced in &update.replaced {
            self.unwinding.forget_adapters(&replaced.range);
        }
        let room = MAX_PENDING.saturating_sub(self.pending.len());
        let replaced = update.replaced.into_iter().take(room);
        self.pending.extend(replaced.map(|new| ReplacedCode {
            from: new.from,
            start: new.range.start,
            end: new.range.end,
        }));
    }

    /// Removes the areas of code that was replaced until `time`, the time of the next sample to be recorded, and returns the addresses.
    pub fn replaced_until(&mut self, time: MonotonicNs) -> Vec<Range<u64>> {
        let mut replaced = Vec::new();
        while let Some(code) = self.pending.first().copied() {
            if code.from > time.get() {
                break;
            }
            self.pending.pop_first();
            let range = code.start..code.end;
            if self.remove_areas(&range) {
                replaced.push(range);
            }
        }
        replaced
    }

    /// Removes addresses from their areas. Returns true if they had any.
    fn remove_areas(&mut self, range: &Range<u64>) -> bool {
        let overlapping: Vec<(u64, Area)> = self
            .areas
            .range(..range.end)
            .rev()
            .take_while(|(_, area)| area.end > range.start)
            .map(|(&start, &area)| (start, area))
            .collect();
        for (start, area) in &overlapping {
            self.areas.remove(start);
            if *start < range.start {
                let end = range.start;
                self.areas.insert(*start, Area { end, ..*area });
            }
            if area.end > range.end {
                let offset = area.offset.wrapping_add(range.end.wrapping_sub(*start));
                let end = area.end;
                self.areas.insert(range.end, Area { end, offset });
            }
        }
        !overlapping.is_empty()
    }

    /// Returns the symbols of the sampled addresses and the length of the file, if the file must be written: it lacks some of them, and
    /// either the last write is long enough ago, or `last` is set.
    pub fn changes(&self, last: bool) -> Option<(Vec<Slot>, u64)> {
        let is_early = self.next_write.is_some_and(|next| Instant::now() < next);
        (self.changed && (last || !is_early)).then(|| (self.slots(), self.end))
    }

    /// Records that the file was written, or that this failed, and how long it took.
    pub fn written(&mut self, took: Duration, failed: bool) {
        self.changed = failed;
        self.next_write = Some(clock::after(took.saturating_mul(WRITE_INTERVAL)));
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<(Slot, &JitFunction)> = Vec::new();
        // The first offset that a slot may have: the one after the last sampled address.
        let mut free = 0;
        let mut names = 0usize;
        for (&offset, sampled) in &self.sampled {
            let fits = |code: &&JitFunction| names.saturating_add(code.name.len()) <= MAX_NAMES;
            let Some(code) = self.name(sampled).filter(fits) else {
                if let Some((last, _)) = slots.last_mut() {
                    last.size = last.size.min(offset.saturating_sub(last.offset));
                }
                free = offset.saturating_add(1);
                continue;
            };
            let into = sampled.address.saturating_sub(code.range.start);
            let left = code.range.end.saturating_sub(sampled.address);
            let (area_start, area_end) = sampled.area;
            let start = offset.saturating_sub(into).max(free).max(area_start);
            let code_end = offset.saturating_add(left).min(area_end);
            free = offset.saturating_add(1);
            if let Some((last, of)) = slots.last_mut() {
                let end = last.offset.saturating_add(last.size);
                if std::ptr::eq(*of, code) && offset < end {
                    continue;
                }
                last.size = last.size.min(start.saturating_sub(last.offset));
            }
            let slot = Slot {
                offset: start,
                size: code_end.saturating_sub(start),
                name: code.name.to_string(),
            };
            names = names.saturating_add(slot.name.len());
            slots.push((slot, code));
        }
        slots
            .into_iter()
            .map(|(slot, _)| slot)
            .filter(|slot| slot.size > 0)
            .collect()
    }

    /// Returns the function that was at an address at the times of all its samples. None if there is none, or several.
    fn name(&self, sampled: &SampledAddress) -> Option<&JitFunction> {
        self.maps().find_map(|map| {
            let first = map.lookup(sampled.first.get(), sampled.address);
            let last = map.lookup(sampled.last.get(), sampled.address);
            match (first, last) {
                // A map has no name for a time between two reads in which the code was replaced.
                (None, code) | (code, None) => code,
                (Some(first), Some(last)) => Some(first).filter(|_| std::ptr::eq(first, last)),
            }
        })
    }

    /// Returns the sources of names, best first. Those with the times at which code was loaded come before the perf map, which has no
    /// times.
    fn maps(&self) -> impl Iterator<Item = &CodeMap> {
        let [dump, text] = self.files.maps();
        dump.into_iter().chain(self.descriptors.map()).chain(text)
    }
}

#[cfg(test)]
mod tests;
