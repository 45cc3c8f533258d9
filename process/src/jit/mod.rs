//! Where was code sampled that a process generates while it runs, and what is it called?
//!
//! A sample in generated code is recorded at once. Its name is often known only later: a VM may write its perf map when it exits. So each
//! range of such memory gets an [`Area`], a range of offsets in a substitute ELF file of the process. The symbols of that file name the
//! sampled addresses as of the times of their samples. When new code replaces other code at the same addresses, the new code gets
//! another area from its own time on: a jitdump file, which says the times, is read before the samples of a turn are recorded.
//! If it becomes known only after both were sampled at the same address, the address gets neither name.

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

/// Offset of the first area: the page behind the headers of the ELF file.
const FIRST_AREA: u64 = 0x1000;
/// Bytes that all areas of a process may take.
const MAX_AREAS: u64 = 1 << 40;
/// The file is written at most once in so many times the duration of the last write.
const WRITE_INTERVAL: u32 = 50;
/// Bytes that the names of all symbols of a process may take; further symbols have no name.
const MAX_NAMES: usize = 1 << 24;
/// How often names are read: it takes requests, and the code of a VM that is known has names without them.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Replaced code whose time no sample has reached. Further code shares the areas of what it replaces.
const MAX_PENDING: usize = 1 << 16;
/// Sampled addresses that may get a name.
const MAX_SAMPLED: usize = 1 << 20;

/// How much a process's name files and descriptors are read in one turn; then other processes have theirs.
#[derive(Debug, Clone, Copy)]
pub struct ReadBudget {
    /// Bytes of each of its files.
    pub bytes: u64,
    /// The end of the turn; None: there is no limit.
    pub until: Option<Instant>,
    /// There may be no later turn: the process, or the session, has ended.
    pub is_last: bool,
}

impl ReadBudget {
    /// Everything.
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

/// What is known of the code that a process generates.
#[derive(Debug, Default)]
pub struct JitCode {
    files: NameFiles,
    descriptors: Descriptors,
    unwinding: UnwindRules,
    /// By their first addresses.
    areas: BTreeMap<u64, Area>,
    /// Offset of the end of the last area.
    end: u64,
    /// Replaced code that keeps its area until then: time, first address, the one after the last.
    pending: BTreeSet<(u64, u64, u64)>,
    /// By their offsets in the file.
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
    /// It publishes several names for an address, and which one was valid at a sample's time is not known.
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

/// A range of memory with its range of offsets in the substitute file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    end: u64,
    /// Offset in the file of the first address.
    offset: u64,
}

/// An address that was sampled.
#[derive(Debug, Clone, Copy)]
struct SampledAddress {
    address: u64,
    /// First offset of its area, and the first one behind it. The range of a name is cut to these.
    area: (u64, u64),
    /// The time of its first sample.
    first: MonotonicNs,
    /// The time of its last sample.
    last: MonotonicNs,
}

/// Whether the path of a mapping is that of a jitdump file.
pub(crate) fn is_jitdump(path: &Path) -> bool {
    let name = file::without_deleted(path).file_name();
    name.and_then(|name| name.to_str()?.strip_prefix("jit-")?.strip_suffix(".dump"))
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|digit| digit.is_ascii_digit()))
}

impl JitCode {
    /// Opens the folder of the perf map. It is called when the process maps memory that may hold generated code: once the process has
    /// exited, the map can be found only through a descriptor that was opened before.
    pub fn open_name_files(&mut self, pid: Pid) {
        self.files.open(pid);
    }

    /// The process maps a jitdump file, which is how a VM announces it to profilers.
    pub fn map_jitdump(&mut self, mapped: &KernelMapping<'_>) {
        let path = file::without_deleted(mapped.path);
        match file::open(mapped) {
            Ok((file, _)) => self.files.set_jitdump(file, path),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "cannot open a jitdump file")
            }
        }
    }

    /// The generated code of a forked child. It has its parent's jitdump file; its areas and its perf map are its own.
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

    /// The area of an address: its addresses, and the offset of the first of them. An address without an area gets one of the addresses
    /// of `mapped`, its mapping, that no other area has. None: there is no room.
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

    /// A sample of an address that has an area; it is named when the file is written.
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

    /// How a frame of generated code is left, as the code's producer says it in a jitdump file. `time`: that of the frame's sample.
    pub fn described_rule(&self, frame: &NativeFrame, time: MonotonicNs) -> Option<CodeRule> {
        let code = self.files.in_dump(frame.lookup(), time)?;
        self.unwinding.described(code, frame)
    }

    /// The frame of generated code that calls one function and returns, as the instructions behind the call say.
    pub fn adapter(&self, memory: &dyn BatchMemory, frame: &NativeFrame) -> Option<FixedFrame> {
        self.unwinding.of_adapter(memory, frame)
    }

    /// Whether any generated code has been sampled.
    pub fn is_sampled(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Whether names are read: some code has been sampled, or a jitdump file says when which code is there.
    pub fn needs_names(&self) -> bool {
        self.is_sampled() || self.files.has_jitdump()
    }

    /// Why none of the sampled generated code has a name; None: some of it has one, or none was sampled.
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

    /// Whether the last refresh left something unread, because its budget was spent.
    pub const fn has_unread(&self) -> bool {
        self.files.has_unread() || self.descriptors.has_unread()
    }

    /// Reads the names that the process has published since the last refresh: a jitdump file each time, what takes requests unless that
    /// was done just now. `now` is the time of the refresh.
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
        self.pending
            .extend(replaced.map(|new| (new.from, new.range.start, new.range.end)));
    }

    /// The addresses whose code was replaced until `time`, the time of the sample that is recorded next: they have lost their
    /// areas.
    pub fn replaced_until(&mut self, time: MonotonicNs) -> Vec<Range<u64>> {
        let mut replaced = Vec::new();
        while let Some(&(from, start, end)) = self.pending.first() {
            if from > time.get() {
                break;
            }
            self.pending.pop_first();
            let range = start..end;
            if self.remove_areas(&range) {
                replaced.push(range);
            }
        }
        replaced
    }

    /// Removes addresses from their areas. Whether they had any.
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

    /// The symbols of the sampled addresses and the length of the file, if the file has to be written: it lacks some of them, and the last
    /// write is long enough ago or `last` is set.
    pub fn changes(&self, last: bool) -> Option<(Vec<Slot>, u64)> {
        let is_early = self.next_write.is_some_and(|next| Instant::now() < next);
        (self.changed && (last || !is_early)).then(|| (self.slots(), self.end))
    }

    /// The file was written, or that failed, in this duration.
    pub fn written(&mut self, took: Duration, failed: bool) {
        self.changed = failed;
        self.next_write = Some(clock::after(took.saturating_mul(WRITE_INTERVAL)));
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<(Slot, &JitFunction)> = Vec::new();
        // The first offset that a slot may have: the one behind the last sampled address.
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

    /// The function that was at an address at the times of all its samples; None: none, or several.
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

    /// The sources of names, best first: those that know when code was loaded come before the perf map, which does not.
    fn maps(&self) -> impl Iterator<Item = &CodeMap> {
        let [dump, text] = self.files.maps();
        dump.into_iter().chain(self.descriptors.map()).chain(text)
    }
}

#[cfg(test)]
mod tests;
