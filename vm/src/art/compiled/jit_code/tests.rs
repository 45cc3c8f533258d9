//! Is code what the process has at the time, and how often is the process asked?

use super::*;
use crate::art::compiled::method::Owner;
use std::cell::Cell;
use std::collections::BTreeMap;
use varid_process::reader::{Batch, BatchAnswer};
use varid_tunnel::Memory;

/// Code of ART's compiler, with headers and what the compiler noted down: tests/fixtures/art11/make.sh.
const OAT: &[u8] = include_bytes!("../../../../tests/fixtures/art11/code.oat");
const BASE: u64 = 0x10_0000;
const CODE: u64 = BASE + 0x1180;
const METHOD: u64 = 0x5000;
const OTHER_METHOD: u64 = 0x5100;

/// A process with code, the JIT's map of it, and what the code cache counts.
struct Process {
    words: BTreeMap<u64, u64>,
    counts: Cell<[u64; 2]>,
    /// Each reading of the counts finds another one.
    compiling: Cell<bool>,
    /// Whose code it is.
    method: Cell<u64>,
    /// The map has no node at the first reads.
    changing: Cell<u32>,
    /// When the map was first read.
    read: Cell<Option<MonotonicNs>>,
    /// The process ends before it tells its counts.
    ends: bool,
    /// Before this request, counted from 1, the code is collected, and the same code of another method comes into its place.
    replaced_before: Cell<Option<u32>>,
    stubs_readable: Cell<bool>,
    reads_of_stubs: Cell<u32>,
    /// Requests that a session would have made, and how many of them have read code.
    requests: Cell<u32>,
    reads_of_code: Cell<u32>,
}

impl Process {
    fn new() -> Self {
        Self {
            words: BTreeMap::from([(0x100, 0x200), (0x218, 0x300)]),
            counts: Cell::new([1, 1]),
            compiling: Cell::new(false),
            method: Cell::new(METHOD),
            changing: Cell::new(0),
            read: Cell::new(None),
            ends: false,
            replaced_before: Cell::new(None),
            stubs_readable: Cell::new(true),
            reads_of_stubs: Cell::new(0),
            requests: Cell::new(0),
            reads_of_code: Cell::new(0),
        }
    }
}

impl BatchMemory for Process {
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
        self.requests.set(self.requests.get() + 1);
        if self.replaced_before.get() == Some(self.requests.get()) {
            self.method.set(OTHER_METHOD);
            self.counts.set(self.counts.get().map(|count| count + 1));
        }
        let reads = self.reads_of_code.get();
        let answer = batch.carry_out(self);
        self.reads_of_code
            .set(self.reads_of_code.get().min(reads + 1));
        answer
    }
}

impl Memory for Process {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let [compiled, collected] = self.counts.get();
        if address == 0x350 && self.read.get().is_none() {
            self.read.set(Some(now()));
        }
        if address == 0x1000 {
            let node = [0, 0, 0, 0, CODE, self.method.get(), 0].map(u64::to_le_bytes);
            out.copy_from_slice(node.as_flattened());
            return Ok(());
        }
        if address == 0x398 && self.compiling.get() {
            self.counts.set([compiled + 1, collected]);
        }
        let word = match address {
            0x320 if !self.stubs_readable.get() => return Err(unreadable(address, out.len())),
            0x320 => {
                self.reads_of_stubs.set(self.reads_of_stubs.get() + 1);
                0
            }
            0x398 if self.ends => return Err(unreadable(address, out.len())),
            0x350 if self.changing.get() > 0 => {
                self.changing.set(self.changing.get() - 1);
                0
            }
            0x350 => 0x1000,
            0x380 => 0,
            0x398 => compiled,
            0x3a8 => collected,
            BASE.. => {
                self.reads_of_code.set(self.reads_of_code.get() + 1);
                let start = (address - BASE) as usize;
                out.fill(0);
                let there = OAT.get(start..).unwrap_or_default();
                let length = there.len().min(out.len());
                out[..length].copy_from_slice(&there[..length]);
                return Ok(());
            }
            _ => {
                for (at, bytes) in (address..).step_by(8).zip(out.chunks_mut(8)) {
                    let word = self.words.get(&at).copied().unwrap_or_default();
                    let word = word.to_le_bytes();
                    bytes.copy_from_slice(&word[..bytes.len()]);
                }
                return Ok(());
            }
        };
        out.copy_from_slice(&u64::to_le_bytes(word)[..out.len()]);
        Ok(())
    }
}

fn unreadable(address: u64, len: usize) -> TunnelError {
    let reason = "it has ended".to_owned();
    TunnelError::Read {
        address,
        len,
        reason,
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

type Method = Option<Rc<CompiledMethod>>;

fn method_at(process: &Process, jit: &JitCode, address: u64, before: &Method) -> Method {
    let found = jit.look_up(process, Address::new(address), before.as_ref(), None);
    found.unwrap().method
}

#[test]
fn code_that_is_there_twice_is_copied_once() {
    let (process, jit) = (Process::new(), jit());
    let first = method_at(&process, &jit, CODE + 3, &None);
    let code = first.as_ref().unwrap();
    assert_eq!(code.code, CODE..CODE + 0xf7);
    assert_eq!(code.owner, Owner::Pointer(METHOD));
    let second = method_at(&process, &jit, CODE, &first).unwrap();
    assert!(Rc::ptr_eq(code, &second));
    assert!(method_at(&process, &jit, CODE + 0xf7, &first).is_none());
}

#[test]
fn a_map_that_is_being_changed_is_read_once_more() {
    let (process, jit) = (Process::new(), jit());
    process.changing.set(2);
    assert!(method_at(&process, &jit, CODE, &None).is_some());
}

#[test]
fn stubs_are_read_when_code_was_compiled() {
    let (process, mut jit) = (Process::new(), jit());
    for address in [1, 2, 3] {
        code_of(&process, &jit, 1, address, None);
    }
    assert_eq!(process.reads_of_stubs.get(), 1);
    jit.begin_batch(&process);
    code_of(&process, &jit, 2, 4, None);
    assert_eq!(process.reads_of_stubs.get(), 1);
    process.counts.set([2, 1]);
    jit.begin_batch(&process);
    code_of(&process, &jit, 3, 4, None);
    assert_eq!(process.reads_of_stubs.get(), 2);
}

#[test]
fn stubs_that_could_not_be_read_are_read_again() {
    let (process, mut jit) = (Process::new(), jit());
    code_of(&process, &jit, 1, 1, None);
    process.stubs_readable.set(false);
    process.counts.set([2, 1]);
    jit.begin_batch(&process);
    code_of(&process, &jit, 2, 1, None);
    assert_eq!(*jit.stubs.borrow(), None, "not: there are none");
    process.stubs_readable.set(true);
    code_of(&process, &jit, 2, 2, None);
    assert_eq!(process.reads_of_stubs.get(), 2);
    assert_eq!(*jit.stubs.borrow(), Some(BTreeSet::new()));
}

#[test]
fn code_is_of_the_method_that_has_all_of_it() {
    let (process, jit) = (Process::new(), jit());
    assert!(method_at(&process, &jit, CODE, &None).is_some());
    let whole = process.requests.get();
    assert!(whole > 1, "{whole}");
    for before in 2..=whole + 1 {
        let (process, jit) = (Process::new(), self::jit());
        process.replaced_before.set(Some(before));
        let found = method_at(&process, &jit, CODE, &None).unwrap();
        let expected = if before > whole { METHOD } else { OTHER_METHOD };
        assert_eq!(found.owner, Owner::Pointer(expected), "before {before}");
    }
}

/// Batches of samples, each with samples of the same code.
fn batches(process: &Process, jit: &mut JitCode, before: &CodeAt, count: u64) -> CodeAt {
    (0..count).fold(before.clone(), |before, batch| {
        jit.begin_batch(process);
        (0..100).fold(before, |before, _| {
            code_of(process, jit, batch + 2, CODE, Some(&before))
        })
    })
}

#[test]
fn a_batch_of_samples_of_known_code_takes_one_request() {
    let (process, mut jit) = (Process::new(), jit());
    let first = code_of(&process, &jit, 1, CODE, None);
    let requests = process.requests.get();
    // The check, one for the code, and one for what the compiler noted down of it.
    assert_eq!(requests, 3);
    let reads = process.reads_of_code.get();
    let same = batches(&process, &mut jit, &first, 50);
    assert_eq!(process.requests.get(), requests + 50);
    assert_eq!(process.reads_of_code.get(), reads, "nothing has changed");
    let (first, same) = (first.method.unwrap(), same.method.unwrap());
    assert!(Rc::ptr_eq(&first, &same));
}

#[test]
fn known_code_is_read_again_with_the_counts_that_have_changed() {
    let (process, mut jit) = (Process::new(), jit());
    let mut code = code_of(&process, &jit, 1, CODE, None);
    batches(&process, &mut jit, &code, 1);
    let (requests, reads) = (process.requests.get(), process.reads_of_code.get());
    for compiled in 2..12 {
        process.counts.set([compiled, 1]);
        code = batches(&process, &mut jit, &code, 1);
    }
    assert_eq!(process.requests.get(), requests + 10);
    assert_eq!(process.reads_of_code.get(), reads + 10);
    // Code of another method is in its place.
    process.counts.set([13, 2]);
    process.method.set(METHOD + 8);
    code = batches(&process, &mut jit, &code, 1);
    assert_eq!(code.method.unwrap().owner, Owner::Pointer(METHOD + 8));
}

#[test]
fn a_batch_without_samples_of_code_takes_one_request() {
    let (process, mut jit) = (Process::new(), jit());
    jit.begin_batch(&process);
    let requests = process.requests.get();
    for _ in 0..10 {
        jit.begin_batch(&process);
    }
    assert_eq!(process.requests.get(), requests + 10);
}

#[test]
fn an_address_without_code_is_looked_up_again_when_the_counts_have_stayed() {
    let (process, mut jit) = (Process::new(), jit());
    jit.begin_batch(&process);
    process.counts.set([2, 1]);
    let address = CODE + 0xf7;
    let mut code = code_of(&process, &jit, 1, address, None);
    let mut requests = Vec::new();
    for batch in 2..5 {
        jit.begin_batch(&process);
        let before = process.requests.get();
        code = code_of(&process, &jit, batch, address, Some(&code));
        requests.push(process.requests.get() - before);
    }
    assert!(code.method.is_none());
    assert_eq!(requests, [2, 1, 1]);
}

#[test]
fn code_that_changes_while_it_is_read_is_read_in_the_next_batch() {
    let (process, mut jit) = (Process::new(), jit());
    let first = code_of(&process, &jit, 1, CODE, None);
    // Each reading of the counts is another one.
    process.counts.set([2, 1]);
    process.compiling.set(true);
    jit.begin_batch(&process);
    let code = code_of(&process, &jit, 2, CODE, Some(&first));
    assert_eq!(code.seen.unwrap().counts, None);
    process.compiling.set(false);
    let reads = process.reads_of_code.get();
    jit.begin_batch(&process);
    let code = code_of(&process, &jit, 3, CODE, Some(&code));
    assert_eq!(process.reads_of_code.get(), reads + 1);
    assert!(code.seen.unwrap().counts.is_some());
}

#[test]
fn code_of_another_cache_is_read_again() {
    let (process, jit) = (Process::new(), jit());
    let first = code_of(&process, &jit, 1, CODE, None);
    let reads = process.reads_of_code.get();
    let place = (Address::new(CODE), CacheMapping::at(BASE));
    jit.code_at(&process, place, 2, Some(first));
    assert!(process.reads_of_code.get() > reads);
}

#[test]
fn code_is_there_since_code_was_last_replaced() {
    let (process, mut jit) = (Process::new(), jit());
    jit.begin_batch(&process);
    let observed = now();
    let since = |jit: &JitCode| {
        jit.look_up(&process, Address::new(CODE), None, None)
            .unwrap()
            .since
    };
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
    code_of(process, jit, 1, CODE, before)
}

fn code_of(
    process: &Process,
    jit: &JitCode,
    batch: u64,
    address: u64,
    before: Option<&CodeAt>,
) -> CodeAt {
    let place = (Address::new(address), CacheMapping::default());
    jit.code_at(process, place, batch, before.cloned()).0
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
    let mut since = |counts| {
        process.counts.set(counts);
        jit.begin_batch(&process);
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
    for address in CODE..CODE + 9 {
        let code = code_of(&process, &jit, 1, address, None);
        assert!(code.method.is_none());
    }
    // It is asked once.
    assert_eq!(process.requests.get(), 1);
}
