//! Code that a process makes while it runs: where it was sampled, and what it is called.
//!
//! A sample in memory that no file shows is recorded at once, its name is often known only later: a VM
//! may write its map when it ends. So each stretch of such memory gets a place of its own, an [`Area`],
//! in a substitute ELF file of the process, and that file's symbols are what the samples' addresses
//! were called at the samples' times. Where code is seen to take another's place, it gets another
//! area; where that is heard of too late and both were sampled at one address, neither's name is given.

mod files;
mod memory;

use super::file;
use super::file::KernelMapping;
use super::space::AddressSpace;
use crate::clock;
use files::Files;
use memory::Descriptors;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use varid_model::Pid;
use varid_symbolizer::jit::{CodeMap, JitFunction};
use varid_symbolizer::substitute::Slot;

/// Areas start here in the file: behind the headers of an ELF file, at a page.
const FIRST_AREA: u64 = 0x1000;
/// Bytes that all areas of a process may take.
const MAX_AREAS: u64 = 1 << 40;
/// After the file has been written it rests for so many times as long as that took.
const REST: u32 = 50;
/// Bytes that the names of all symbols of a process may take; those behind have none.
const MAX_NAMES: usize = 1 << 24;
/// Sampled addresses that are kept to be named.
const MAX_SAMPLED: usize = 1 << 20;

/// How much of what a process says of its code is read before others are looked at again.
#[derive(Debug, Clone, Copy)]
pub struct ReadBudget {
    /// Bytes of each of its files.
    pub bytes: u64,
    /// None: for as long as that takes.
    pub until: Option<Instant>,
}

impl ReadBudget {
    /// Everything.
    #[cfg(test)]
    pub const ALL: Self = Self {
        bytes: u64::MAX,
        until: None,
    };

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// What is known of a process's own code.
#[derive(Debug, Default)]
pub struct JitCode {
    files: Files,
    descriptors: Descriptors,
    areas: BTreeMap<u64, Area>,
    /// End of the last area.
    end: u64,
    sampled: BTreeMap<u64, Sampled>,
    /// There is something that the file of symbols does not say yet.
    changed: bool,
    /// It is not written again before.
    rests_until: Option<Instant>,
    /// The file's name among the session's symbols, once there is one.
    pub file: Option<JitFile>,
}

/// Why code that a process has made has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingNames {
    /// The process gives no names.
    Absent,
    /// It says several for the same address, and which one it was at a sample's time is not known.
    Ambiguous,
}

/// The substitute ELF file of a process's own code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitFile {
    /// Its name.
    pub name: String,
    /// The session's own: it names the file whatever will be added to it.
    pub build_id: [u8; 20],
}

/// A stretch of memory, and its place in the file of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    end: u64,
    /// Offset in the file of its first address.
    offset: u64,
}

/// An address that was sampled, by its offset in the file of symbols.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    address: u64,
    /// Its area's offsets: a name reaches no further.
    area: (u64, u64),
    /// Nanoseconds of CLOCK_MONOTONIC.
    first: u64,
    last: u64,
}

/// Whether a mapping with this path says that the file is a jitdump.
pub(crate) fn is_jitdump(path: &Path) -> bool {
    let name = file::without_deleted(path).file_name();
    name.and_then(|name| name.to_str()?.strip_prefix("jit-")?.strip_suffix(".dump"))
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|digit| digit.is_ascii_digit()))
}

impl JitCode {
    /// The process has memory that may hold code of its own: what says its names can be found
    /// later, when the process has ended, only through what is opened now.
    pub fn expect(&mut self, pid: Pid) {
        self.files.expect(pid);
    }

    /// A jitdump file is mapped: that is how its writer tells profilers of it.
    pub fn map_jitdump(&mut self, mapped: &KernelMapping<'_>) {
        let path = file::without_deleted(mapped.path);
        match file::open(mapped) {
            Ok((file, _)) => self.files.jitdump(Rc::new(file), path),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "cannot open a jitdump file")
            }
        }
    }

    /// What a forked child knows of its own code: it has the parent's, and may make more.
    pub fn fork(&self, pid: Pid) -> Self {
        let mut child = Self {
            files: self.files.fork(),
            ..Self::default()
        };
        if self.files.is_expecting() {
            child.expect(pid);
        }
        child
    }

    /// The place in the file of the memory around `address`, of what is mapped there:
    /// addresses, and the first one's offset. None: there is no room.
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

    /// A sample's address, to be named.
    pub fn sampled(&mut self, address: u64, time: u64) {
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
            let new = Sampled {
                address,
                area: (area.offset, area.offset.saturating_add(size)),
                first,
                last,
            };
            self.sampled.insert(offset, new);
            self.changed = true;
        }
    }

    /// Whether any of its memory has been sampled.
    pub fn is_sampled(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Why none of the code of its own that was sampled has a name; None: some has, or there is none.
    pub fn nameless(&self, space: &AddressSpace) -> Option<MissingNames> {
        let is_code = |sampled: &&Sampled| {
            let mode = space.at(sampled.address).and_then(|mapped| mapped.mode);
            mode.is_some_and(|mode| mode.execute)
        };
        let mut code = self.sampled.values().filter(is_code).peekable();
        code.peek()?;
        if !self.slots().is_empty() {
            return None;
        }
        let was_named = |sampled: &Sampled| {
            let end = sampled.address.saturating_add(1);
            self.maps()
                .any(|map| map.holds_any(&(sampled.address..end)))
        };
        Some(match code.any(was_named) {
            true => MissingNames::Ambiguous,
            false => MissingNames::Absent,
        })
    }

    /// Whether the process said more, when it was asked last, than was read in the budget.
    pub const fn is_partly_read(&self) -> bool {
        self.files.has_more() || self.descriptors.has_more()
    }

    /// Reads what the process has said since the last time, now being `now`. Returns addresses
    /// that have another name now: they have no area any more.
    pub fn refresh(
        &mut self,
        pid: Pid,
        space: &AddressSpace,
        now: u64,
        budget: &ReadBudget,
    ) -> Vec<Range<u64>> {
        let (mut replaced, news) = self.files.read(now, budget);
        let (more, more_news) = self.descriptors.read(pid, space, now, budget);
        replaced.extend(more);
        self.changed |= news || more_news;
        replaced.retain(|range| self.forget(range));
        replaced
    }

    /// Takes addresses out of their areas; false: they were in none.
    fn forget(&mut self, range: &Range<u64>) -> bool {
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

    /// The symbols of all that was sampled, and the file's length, if the file does not say
    /// them yet. Unless these are the `last`, not so often that it takes much time.
    pub fn changes(&self, last: bool) -> Option<(Vec<Slot>, u64)> {
        let rests = self.rests_until.is_some_and(|until| Instant::now() < until);
        (self.changed && (last || !rests)).then(|| (self.slots(), self.end))
    }

    /// To write the file took so long; unless that failed, it says everything now.
    pub fn written(&mut self, took: Duration, failed: bool) {
        self.changed = failed;
        self.rests_until = Some(clock::after(took.saturating_mul(REST)));
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<(Slot, &JitFunction)> = Vec::new();
        // The byte behind the last sampled one: the earliest that a slot may start at.
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

    /// What was at a sampled address, if all its samples saw the same.
    fn name(&self, sampled: &Sampled) -> Option<&JitFunction> {
        self.maps().find_map(|map| {
            let first = map.lookup(sampled.first, sampled.address);
            let last = map.lookup(sampled.last, sampled.address);
            match (first, last) {
                // Between two looks at a producer nobody knows which of two was there.
                (None, code) | (code, None) => code,
                (Some(first), Some(last)) => Some(first).filter(|_| std::ptr::eq(first, last)),
            }
        })
    }

    /// Who knows times comes first.
    fn maps(&self) -> impl Iterator<Item = &CodeMap> {
        let [dump, text] = self.files.maps();
        dump.into_iter().chain(self.descriptors.map()).chain(text)
    }
}

#[cfg(test)]
mod tests;
