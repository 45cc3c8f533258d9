//! Is code known by few requests, and never by what was there before or afterwards?

use super::*;
use crate::hotspot::methods::CompileId;
use crate::hotspot::methods::reuse::{CODE_REUSED_SOON_AFTER, REUSED_AFTER, SMALL_CODE_CACHE};
use crate::hotspot::methods::tests::VERSIONS;
use crate::hotspot::methods::tests::World;
use crate::hotspot::unloading::UnloadedClasses;
use std::cell::Cell;
use varid_process::reader::{Batch, BatchAnswer};
use varid_testing::hotspot::{CODE, CODE_BASE, COMPILE_ID, HEAP_SIZE, MadeUpCode};
use varid_tunnel::{ByteMemory, TunnelError};

/// The memory of a process that runs, or has ended.
struct ProcessMemory {
    made: MadeUpCode,
    /// The addresses that are mapped begin at [`CODE_BASE`]. There are none if the process has ended.
    mapped: usize,
    requests: Cell<usize>,
}

impl ProcessMemory {
    fn bytes(&self) -> ByteMemory<'_> {
        ByteMemory {
            start: CODE_BASE,
            bytes: &self.made.bytes[..self.mapped],
        }
    }

    fn count(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Compiles another method to the place of the first one.
    fn replace(&mut self) {
        let (nmethod, native) = (self.made.nmethod, self.made.native);
        let id = u64::from(COMPILE_ID) + 1;
        self.made.put_member(nmethod, "nmethod::_compile_id", id);
        self.made
            .put_member(nmethod, "CompiledMethod::_method", native);
    }

    /// Unloads the classes whose names contain a text, and loads equal ones with another name to their places.
    fn rename(&mut self, from: &str, to: &str) {
        let bytes = &mut self.made.bytes;
        let starts = 0..bytes.len() - from.len();
        for start in starts {
            let name = &mut bytes[start..start + from.len()];
            if name == from.as_bytes() {
                name.copy_from_slice(to.as_bytes());
            }
        }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        self.count();
        self.bytes().read(address, out)
    }
}

impl BatchMemory for ProcessMemory {
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
        self.count();
        self.bytes().read_batch(batch)
    }
}

/// A process whose VM takes long to use memory of code again.
fn world(version: (&str, u32)) -> (KnownCode, ProcessMemory) {
    let (mut known, memory) = small_world(version);
    assert!(std::mem::take(&mut known.reuses_code_soon));
    (known, memory)
}

/// A process whose VM has little room for code.
fn small_world((tables, major): (&str, u32)) -> (KnownCode, ProcessMemory) {
    let World { code, made } = World::new(tables, major);
    let mut jvm = code.jvm().clone();
    // A variable of the VM, which is mapped for as long as the process runs.
    jvm.thread_list = Address::new(CODE_BASE);
    jvm.unloaded_classes = Some(UnloadedClasses {
        counter: Address::new(UNLOADED),
        described: 0,
    });
    let known = KnownCode::with_clock(Rc::new(jvm), now);
    let memory = ProcessMemory {
        mapped: made.bytes.len(),
        made,
        requests: Cell::new(0),
    };
    (known, memory)
}

/// Where the VM counts the classes that it has unloaded: behind the segment map.
const UNLOADED: u64 = CODE_BASE + 0x80;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1 << 40) };
}

/// Returns a later time than before.
fn now() -> MonotonicNs {
    NOW.set(NOW.get() + 1);
    MonotonicNs::new(NOW.get())
}

fn after(time: MonotonicNs, nanoseconds: i64) -> MonotonicNs {
    MonotonicNs::new(time.get().saturating_add_signed(nanoseconds))
}

/// [`REUSED_AFTER`] in nanoseconds.
const LONG: i64 = REUSED_AFTER.as_nanos() as i64;
/// [`CODE_REUSED_SOON_AFTER`] in nanoseconds.
const SOON: i64 = CODE_REUSED_SOON_AFTER.as_nanos() as i64;
const RETURNS: FrameAddress = FrameAddress::Return(Address::new(CODE + 16));

/// Returns the compilation that a sample at a time has executed.
fn compilation(
    known: &mut KnownCode,
    time: MonotonicNs,
    memory: &ProcessMemory,
) -> Result<u32, MethodError> {
    let blob = known.at(RETURNS.lookup(), time, memory)?;
    let compiled = known.compiled(&blob, memory)?;
    Ok(compiled.compiled.compile_id.0)
}

const FIRST: Result<u32, MethodError> = Ok(COMPILE_ID);
const SUCCESSOR: Result<u32, MethodError> = Ok(COMPILE_ID + 1);

fn adapter(memory: &ProcessMemory) -> Address {
    Address::new(memory.made.adapter + 0x90)
}

fn outer(memory: &ProcessMemory) -> MethodPointer {
    MethodPointer(Address::new(memory.made.outer))
}

#[test]
fn code_that_is_still_there_takes_one_request_in_a_turn() {
    for version in VERSIONS {
        let (mut known, memory) = world(version);
        for turn in 0..4 {
            let before = memory.requests.get();
            let words = [RETURNS.recorded(), adapter(&memory), outer(&memory).0];
            for word in words {
                known.expect_word(word.get());
            }
            let blob = known.at(RETURNS.lookup(), now(), &memory).unwrap();
            let compiled = known.compiled(&blob, &memory).unwrap();
            let frames = compiled.frames_at(RETURNS).unwrap().frames;
            let symbols = frames
                .iter()
                .map(|frame| frame.method.as_ref().unwrap().symbol());
            assert!(symbols.eq(["org.example.App$$Lambda.inner", "org.example.App.outer"]));
            let call = FrameAddress::Return(adapter(&memory)).lookup();
            let adapter = known.at(call, now(), &memory).unwrap();
            assert_eq!(adapter.kind(), BlobKind::Adapter);
            let method = known.method(outer(&memory), now(), &memory).unwrap();
            assert_eq!(method.symbol(), "org.example.App.outer");
            let requests = memory.requests.get() - before;
            match turn {
                // The longest chain of structures; the blob's header is read again with its methods.
                0 => assert_eq!(requests, 11),
                _ => assert_eq!(requests, 1),
            }
            known.end_turn();
        }
    }
}

#[test]
fn all_that_is_expected_takes_as_many_requests_as_one_of_it() {
    let requests = |words: &[u64]| {
        let (mut known, memory) = world(VERSIONS[0]);
        for word in words {
            known.expect_word(*word);
        }
        assert_eq!(compilation(&mut known, now(), &memory), FIRST);
        let needed = memory.requests.get();
        for word in words {
            let call = FrameAddress::Return(Address::new(*word)).lookup();
            let _ = known.at(call, now(), &memory);
        }
        assert_eq!(memory.requests.get(), needed);
        needed
    };
    let all = (1..HEAP_SIZE).step_by(4).map(|offset| CODE_BASE + offset);
    assert_eq!(requests(&all.collect::<Vec<_>>()), requests(&[]));
}

#[test]
fn a_sample_is_not_named_by_the_code_that_has_replaced_what_it_executed() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let first = now();
    assert_eq!(compilation(&mut known, first, &memory), FIRST);
    known.end_turn();
    let between = now();
    memory.replace();
    assert!(compilation(&mut known, between, &memory).is_err());
    let after = now();
    assert_eq!(compilation(&mut known, after, &memory), SUCCESSOR);
    known.end_turn();
    assert_eq!(compilation(&mut known, now(), &memory), SUCCESSOR);
    for time in [first, between] {
        assert!(compilation(&mut known, time, &memory).is_err());
    }
}

#[test]
fn the_code_of_an_old_sample_is_not_known_from_what_is_there_now() {
    let (mut known, memory) = world(VERSIONS[0]);
    let time = now();
    assert!(compilation(&mut known, after(time, -LONG), &memory).is_err());
    assert_eq!(compilation(&mut known, after(time, -SOON), &memory), FIRST);
    assert_eq!(compilation(&mut known, time, &memory), FIRST);
}

#[test]
fn code_of_a_small_code_cache_was_soon_other_code() {
    let (mut known, memory) = small_world(VERSIONS[0]);
    let time = now();
    assert!(compilation(&mut known, after(time, -SOON), &memory).is_err());
    assert_eq!(compilation(&mut known, time, &memory), FIRST);
    // Methods stay longer.
    let method = outer(&memory);
    assert!(known.method(method, after(time, -SOON), &memory).is_ok());
    assert!(known.method(method, after(time, -LONG), &memory).is_err());
    let mut jvm = known.java.jvm().clone();
    let heap = &mut jvm.code_heaps[0].reserved;
    heap.end = heap.start.wrapping_add(SMALL_CODE_CACHE);
    assert!(!KnownCode::new(Rc::new(jvm)).reuses_code_soon);
}

#[test]
fn a_vm_that_has_soon_put_other_code_in_place_of_code_does_so_again() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    assert_eq!(compilation(&mut known, now(), &memory), FIRST);
    known.end_turn();
    memory.replace();
    assert!(compilation(&mut known, now(), &memory).is_err());
    assert_eq!(known.code_reused_after(), CODE_REUSED_SOON_AFTER);
}

#[test]
fn the_last_samples_of_a_process_are_of_the_code_that_it_had() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    assert_eq!(compilation(&mut known, now(), &memory), FIRST);
    known.end_turn();
    memory.mapped = 0;
    let seen = known.blobs.values().map(|blob| blob.seen.get()).max();
    let last = after(seen.unwrap(), LONG);
    assert_eq!(compilation(&mut known, last, &memory), FIRST);
    assert!(compilation(&mut known, after(last, 1), &memory).is_err());
    let method = known.method(outer(&memory), now(), &memory).unwrap();
    assert_eq!(method.symbol(), "org.example.App.outer");
    // Of code that was not seen before, nothing is known.
    let requests = memory.requests.get();
    assert!(known.at(adapter(&memory), last, &memory).is_err());
    assert!(known.at(adapter(&memory), last, &memory).is_err());
    assert_eq!(memory.requests.get(), requests + 1);
}

#[test]
fn a_method_in_the_place_of_an_equal_one_has_its_own_names() {
    for version in VERSIONS {
        let (mut known, mut memory) = world(version);
        let mut symbol = |time: MonotonicNs, memory: &ProcessMemory| {
            let method = known.method(outer(memory), time, memory);
            known.end_turn();
            method.map(|method| method.symbol())
        };
        let (first, is) = (now(), |name: &str| Ok(name.to_owned()));
        assert_eq!(symbol(first, &memory), is("org.example.App.outer"));
        let between = now();
        memory.rename("org/example/App", "org/example/New");
        // The one that was there is gone.
        assert!(symbol(between, &memory).is_err());
        assert_eq!(symbol(now(), &memory), is("org.example.New.outer"));
        memory.rename("outer", "other");
        assert!(symbol(first, &memory).is_err());
        assert_eq!(symbol(now(), &memory), is("org.example.New.other"));
    }
}

#[test]
fn a_method_beside_which_something_has_changed_is_the_one_that_it_was() {
    for version in VERSIONS {
        let (mut known, mut memory) = world(version);
        let method = outer(&memory);
        let first = known.method(method, now(), &memory).unwrap();
        known.end_turn();
        // Behind the name, in the bytes that are read with it.
        let before = memory.made.bytes.clone();
        memory.rename("outer\0", "outer\x01");
        assert_ne!(memory.made.bytes, before);
        for _ in 0..2 {
            let requests = memory.requests.get();
            let found = known.method(method, now(), &memory).unwrap();
            assert!(Rc::ptr_eq(&found, &first));
            assert_eq!(memory.requests.get(), requests + 1);
            known.end_turn();
        }
    }
}

#[test]
fn a_method_whose_memory_was_unmapped_is_not_what_it_was() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let method = outer(&memory);
    assert!(known.method(method, now(), &memory).is_ok());
    known.end_turn();
    memory.mapped = method.0.offset_from(Address::new(CODE_BASE)).unwrap() as usize;
    let unmapped = known.method(method, now(), &memory);
    assert!(matches!(unmapped, Err(MethodError::Memory { .. })));
}

#[test]
fn code_that_is_not_installed_yet_is_read_in_the_next_turn() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let nmethod = memory.made.nmethod;
    memory.made.put_member(nmethod, "nmethod::_state", 0xff);
    assert!(compilation(&mut known, now(), &memory).is_err());
    memory.made.put_member(nmethod, "nmethod::_state", 0);
    known.end_turn();
    assert_eq!(compilation(&mut known, now(), &memory), FIRST);
}

#[test]
fn the_bytes_of_code_are_counted_and_what_is_not_used_is_dropped() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    for _ in 0..3 {
        assert!(known.at(adapter(&memory), now(), &memory).is_ok());
        let _ = compilation(&mut known, now(), &memory);
        let sizes = known.blobs.values().map(|blob| blob.size());
        assert_eq!(known.size, sizes.sum::<usize>());
        // The code of the compiled method, and that of the adapter.
        assert!(known.size > 0x100 + 0x70);
        known.end_turn();
        memory.replace();
    }
    known.drop_unused();
    assert_eq!(known.blobs.len(), 2);
    assert_eq!(compilation(&mut known, now(), &memory), SUCCESSOR);
    known.drop_unused();
    let [used] = &known.blobs.values().collect::<Vec<_>>()[..] else {
        panic!("{:?}", known.blobs)
    };
    assert_eq!((used.kind(), known.size), (BlobKind::Compiled, used.size()));
}

/// Returns the compilation at [`RETURNS`] if a sample has recorded that it executed one.
fn sampled(known: &mut KnownCode, id: u32, memory: &ProcessMemory) -> Result<u32, MethodError> {
    let key = CodeKey {
        blob: Address::new(memory.made.nmethod),
        compile_id: CompileId(id),
    };
    let blob = known.sampled_at(RETURNS.lookup(), key, memory)?;
    Ok(blob.key().unwrap().compile_id.0)
}

#[test]
fn code_that_is_recorded_with_a_sample_is_never_taken_for_other_code() {
    for version in [VERSIONS[0], VERSIONS[1]] {
        let (mut known, mut memory) = world(version);
        let (first, next) = (COMPILE_ID, COMPILE_ID + 1);
        let replaced = |expected| {
            Err(MethodError::Replaced {
                blob: Address::new(memory.made.nmethod),
                expected: CompileId(expected),
            })
        };
        let (no_first, no_next) = (replaced(first), replaced(next));
        assert_eq!(sampled(&mut known, next, &memory), no_next);
        assert_eq!(sampled(&mut known, first, &memory), FIRST);
        known.end_turn();
        memory.replace();
        // What was read before is believed without a look.
        assert_eq!(sampled(&mut known, first, &memory), FIRST);
        assert_eq!(sampled(&mut known, next, &memory), SUCCESSOR);
        known.end_turn();
        assert_eq!(sampled(&mut known, first, &memory), no_first);
        assert_eq!(sampled(&mut known, next, &memory), SUCCESSOR);
    }
}

#[test]
fn how_the_vm_changes_its_code_is_what_the_last_turns_have_shown() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let turns = |known: &mut KnownCode, memory: &ProcessMemory| {
        for _ in 0..QUIET_TURNS {
            assert!(compilation(known, now(), memory).is_ok());
            known.end_turn();
        }
    };
    assert_eq!(known.change(), CodeChange::Replaced);
    turns(&mut known, &memory);
    assert_eq!(known.change(), CodeChange::None);
    assert!(known.at(adapter(&memory), now(), &memory).is_ok());
    assert_eq!(known.change(), CodeChange::Added);
    turns(&mut known, &memory);
    memory.replace();
    assert!(compilation(&mut known, now(), &memory).is_err());
    assert_eq!(known.change(), CodeChange::Replaced);
    // Code whose compilation is told with the sample can be read later.
    known.note_walk();
    assert_eq!(known.change(), CodeChange::Added);
}

#[test]
fn a_vm_that_has_unloaded_a_class_is_taken_to_unload_more() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let method = outer(&memory);
    for _ in 0..QUIET_TURNS {
        assert!(known.method(method, now(), &memory).is_ok());
        known.end_turn();
    }
    assert_eq!(known.change(), CodeChange::None);
    memory.rename("org/example/App", "org/example/Old");
    let _ = known.method(method, now(), &memory);
    for _ in 0..QUIET_TURNS {
        known.end_turn();
    }
    assert_eq!(known.change(), CodeChange::Replaced);
}

#[test]
fn a_sample_from_before_an_unloading_is_not_named_by_a_method_that_is_first_seen_afterwards() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let mut is_known = |pointer, time, memory: &ProcessMemory| {
        let found = known.method(MethodPointer(Address::new(pointer)), time, memory);
        known.end_turn();
        found.is_ok()
    };
    let (outer, native) = (memory.made.outer, memory.made.native);
    memory.made.put(UNLOADED, 1, 8);
    let time = now();
    assert!(!is_known(outer, time, &memory));
    let unloaded = now();
    assert!(is_known(outer, unloaded, &memory));
    NOW.set(NOW.get() + 2 * SOON.cast_unsigned());
    assert!(!is_known(native, time, &memory));
    assert!(is_known(native, unloaded, &memory));
}

#[test]
fn a_method_that_an_unloading_has_replaced_is_known_from_then_on() {
    let (mut known, mut memory) = world(VERSIONS[0]);
    let outer = outer(&memory);
    assert!(known.method(outer, now(), &memory).is_ok());
    known.end_turn();
    memory.made.put(UNLOADED, 1, 8);
    // Another method says so.
    let native = MethodPointer(Address::new(memory.made.native));
    assert!(known.method(native, now(), &memory).is_err());
    known.end_turn();
    let unloaded = now();
    memory.rename("org/example/App", "org/example/New");
    let replaced = now();
    assert!(known.method(outer, unloaded, &memory).is_ok());
    assert!(
        known
            .method(outer, after(unloaded, -SOON), &memory)
            .is_err()
    );
    known.end_turn();
    // Nobody has unloaded this one.
    memory.rename("org/example/New", "org/example/App");
    assert!(known.method(outer, replaced, &memory).is_err());
    assert!(known.java.replaces_methods());
}
