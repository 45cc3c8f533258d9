//! Tests with made-up code of VMs that have the tables of real builds.

#[path = "../../tests/made_up.rs"]
#[allow(
    clippy::duplicate_mod,
    dead_code,
    reason = "it is private to the tests of descriptions, which use all of it"
)]
mod made_up;
mod made_up_code;

use super::{
    Bci, BlobKind, CodeBlob, CodeKey, CompileId, CompiledEntry, JavaCode, JavaFrames, MethodError,
    MethodPointer, Precision,
};
use crate::hotspot::code_heaps::CodeHeap;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::known_code::KnownCode;
use crate::hotspot::library::LoadedLibrary;
use made_up::{BASE, MadeUpJvm, TIDS};
use made_up_code::{CODE, CODE_BASE, COMPILE_ID, HEAP_SIZE, LOG2_SEGMENT, MadeUpCode, NMETHOD_END};
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::OnceLock;
use varid_model::{Address, FrameAddress, Layer, Machine, Tid};
use varid_tunnel::ByteMemory;

const JDK_17: &str = include_str!("../../../../tests/fixtures/hotspot/jdk17.tsv");
const JDK_21: &str = include_str!("../../../../tests/fixtures/hotspot/jdk21.tsv");
const JDK_25: &str = include_str!("../../../../tests/fixtures/hotspot/jdk25.tsv");
const VERSIONS: [(&str, u32); 3] = [(JDK_17, 17), (JDK_21, 21), (JDK_25, 25)];

/// A made-up VM, and its code.
struct World {
    code: JavaCode,
    made: MadeUpCode,
}

impl World {
    fn new(tables: &str, major: u32) -> Self {
        let made = MadeUpJvm::new(tables, major);
        let library = LoadedLibrary::exporting_at(Machine::X86_64, Address::new(BASE));
        let mut bytes = made.bytes;
        bytes.resize(bytes.len().next_multiple_of(1 << 12), 0);
        let memory = ByteMemory {
            start: BASE,
            bytes: &bytes,
        };
        let tids = || TIDS.map(Tid::new).into_iter().collect();
        let mut jvm = Jvm::read(&library, &memory, &tids).unwrap();
        let start = Address::new(CODE_BASE);
        jvm.code_heaps = vec![CodeHeap {
            address: start,
            reserved: start..start.wrapping_add(HEAP_SIZE),
            committed_end: start.wrapping_add(HEAP_SIZE),
            segment_map: start,
            log2_segment_size: LOG2_SEGMENT,
        }];
        Self {
            code: JavaCode::new(Rc::new(jvm)),
            made: MadeUpCode::new(tables, major),
        }
    }

    fn memory(bytes: &[u8]) -> ByteMemory<'_> {
        let start = CODE_BASE;
        ByteMemory { start, bytes }
    }

    fn blob(&self, address: u64) -> Result<CodeBlob, MethodError> {
        let memory = Self::memory(&self.made.bytes);
        self.code.blob_at(Address::new(address), &memory)
    }

    fn frames(&mut self, address: FrameAddress) -> Result<JavaFrames, MethodError> {
        let memory = Self::memory(&self.made.bytes);
        self.code
            .compiled(key(&self.made), &memory)?
            .frames_at(address)
    }

    fn interpreted(&mut self, method: u64, bcp: u64) -> Result<super::JavaFrame, MethodError> {
        let memory = Self::memory(&self.made.bytes);
        let method = MethodPointer(Address::new(method));
        let method = self.code.method(method, &memory)?;
        let bci = method.executed_at(Address::new(bcp))?;
        let method = Ok(method);
        Ok(super::JavaFrame { method, bci })
    }

    /// Returns why the compiled method is refused after a change.
    fn refused(change: impl FnOnce(&mut MadeUpCode)) -> String {
        let mut world = Self::new(JDK_17, 17);
        change(&mut world.made);
        world.frames(returns(16)).unwrap_err().to_string()
    }
}

fn key(made: &MadeUpCode) -> CodeKey {
    CodeKey {
        blob: Address::new(made.nmethod),
        compile_id: CompileId(COMPILE_ID),
    }
}

const fn returns(offset: u64) -> FrameAddress {
    FrameAddress::Return(Address::new(CODE + offset))
}

/// Returns the symbols, bytecode indices and lines of frames.
fn shown(frames: &JavaFrames) -> Vec<(String, Option<u16>, Option<u16>)> {
    let frames = frames.frames.iter().map(|frame| {
        let method = frame.method.as_ref().unwrap();
        (method.symbol(), frame.bci.map(Bci::get), frame.line())
    });
    frames.collect()
}

#[test]
fn a_code_address_leads_to_methods_and_lines_in_each_version() {
    for (tables, major) in VERSIONS {
        let mut world = World::new(tables, major);
        let blob = world.blob(CODE + 16).unwrap();
        assert_eq!(
            (blob.kind, blob.name.as_str()),
            (BlobKind::Compiled, "nmethod")
        );
        let memory = World::memory(&world.made.bytes);
        assert_eq!(
            world.code.key_of(&blob, &memory),
            Ok(key(&world.made)),
            "{major}"
        );
        let outer = ("org.example.App.outer".to_owned(), Some(5), Some(21));
        let inner = |bci, line| ("org.example.App$$Lambda.inner".to_owned(), bci, line);
        let found = world.frames(returns(16)).unwrap();
        assert_eq!(found.precision, Precision::Exact);
        assert_eq!(shown(&found), [inner(Some(8), Some(7)), outer.clone()]);
        let found = world.frames(returns(80)).unwrap();
        let entered = [inner(None, None), inner(Some(8), Some(7)), outer];
        assert_eq!(shown(&found), entered);
        let memory = World::memory(&world.made.bytes);
        let code = world.code.compiled(key(&world.made), &memory).unwrap();
        let compiled = &code.compiled;
        assert_eq!(
            (compiled.level, compiled.entry),
            (4, CompiledEntry::Invocation)
        );
        let frame = compiled.frame;
        assert_eq!((frame.words, frame.original_pc), (Some(6), 24));
        assert!(frame.is_deoptimised(Address::new(CODE + 0xf0)));
        assert!(!frame.is_deoptimised(Address::new(CODE)));
    }
}

#[test]
fn a_method_that_is_being_entered_executes_none_of_those_that_it_inlines() {
    let mut world = World::new(JDK_17, 17);
    let mut symbols = |offset| {
        let address = FrameAddress::Instruction(Address::new(CODE + offset));
        shown(&world.frames(address).unwrap()).len()
    };
    assert_eq!([0, 7, 8, 16, 17].map(&mut symbols), [1, 1, 2, 2, 1]);
}

#[test]
fn methods_have_names_flags_and_source_files() {
    let mut world = World::new(JDK_21, 21);
    let memory = World::memory(&world.made.bytes);
    let pointers = [world.made.outer, world.made.inner, world.made.native];
    let [outer, inner, native] = pointers.map(|pointer| {
        let pointer = MethodPointer(Address::new(pointer));
        world.code.method(pointer, &memory).unwrap()
    });
    assert_eq!(
        (outer.signature.as_str(), outer.layer()),
        ("(I)I", Layer::App)
    );
    assert!(outer.access.is_static() && !outer.access.is_native());
    assert_eq!(outer.source_file.as_deref(), Some("App.java"));
    assert!(inner.access.is_synthetic() && inner.class.is_hidden());
    let full = "org.example.App$$Lambda$14/0x0000000800c03000";
    assert_eq!(inner.class.to_string(), full);
    assert_eq!(
        (native.symbol().as_str(), native.layer()),
        ("java.lang.Object.hash", Layer::Framework)
    );
    assert!(native.access.is_native() && native.bytecode.is_empty());
}

#[test]
fn code_that_was_replaced_keeps_its_methods_and_is_never_named_by_its_successor() {
    let mut world = World::new(JDK_17, 17);
    let before = shown(&world.frames(returns(16)).unwrap());
    // Another method is compiled to the same place.
    let other = u64::from(COMPILE_ID) + 1;
    world
        .made
        .put_member(world.made.nmethod, "nmethod::_compile_id", other);
    let (nmethod, native) = (world.made.nmethod, world.made.native);
    let method = "CompiledMethod::_method";
    world.made.put_member(nmethod, method, native);
    assert_eq!(shown(&world.frames(returns(16)).unwrap()), before);
    let mut late = World::new(JDK_17, 17);
    late.made = world.made.clone();
    let replaced = MethodError::Replaced {
        blob: Address::new(late.made.nmethod),
        expected: CompileId(COMPILE_ID),
    };
    assert_eq!(late.frames(returns(16)).unwrap_err(), replaced);
    // It stays so when the number comes back.
    late.made = MadeUpCode::new(JDK_17, 17);
    assert_eq!(late.frames(returns(16)).unwrap_err(), replaced);
}

#[test]
fn code_is_that_which_was_recorded_with_the_sample() {
    let World { code, made } = World::new(JDK_17, 17);
    let known = || KnownCode::new(Rc::new(code.jvm().clone()));
    let at = Address::new(CODE + 16);
    let sampled = key(&made);
    let compile_id = CompileId(COMPILE_ID + 1);
    let next = CodeKey {
        compile_id,
        ..sampled
    };
    let mut later = made.clone();
    later.put_member(later.nmethod, "nmethod::_compile_id", compile_id.0.into());
    let (before, after) = (World::memory(&made.bytes), World::memory(&later.bytes));
    // It was replaced before it was read.
    let mut late = known();
    let replaced = MethodError::Replaced {
        blob: sampled.blob,
        expected: sampled.compile_id,
    };
    let found = late.sampled_at(at, Some(sampled), &after);
    assert_eq!(found.unwrap_err(), replaced);
    late.sampled_at(at, Some(next), &after).unwrap();
    // It was read before it was replaced.
    let mut early = known();
    let first = early.sampled_at(at, Some(sampled), &before).unwrap();
    let successor = early.sampled_at(at, Some(next), &after).unwrap();
    assert!(!Rc::ptr_eq(&first, &successor));
    let again = early.sampled_at(at, Some(sampled), &after).unwrap();
    assert!(Rc::ptr_eq(&first, &again));
    // Nothing was recorded.
    let current = early.sampled_at(at, None, &after).unwrap();
    assert!(Rc::ptr_eq(&successor, &current));
}

#[test]
fn a_method_pointer_that_leads_to_another_method_is_read_again() {
    let mut world = World::new(JDK_17, 17);
    let [outer, native] = [world.made.outer, world.made.native];
    let symbol = |world: &mut World| {
        let memory = World::memory(&world.made.bytes);
        let pointer = MethodPointer(Address::new(outer));
        world.code.method(pointer, &memory).unwrap().symbol()
    };
    assert_eq!(symbol(&mut world), "org.example.App.outer");
    let member = world.made.offset("Method::_constMethod");
    let at = |method: u64| (method + member - CODE_BASE) as usize;
    let other: [u8; 8] = world.made.bytes[at(native)..][..8].try_into().unwrap();
    world.made.put(outer + member, u64::from_le_bytes(other), 8);
    assert_eq!(symbol(&mut world), "java.lang.Object.hash");
}

#[test]
fn a_bytecode_pointer_must_be_in_its_method() {
    let mut world = World::new(JDK_17, 17);
    let (outer, native) = (world.made.outer, world.made.native);
    let memory = World::memory(&world.made.bytes);
    let pointer = MethodPointer(Address::new(outer));
    let bytecode = world
        .code
        .method(pointer, &memory)
        .unwrap()
        .bytecode
        .clone();
    let (start, end) = (bytecode.start.get(), bytecode.end.get());
    for (bcp, bci) in [(start, 0), (start + 5, 5), (end - 1, 15)] {
        let frame = world.interpreted(outer, bcp).unwrap();
        assert_eq!(frame.bci, Some(Bci::new(bci)));
    }
    for bcp in [0, start - 1, end, u64::MAX] {
        let why = world.interpreted(outer, bcp).unwrap_err().to_string();
        assert!(
            why.starts_with("the bytecode pointer of a frame is"),
            "{why}"
        );
    }
    let frame = world.interpreted(native, 0).unwrap();
    assert_eq!((frame.bci, frame.line()), (None, None));
    assert!(world.interpreted(0x10, start).is_err());
}

#[test]
fn an_address_is_in_the_blob_to_which_the_segment_map_leads() {
    let world = World::new(JDK_25, 25);
    let (nmethod, adapter) = (world.made.nmethod, world.made.adapter);
    for address in [nmethod, CODE, CODE + 0xff, NMETHOD_END - 1] {
        let blob = world.blob(address).unwrap();
        assert_eq!(blob.memory.start, Address::new(nmethod));
        assert_eq!(blob.code, Address::new(CODE)..Address::new(CODE + 0x100));
    }
    let address = adapter + 0x90;
    let adapter = world.blob(address).unwrap();
    assert_eq!(adapter.kind, BlobKind::Adapter);
    let shown = adapter.display_name(Address::new(address), world.code.jvm());
    assert_eq!(shown, "I2C/C2I adapters");
    // Free, in a block's header, and in no heap.
    for address in [
        CODE_BASE + 0x80,
        CODE_BASE + 0x1000,
        nmethod - 1,
        CODE_BASE - 1,
        0,
    ] {
        assert_eq!(
            world.blob(address),
            Err(MethodError::NoCode(Address::new(address)))
        );
    }
}

#[test]
fn a_segment_map_that_lies_ends() {
    let mut world = World::new(JDK_17, 17);
    let segment = (CODE - CODE_BASE) >> LOG2_SEGMENT;
    // Back to before the heap.
    world.made.put(CODE_BASE + segment, 0xfe, 1);
    assert!(world.blob(CODE).is_err());
    // To a block that is not used.
    world.made = MadeUpCode::new(JDK_17, 17);
    world
        .made
        .put_member(world.made.nmethod - 16, "HeapBlock::Header::_used", 0);
    assert!(world.blob(CODE).is_err());
    // To one that is smaller.
    world.made = MadeUpCode::new(JDK_17, 17);
    world
        .made
        .put_member(world.made.nmethod, "CodeBlob::_size", 0x290);
    assert_eq!(
        world.blob(CODE + 0x180),
        Err(MethodError::NoCode(Address::new(CODE + 0x180)))
    );
}

#[test]
fn blobs_have_kinds_by_their_names() {
    for (name, kind) in [
        ("nmethod", BlobKind::Compiled),
        ("native nmethod", BlobKind::NativeWrapper),
        ("Interpreter", BlobKind::Interpreter),
        ("vtable chunks", BlobKind::VtableStub),
        ("MethodHandles adapters", BlobKind::MethodHandle),
        ("StubRoutines (2)", BlobKind::StubRoutines),
        ("_new_array_Java", BlobKind::Runtime),
        ("", BlobKind::Runtime),
    ] {
        assert_eq!(BlobKind::of(name), kind);
    }
}

#[test]
fn an_nmethod_that_lies_is_refused_by_name() {
    type Change<'a> = (&'a str, &'a str, u64);
    let changes: [Change<'_>; 9] = [
        ("it has no method", "CompiledMethod::_method", 0),
        ("no code blob has this size", "CodeBlob::_size", u64::MAX),
        (
            "the code of an nmethod is",
            "CodeBlob::_code_begin",
            CODE_BASE,
        ),
        ("the code of an nmethod is", "CodeBlob::_code_end", CODE - 1),
        (
            "it is outside of its memory",
            "nmethod::_metadata_offset",
            u64::MAX,
        ),
        (
            "it is outside of its memory",
            "CompiledMethod::_scopes_data_begin",
            8,
        ),
        (
            "it is outside of its memory",
            "nmethod::_scopes_pcs_offset",
            0x100,
        ),
        (
            "it is outside of its memory",
            "nmethod::_dependencies_offset",
            0x7fff,
        ),
        (
            "is not that of compilation 77 any more",
            "nmethod::_state",
            0xff,
        ),
    ];
    for (expected, member, value) in changes {
        let why = World::refused(|made| made.put_member(made.nmethod, member, value));
        assert!(why.contains(expected), "{member}: {why}");
    }
    let why =
        World::refused(|made| made.put_member(made.nmethod, "nmethod::_metadata_offset", 0x310));
    assert!(why.ends_with("no method is there"), "{why}");
}

#[test]
fn a_method_that_lies_is_an_error_of_its_frame_alone() {
    for (member, value) in [
        ("ConstMethod::_name_index", 5),
        ("ConstMethod::_signature_index", 0),
        ("ConstMethod::_constMethod_size", u64::MAX),
        ("ConstMethod::_constants", 8),
    ] {
        let mut world = World::new(JDK_17, 17);
        let at = world.made.inner + world.made.offset("Method::_constMethod");
        let at = (at - CODE_BASE) as usize;
        let constant = u64::from_le_bytes(world.made.bytes[at..][..8].try_into().unwrap());
        world.made.put_member(constant, member, value);
        let frames = world.frames(returns(16)).unwrap().frames;
        let known = frames.iter().map(|frame| frame.method.is_ok());
        assert_eq!(known.collect::<Vec<_>>(), [false, true], "{member}");
    }
}

/// The made-up memory of the versions with data in the blob and apart from it.
fn worlds() -> &'static [MadeUpCode; 2] {
    static WORLDS: OnceLock<[MadeUpCode; 2]> = OnceLock::new();
    WORLDS.get_or_init(|| [MadeUpCode::new(JDK_17, 17), MadeUpCode::new(JDK_25, 25)])
}

/// Looks at all code and all methods.
fn look_at_all(made: &MadeUpCode, bytes: &[u8], index: usize) {
    thread_local! {
        static VMS: [JavaCode; 2] = [World::new(JDK_17, 17).code, World::new(JDK_25, 25).code];
    }
    let memory = World::memory(bytes);
    VMS.with(|vms| {
        let mut code = JavaCode::new(Rc::new(vms[index].jvm().clone()));
        for address in (CODE_BASE..CODE_BASE + HEAP_SIZE).step_by(64) {
            let _ = code.blob_at(Address::new(address), &memory);
        }
        if let Ok(compiled) = code.compiled(key(made), &memory) {
            for offset in 0..0x100 {
                let _ = compiled.frames_at(returns(offset));
            }
        }
        for method in [made.outer, made.inner, made.native] {
            let _ = code.method(MethodPointer(Address::new(method)), &memory);
        }
    });
}

proptest! {
    #[test]
    fn any_word_may_be_wrong(at in any::<prop::sample::Index>(), word in any::<u64>(), narrow in 0..64_u32, index in 0..2_usize) {
        let made = &worlds()[index];
        let mut bytes = made.bytes.clone();
        let at = 4 * at.index(bytes.len() / 4 - 2);
        bytes[at..at + 8].copy_from_slice(&(word >> narrow).to_le_bytes());
        look_at_all(made, &bytes, index);
    }

    #[test]
    fn memory_may_end_anywhere(end in any::<prop::sample::Index>(), index in 0..2_usize) {
        let made = &worlds()[index];
        look_at_all(made, &made.bytes[..end.index(made.bytes.len())], index);
    }
}
