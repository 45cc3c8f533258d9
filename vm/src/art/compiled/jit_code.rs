//! What has the JIT of a process made of a method?

use super::jit_history::{JitCounts, JitHistory};
use super::jit_maps::JitMaps;
use super::known_code::{CodeAt, Seen};
use super::method::{CompiledMethod, InfoBytes, Owner};
use crate::art::code_format::CodeFormat;
use crate::art::code_info::{CodeInfo, CodeInfoError};
use crate::art::method_header::MethodHeader;
use nix::time::{ClockId, clock_gettime};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, Machine, MonotonicNs};
use varid_tunnel::abi::Rule;
use varid_tunnel::{Memory, TunnelError};

/// Bytes of a method's code, and of what the compiler noted down of it, that are read.
const MAX_SIZE: u64 = 1 << 22;

/// The JIT of a process.
#[derive(Debug)]
pub(super) struct JitCode {
    rule: Rule,
    format: CodeFormat,
    history: RefCell<JitHistory>,
    /// Where stubs start, as it was read in this batch of samples.
    stubs: OnceCell<BTreeSet<u64>>,
}

impl JitCode {
    /// That of a VM whose compiled frames follow this rule.
    pub(super) fn new(rule: Rule, format: CodeFormat) -> Self {
        Self {
            rule,
            format,
            history: RefCell::default(),
            stubs: OnceCell::new(),
        }
    }

    /// The next samples are of a later time: those that come are of code that is there from now on, if none is collected meanwhile.
    pub(super) fn begin_batch(&mut self, memory: &dyn Memory) {
        self.stubs.take();
        let observed = JitMaps::of(memory, &self.rule).and_then(|maps| self.observe(&maps, memory));
        if let Err(error) = observed {
            // It has ended, most likely; what was seen of it stays.
            tracing::debug!(%error, "code of a JIT");
        }
    }

    /// Whether code is compiled or collected at present: what is to be known of it has to be read soon.
    pub(super) fn is_changing(&self) -> bool {
        self.history.borrow().is_changing()
    }

    /// What the process has at an address in a batch of samples, and until when, at most, it had what it had there before. `before`: what it
    /// had when it was last looked at.
    pub(super) fn code_at(
        &self,
        memory: &dyn Memory,
        address: Address,
        batch: u64,
        before: Option<CodeAt>,
    ) -> (CodeAt, Option<MonotonicNs>) {
        let (before, seen) = before.map_or((None, None), |code| (code.method, code.seen));
        // Before it is read: it may be replaced right behind that.
        let now = now();
        let Ok((method, since)) = self.method_at(memory, address.get(), before.as_ref()) else {
            // A process that has ended tells nothing of what it had. While it collected code, this may have been replaced.
            let is_collecting = self.history.borrow().is_collecting();
            let seen = seen.map(|seen| Seen {
                batch,
                until: match is_collecting {
                    true => seen.last,
                    false => seen.until,
                },
                ..seen
            });
            let seen = seen.unwrap_or(Seen::at(now, batch, now));
            return (CodeAt::new(address, before, Some(seen)), None);
        };
        let history = self.history.borrow();
        let collections = seen.and_then(|seen| history.collections_since(seen.last));
        let is_same = match (&before, &method) {
            (Some(before), Some(method)) => Rc::ptr_eq(before, method),
            _ => false,
        };
        // One collection makes room for other code, a second one for the same again.
        let stayed = |seen: &Seen| {
            is_same && (since <= seen.last || collections.is_some_and(|number| number <= 1))
        };
        let stayed = seen.filter(stayed);
        let since = stayed.map_or(since, |seen| seen.since.min(since));
        // Two pieces of code that are gone would have been collected at different times.
        let until = seen.filter(|_| method.is_none() && collections == Some(1));
        let new = Seen::at(now, batch, since);
        (CodeAt::new(address, method, Some(new)), until.map(|_| now))
    }

    /// What the JIT has compiled the code at an address from, and since when at least it has been there. `before`: what it was when the
    /// process was last asked.
    ///
    /// # Errors
    ///
    /// The process's memory cannot be read.
    fn method_at(
        &self,
        memory: &dyn Memory,
        address: u64,
        before: Option<&Rc<CompiledMethod>>,
    ) -> Result<(Option<Rc<CompiledMethod>>, MonotonicNs), TunnelError> {
        /// How often the map is read in which an address is not found: the JIT may be changing it.
        const TRIES: usize = 3;
        let maps = JitMaps::of(memory, &self.rule)?;
        let mut method = None;
        for _ in 0..TRIES {
            method = self.read_method(&maps, memory, address, before)?;
            if method.is_some() {
                break;
            }
        }
        // After the code was read: what is collected meanwhile is counted.
        let since = match self.observe(&maps, memory)? {
            true => self.history.borrow().unchanged_since(),
            // A VM that counts nothing collects nothing, as far as is known.
            false => MonotonicNs::ZERO,
        };
        Ok((method, since))
    }

    fn read_method(
        &self,
        maps: &JitMaps<'_>,
        memory: &dyn Memory,
        address: u64,
        before: Option<&Rc<CompiledMethod>>,
    ) -> Result<Option<Rc<CompiledMethod>>, TunnelError> {
        let read =
            |start, owner| read_jit_method(memory, self.format, (start, address), owner, before);
        if let Some((start, method)) = maps.method_before(address)?
            && let Some(method) = read(start, Owner::Pointer(method))
        {
            return Ok(Some(method));
        }
        let stubs = match self.stubs.get() {
            Some(stubs) => stubs,
            None => {
                let stubs = maps.stubs()?;
                self.stubs.get_or_init(|| stubs)
            }
        };
        let stub = stubs.range(..=address).next_back();
        Ok(stub.and_then(|start| read(*start, Owner::Stub)))
    }

    /// Notes what the code cache has counted up to now; false: it counts nothing.
    fn observe(&self, maps: &JitMaps<'_>, memory: &dyn Memory) -> Result<bool, TunnelError> {
        let Some(at) = maps.counts else {
            return Ok(false);
        };
        let counts = JitCounts::read(memory, self.format, at)?;
        self.history.borrow_mut().observe(now(), counts);
        Ok(true)
    }
}

impl Seen {
    /// What was seen in a batch at a time.
    fn at(time: MonotonicNs, batch: u64, since: MonotonicNs) -> Self {
        Self {
            batch,
            last: time,
            since,
            // The batch's samples were taken before.
            until: MonotonicNs::MAX,
        }
    }
}

/// The time now, of the clock of every sample.
fn now() -> MonotonicNs {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let now = now.unwrap_or_default().as_nanos();
    MonotonicNs::new(u64::try_from(now).unwrap_or(u64::MAX))
}

/// Copies the code that starts at an address and what the compiler noted down of it from the process; None: it does not reach as far as
/// `inside`. `before`: what was there when the process was last asked.
fn read_jit_method(
    memory: &dyn Memory,
    format: CodeFormat,
    (start, inside): (u64, u64),
    owner: Owner,
    before: Option<&Rc<CompiledMethod>>,
) -> Option<Rc<CompiledMethod>> {
    let mut header = [0; MethodHeader::SIZE as usize];
    let at = start.checked_sub(MethodHeader::SIZE.into())?;
    memory.read(at, &mut header).ok()?;
    let header = MethodHeader::parse(format, header).ok()?;
    let info = start.checked_sub(header.code_info_distance.into())?;
    let read_info = || read_code_info(memory, format, info);
    // Where the header has the size, the CodeInfo of code that ends before `inside` need not be read.
    let (size, info) = match header.code_size {
        Some(size) => (size, None),
        None => {
            let (size, info) = read_info()?;
            (size?, Some(info))
        }
    };
    let size = u64::from(size);
    if inside.checked_sub(start)? >= size || size > MAX_SIZE {
        return None;
    }
    let mut code = vec![0; usize::try_from(size).ok()?];
    memory.read(start, &mut code).ok()?;
    let info = match info {
        Some(info) => info,
        None => read_info()?.1,
    };
    let info = InfoBytes::Own(format, info);
    if let Some(before) = before.filter(|before| before.is(start, &code, &owner, &info)) {
        return Some(before.clone());
    }
    CompiledMethod::new(start, &code, owner, info)
        .inspect_err(|error| tracing::debug!(%error, "compiled code"))
        .map(Rc::new)
        .ok()
}

/// Copies what the compiler noted down, which says how long it is as it is read; and the size of the code, if that is noted down there.
fn read_code_info(
    memory: &dyn Memory,
    format: CodeFormat,
    address: u64,
) -> Option<(Option<u32>, Vec<u8>)> {
    const FIRST: u64 = 256;
    let mut wanted = FIRST;
    loop {
        let mut bytes = vec![0; usize::try_from(wanted).ok()?];
        memory.read(address, &mut bytes).ok()?;
        match CodeInfo::parse(format, Machine::NATIVE, &bytes) {
            Ok(info) => {
                let (size, code_size) = (usize::try_from(info.size).ok()?, info.code_size);
                bytes.truncate(size);
                return Some((code_size, bytes));
            }
            Err(CodeInfoError::CutShort { needed }) if needed > wanted && needed <= MAX_SIZE => {
                // It may change as it is read: each time much more is.
                wanted = needed.max(wanted.saturating_mul(2));
            }
            Err(error) => {
                tracing::debug!(%error, address, "compiled code");
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::BTreeMap;

    /// Code of ART's compiler, with headers and what the compiler noted down: tests/fixtures/art11/make.sh.
    const OAT: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.oat");
    const BASE: u64 = 0x10_0000;
    const CODE: u64 = BASE + 0x1180;
    const METHOD: u64 = 0x5000;

    /// A process with code, the JIT's map of it, and what the code cache counts.
    struct Process {
        words: BTreeMap<u64, u64>,
        counts: Cell<[u64; 2]>,
        /// The map has no node at the first reads.
        changing: Cell<u32>,
        /// When the map was first read.
        read: Cell<Option<MonotonicNs>>,
        /// The process ends before it tells its counts.
        ends: bool,
        reads_of_stubs: Cell<u32>,
    }

    impl Process {
        fn new() -> Self {
            let node = [0, 0, 0, 0, CODE, METHOD, 0];
            let mut words = BTreeMap::from([(0x100, 0x200), (0x218, 0x300), (0x320, 0)]);
            words.extend((0x1000..).step_by(8).zip(node));
            Self {
                words,
                counts: Cell::new([1, 1]),
                changing: Cell::new(0),
                read: Cell::new(None),
                ends: false,
                reads_of_stubs: Cell::new(0),
            }
        }
    }

    impl Memory for Process {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
            let [compiled, collected] = self.counts.get();
            if address == 0x350 && self.read.get().is_none() {
                self.read.set(Some(now()));
            }
            let word = match address {
                0x320 => {
                    self.reads_of_stubs.set(self.reads_of_stubs.get() + 1);
                    0
                }
                0x398 if self.ends => {
                    let reason = "it has ended".to_owned();
                    let len = out.len();
                    return Err(TunnelError::Read {
                        address,
                        len,
                        reason,
                    });
                }
                0x350 if self.changing.get() > 0 => {
                    self.changing.set(self.changing.get() - 1);
                    0
                }
                0x350 => 0x1000,
                0x380 => 0,
                0x398 => compiled,
                0x3a8 => collected,
                BASE.. => {
                    let start = (address - BASE) as usize;
                    out.fill(0);
                    let there = OAT.get(start..).unwrap_or_default();
                    let length = there.len().min(out.len());
                    out[..length].copy_from_slice(&there[..length]);
                    return Ok(());
                }
                _ => {
                    for (at, bytes) in (address..).step_by(8).zip(out.chunks_mut(8)) {
                        let word = self.words[&at].to_le_bytes();
                        bytes.copy_from_slice(&word[..bytes.len()]);
                    }
                    return Ok(());
                }
            };
            out.copy_from_slice(&u64::to_le_bytes(word)[..out.len()]);
            Ok(())
        }
    }

    fn jit() -> JitCode {
        JitCode::new(
            Rule {
                kind: varid_tunnel::abi::RULE_SIZED,
                special_methods: 0x100,
                code_cache: 0x18,
                code_cache_map: 0x40,
                code_cache_counts: 0x80,
                ..Rule::default()
            },
            CodeFormat::Android11,
        )
    }

    #[test]
    fn code_that_is_there_twice_is_copied_once() {
        let (process, jit) = (Process::new(), jit());
        let (first, _) = jit.method_at(&process, CODE + 3, None).unwrap();
        let first = first.unwrap();
        assert_eq!(first.code, CODE..CODE + 0xf7);
        assert_eq!(first.owner, Owner::Pointer(METHOD));
        let (second, _) = jit.method_at(&process, CODE, Some(&first)).unwrap();
        assert!(Rc::ptr_eq(&first, &second.unwrap()));
        let (behind, _) = jit.method_at(&process, CODE + 0xf7, Some(&first)).unwrap();
        assert!(behind.is_none());
    }

    #[test]
    fn a_map_that_is_being_changed_is_read_once_more() {
        let (process, jit) = (Process::new(), jit());
        process.changing.set(2);
        let (found, _) = jit.method_at(&process, CODE, None).unwrap();
        assert!(found.is_some());
    }

    #[test]
    fn stubs_are_read_once_in_a_batch() {
        let (process, mut jit) = (Process::new(), jit());
        for address in [1, 2, 3] {
            jit.method_at(&process, address, None).unwrap();
        }
        assert_eq!(process.reads_of_stubs.get(), 1);
        jit.begin_batch(&process);
        jit.method_at(&process, 1, None).unwrap();
        assert_eq!(process.reads_of_stubs.get(), 2);
    }

    #[test]
    fn code_is_there_since_code_was_last_replaced() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        let observed = now();
        let since = |jit: &JitCode| jit.method_at(&process, CODE, None).unwrap().1;
        assert!(since(&jit) <= observed);
        process.counts.set([2, 1]);
        assert!(since(&jit) <= observed, "nothing was collected");
        process.counts.set([3, 2]);
        assert!(since(&jit) > observed);
        let history = jit.history.borrow();
        assert_eq!(history.collections_since(observed), Some(1));
        assert!(history.is_collecting());
    }

    /// What is there in a batch, after what was there before.
    fn code_at(process: &Process, jit: &JitCode, before: Option<&CodeAt>) -> CodeAt {
        let address = Address::new(CODE);
        jit.code_at(process, address, 1, before.cloned()).0
    }

    #[test]
    fn code_was_last_there_before_it_was_read() {
        let (process, jit) = (Process::new(), jit());
        let seen = code_at(&process, &jit, None).seen.unwrap();
        assert!(seen.last <= process.read.get().unwrap());
    }

    #[test]
    fn the_same_code_may_have_been_away_between_two_collections() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        let first = code_at(&process, &jit, None);
        let since = |counts| {
            process.counts.set(counts);
            let second = code_at(&process, &jit, Some(&first));
            assert!(Rc::ptr_eq(
                first.method.as_ref().unwrap(),
                second.method.as_ref().unwrap()
            ));
            second.seen.unwrap().since
        };
        let seen = first.seen.unwrap();
        assert_eq!(since([3, 2]), seen.since);
        assert!(since([4, 3]) > seen.last);
    }

    #[test]
    fn a_process_that_ends_before_it_tells_its_counts_has_no_new_code() {
        let (mut process, jit) = (Process::new(), jit());
        process.ends = true;
        assert!(code_at(&process, &jit, None).method.is_none());
    }
}
