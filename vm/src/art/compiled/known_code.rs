//! Caches the compiled code at addresses, and the code that was there before.

use super::jit_history::JitCounts;
use super::method::{CompiledMethod, Owner};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use varid_model::{Address, MonotonicNs};
use varid_process::ProcessMapping;

/// The most bytes that are kept of a process's code and of addresses without code. Beyond that, code is read again when it is sampled.
const MAX_KEPT: usize = 1 << 26;
/// The most pieces of JIT code that are kept after other code, or none, was found in their place: earlier samples may still arrive.
const MAX_REPLACED: usize = 128;
/// The most bytes of such code.
const MAX_REPLACED_SIZE: usize = 1 << 23;

/// The sampled compiled code of a process.
#[derive(Debug, Default)]
pub(super) struct KnownCode {
    /// By the first address.
    codes: BTreeMap<u64, CodeAt>,
    /// Their size in bytes.
    kept: usize,
    replaced: VecDeque<Replaced>,
    /// Size of `replaced` in bytes.
    replaced_size: usize,
}

/// A method's code, or an address without code.
#[derive(Debug, Clone)]
pub(super) struct CodeAt {
    start: u64,
    end: u64,
    /// None: there is no code.
    pub(super) method: Option<Rc<CompiledMethod>>,
    /// When the process had it. None: it stays as long as its mapping.
    pub(super) seen: Option<Seen>,
}

/// Identifies the memory that is mapped as a JIT's code cache, by the address at which the whole of it would start. This stays the same
/// when the JIT changes the protection of a part, which then becomes a mapping of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CacheMapping(u64);

impl CacheMapping {
    /// The code cache that a mapping is a part of.
    pub(super) fn of(mapped: &ProcessMapping) -> Self {
        Self(mapped.start.wrapping_sub(mapped.pgoff))
    }

    /// A code cache that would start at an address.
    #[cfg(test)]
    pub(super) const fn at(start: u64) -> Self {
        Self(start)
    }
}

/// When code was seen at an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The last batch of samples in which it was looked up.
    pub(super) batch: u64,
    /// The code cache that it is in.
    pub(super) cache: CacheMapping,
    /// The last time at which it was there.
    pub(super) last: MonotonicNs,
    /// It has been there at least since this time.
    pub(super) since: MonotonicNs,
    /// It was there at least until this time.
    pub(super) until: MonotonicNs,
    /// Nothing else takes its place while the JIT has these counters.
    pub(super) counts: Option<JitCounts>,
}

/// Code that was in a place.
#[derive(Debug)]
struct Replaced {
    method: Rc<CompiledMethod>,
    since: MonotonicNs,
    until: MonotonicNs,
}

impl KnownCode {
    /// Forgets code that stays as long as its mapping. The JIT's code is looked up again in each batch anyway.
    pub(super) fn forget_mapped(&mut self) {
        self.codes.retain(|_, code| code.seen.is_some());
        self.kept = self.codes.values().map(CodeAt::size).sum();
    }

    /// Returns what was found at an address.
    pub(super) fn at(&self, address: Address) -> Option<&CodeAt> {
        let (_, known) = self.codes.range(..=address.get()).next_back()?;
        (address.get() < known.end).then_some(known)
    }

    /// Keeps what was found at an address, in place of all that was there. `until`: an upper bound of the time at which the previous code
    /// at this address went away.
    pub(super) fn keep(&mut self, code: CodeAt, until: Option<MonotonicNs>) {
        let before = self.codes.range(..code.end).rev();
        let overlapping = before.take_while(|(_, known)| known.end > code.start);
        let overlapping: Vec<u64> = overlapping.map(|(start, _)| *start).collect();
        for start in overlapping {
            if let Some(gone) = self.codes.remove(&start) {
                self.kept = self.kept.saturating_sub(gone.size());
                if !code.includes(&gone) {
                    self.replace(gone, until);
                }
            }
        }
        let size = code.size();
        self.kept = self.kept.saturating_add(size);
        if self.kept > MAX_KEPT {
            self.codes.clear();
            self.kept = size;
        }
        self.codes.insert(code.start, code);
    }

    fn replace(&mut self, gone: CodeAt, until: Option<MonotonicNs>) {
        let (Some(method), Some(seen)) = (gone.method, gone.seen) else {
            return;
        };
        self.replaced_size = self.replaced_size.saturating_add(method.size());
        while (self.replaced.len() >= MAX_REPLACED || self.replaced_size > MAX_REPLACED_SIZE)
            && let Some(oldest) = self.replaced.pop_front()
        {
            let size = oldest.method.size();
            self.replaced_size = self.replaced_size.saturating_sub(size);
        }
        self.replaced.push_back(Replaced {
            method,
            since: seen.since,
            until: until.unwrap_or(seen.last),
        });
    }

    /// Returns the code that a frame executed at an address at a time, if that code is no longer there. `at_sp`: the word at the frame's
    /// stack pointer, if the frame is of this code and the code stores its method there.
    pub(super) fn replaced(
        &self,
        address: Address,
        time: MonotonicNs,
        at_sp: impl Fn(&CompiledMethod) -> Option<u64>,
    ) -> Option<&Rc<CompiledMethod>> {
        let has_instruction = |code: &&Replaced| code.method.code.contains(&address.get());
        let mut codes = self.replaced.iter().rev().filter(has_instruction);
        let was_executed = |code: &&Replaced| {
            code.since <= time && time <= code.until || code.method.is_stored(at_sp(&code.method))
        };
        codes.find(was_executed).map(|code| &code.method)
    }
}

impl CodeAt {
    /// The result of looking up an address.
    pub(super) fn new(
        address: Address,
        method: Option<Rc<CompiledMethod>>,
        seen: Option<Seen>,
    ) -> Self {
        let address = address.get();
        let code = method.as_ref().map(|method| method.code.clone());
        let code = code.unwrap_or(address..address.saturating_add(1));
        Self {
            start: code.start,
            end: code.end,
            method,
            seen,
        }
    }

    fn size(&self) -> usize {
        let method = self.method.as_ref().map_or(0, |method| method.size());
        size_of::<Self>().saturating_add(method)
    }

    /// Returns true if it covers an earlier result: the same code has been there since then.
    fn includes(&self, earlier: &Self) -> bool {
        let is_same = match (&self.method, &earlier.method) {
            (Some(one), Some(earlier)) => Rc::ptr_eq(one, earlier),
            (None, None) => true,
            _ => false,
        };
        let since = |code: &Self| code.seen.map(|seen| seen.since);
        is_same && since(self) <= since(earlier)
    }

    /// Returns the code, if a frame executed it at a time. `at_sp`: as in [`KnownCode::replaced`].
    pub(super) fn of_frame(
        &self,
        time: MonotonicNs,
        at_sp: impl Fn(&CompiledMethod) -> Option<u64>,
    ) -> Option<&Rc<CompiledMethod>> {
        let method = self.method.as_ref()?;
        let was_there = self
            .seen
            .is_none_or(|seen| seen.since <= time && time <= seen.until);
        (was_there || method.is_stored(at_sp(method))).then_some(method)
    }
}

impl CompiledMethod {
    /// Returns true if the word at a frame's stack pointer is the method of this code. Then the frame is of this code, or of earlier code
    /// of the same method in the same place.
    fn is_stored(&self, at_sp: Option<u64>) -> bool {
        matches!(self.owner, Owner::Pointer(pointer) if at_sp == Some(pointer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::code_format::CodeFormat;
    use crate::art::compiled::method::InfoBytes;
    use crate::art::method_header::MethodHeader;

    /// Code of ART's compiler: tests/fixtures/art11/make.sh.
    const OAT: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.oat");

    /// Code of a method at an address.
    fn code(start: u64, method: u64) -> Rc<CompiledMethod> {
        let oat = crate::art::oat_file::OatFile::parse(OAT).unwrap();
        let header =
            MethodHeader::parse(CodeFormat::Android11, *OAT[0x1178..].first_chunk().unwrap());
        let info = InfoBytes::Oat {
            format: CodeFormat::Android11,
            bytes: OAT.into(),
            offset: 0x1180 - header.unwrap().code_info_distance,
            dex_files: Rc::default(),
        };
        assert!(oat.executable_offset <= 0x1180);
        let bytes = &OAT[0x1180..][..0xf7];
        Rc::new(CompiledMethod::new(start, bytes, Owner::Pointer(method), info).unwrap())
    }

    fn at(method: Option<Rc<CompiledMethod>>, since: u64, last: u64) -> CodeAt {
        let seen = Seen {
            batch: last,
            last: MonotonicNs::new(last),
            since: MonotonicNs::new(since),
            until: MonotonicNs::MAX,
            cache: CacheMapping::default(),
            counts: None,
        };
        CodeAt::new(Address::new(0x1000), method, Some(seen))
    }

    fn of_time(known: &KnownCode, time: u64, at_sp: Option<u64>) -> Option<u64> {
        let (address, time) = (Address::new(0x1010), MonotonicNs::new(time));
        let now = known
            .at(address)
            .and_then(|code| code.of_frame(time, |_| at_sp));
        let code = now.or_else(|| known.replaced(address, time, |_| at_sp))?;
        match code.owner {
            Owner::Pointer(method) => Some(method),
            _ => None,
        }
    }

    #[test]
    fn code_is_that_of_the_time_or_of_the_frame() {
        let mut known = KnownCode::default();
        known.keep(at(Some(code(0x1000, 1)), 10, 20), None);
        known.keep(at(Some(code(0x1000, 2)), 40, 50), None);
        let found = |time| of_time(&known, time, None);
        assert_eq!(
            [5, 10, 20, 30, 40, 60].map(found),
            [None, Some(1), Some(1), None, Some(2), Some(2)]
        );
        // In between the frame tells.
        assert_eq!(of_time(&known, 30, Some(1)), Some(1));
        assert_eq!(of_time(&known, 30, Some(2)), Some(2));
        assert_eq!(of_time(&known, 30, Some(3)), None);
    }

    #[test]
    fn code_in_whose_place_nothing_is_was_there_until_it_was_collected() {
        let mut known = KnownCode::default();
        known.keep(at(Some(code(0x1000, 1)), 10, 20), None);
        let gone = |until| {
            let mut known = KnownCode::default();
            known.keep(at(Some(code(0x1000, 1)), 10, 20), None);
            known.keep(CodeAt::new(Address::new(0x1010), None, None), until);
            of_time(&known, 30, None)
        };
        assert_eq!(gone(None), None);
        assert_eq!(gone(Some(MonotonicNs::new(40))), Some(1));
    }

    #[test]
    fn code_that_was_replaced_is_kept_when_something_is_mapped() {
        let mut known = KnownCode::default();
        let mapped = CodeAt::new(Address::new(0x9000), Some(code(0x9000, 3)), None);
        known.keep(mapped, None);
        known.keep(at(Some(code(0x1000, 1)), 10, 20), None);
        known.keep(at(Some(code(0x1000, 2)), 40, 50), None);
        known.forget_mapped();
        assert_eq!(of_time(&known, 15, None), Some(1));
        assert_eq!(of_time(&known, 45, None), Some(2));
        assert!(known.at(Address::new(0x9000)).is_none());
        assert_eq!(known.kept, known.codes[&0x1000].size());
    }

    #[test]
    fn addresses_without_code_and_rows_of_frames_are_counted() {
        let mut known = KnownCode::default();
        for address in [8, 16] {
            known.keep(CodeAt::new(Address::new(address), None, None), None);
        }
        assert_eq!(known.kept, 2 * size_of::<CodeAt>());
        // Code of an oat file, whose bytes are the file's.
        assert!(code(0x1000, 1).size() > 0);
        for method in 0..2 * MAX_REPLACED as u64 {
            known.keep(at(Some(code(0x1000, method)), 10, 20), None);
        }
        let replaced = known.replaced.iter().map(|code| code.method.size());
        assert_eq!(known.replaced_size, replaced.sum::<usize>());
    }

    #[test]
    fn the_same_code_is_not_replaced_by_itself() {
        let mut known = KnownCode::default();
        let same = code(0x1000, 1);
        known.keep(at(Some(same.clone()), 10, 20), None);
        known.keep(at(Some(same), 10, 30), None);
        assert!(known.replaced.is_empty());
        assert_eq!(known.kept, known.codes[&0x1000].size());
    }

    #[test]
    fn the_same_code_that_may_have_been_away_is_that_of_both_times() {
        let mut known = KnownCode::default();
        let same = code(0x1000, 1);
        known.keep(at(Some(same.clone()), 10, 20), None);
        known.keep(at(Some(same), 40, 50), None);
        let found = |time| of_time(&known, time, None);
        assert_eq!([15, 30, 45].map(found), [Some(1), None, Some(1)]);
    }
}
