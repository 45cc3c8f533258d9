//! Tests with made-up VMs that have the tables of real builds.

mod lies;
mod unknown_code;

use super::error::{JvmError, Result};
use super::flags::Collector;
use super::jvm::{CompressedClassPointers, Jvm};
use super::layout::{BlobCode, DeoptHandlers, EntryPoints, NmethodData};
use super::library::LoadedLibrary;
use super::member::{Member, Offset, Width};
use super::shim_places;
use std::collections::HashSet;
use varid_model::{Address, Machine, Tid};
use varid_testing::hotspot::{BASE, CODE_SIZE, MadeUpJvm, TIDS, UNLOADED_CLASSES};
use varid_tunnel::ByteMemory;

/// Memory is readable or not by pages.
const PAGE: usize = 1 << 12;
const JDK_17: &str = include_str!("../../../tests/fixtures/hotspot/jdk17.tsv");
const JDK_21: &str = include_str!("../../../tests/fixtures/hotspot/jdk21.tsv");
const JDK_25: &str = include_str!("../../../tests/fixtures/hotspot/jdk25.tsv");

/// Describes a VM with this memory, and the rest of the last page.
fn describe(bytes: &[u8]) -> Result<Jvm> {
    describe_on(Machine::X86_64, bytes)
}

fn describe_on(machine: Machine, bytes: &[u8]) -> Result<Jvm> {
    let library = LoadedLibrary::exporting_at(machine, Address::new(BASE));
    let mut pages = bytes.to_vec();
    pages.resize(bytes.len().next_multiple_of(PAGE), 0);
    let memory = ByteMemory {
        start: BASE,
        bytes: &pages,
    };
    let tids = || -> HashSet<Tid> { TIDS.map(Tid::new).into_iter().collect() };
    Jvm::read(&library, &memory, &tids)
}

fn of(tables: &str, major: u32) -> Jvm {
    describe(&MadeUpJvm::new(tables, major).bytes).unwrap()
}

const fn member(offset: u32, width: Width) -> Member {
    let offset = Offset::new(offset);
    Member { offset, width }
}

const fn pointer(offset: u32) -> Member {
    member(offset, Width::Eight)
}

const fn int(offset: u32) -> Member {
    member(offset, Width::Four)
}

#[test]
fn the_layout_of_jdk_17_is_that_of_its_tables() {
    let layout = of(JDK_17, 17).layout;
    let heap = &layout.code_heap;
    let spaces = [heap.memory, heap.segment_map].map(Offset::bytes);
    assert_eq!((spaces, heap.log2_segment_size), ([8, 120], int(256)));
    assert_eq!(
        (heap.space_low, heap.space_high),
        (pointer(16), pointer(24))
    );
    assert_eq!(
        (heap.block_length, heap.block_used.offset),
        (pointer(0), Offset::new(8))
    );
    assert_eq!(heap.block_header, 16);
    let blob = &layout.code_blob;
    assert_eq!(
        (blob.name, blob.size, blob.frame_size),
        (pointer(96), int(12), int(28))
    );
    let (begin, end) = (pointer(32), pointer(40));
    assert_eq!(
        (blob.frame_complete, blob.code),
        (int(20), BlobCode::Pointers { begin, end })
    );
    let nmethod = &layout.nmethod;
    assert_eq!(
        (nmethod.method, nmethod.orig_pc_offset),
        (pointer(112), int(300))
    );
    assert_eq!(
        (nmethod.compile_id, nmethod.comp_level),
        (int(304), int(308))
    );
    assert_eq!(
        (nmethod.state, nmethod.invocation_entry),
        (member(315, Width::One), -1)
    );
    let (entry, verified) = (pointer(216), pointer(224));
    assert_eq!(nmethod.entries, EntryPoints::Pointers { entry, verified });
    let (call, method_handle) = (pointer(128), pointer(136));
    assert_eq!(
        nmethod.deopt_handlers,
        DeoptHandlers::Pointers {
            call,
            method_handle
        }
    );
    let data = NmethodData::InBlob {
        metadata: int(260),
        scopes_data: pointer(120),
        scopes_pcs: int(268),
        scopes_pcs_end: int(272),
    };
    assert_eq!(nmethod.data, data);
    let metadata = &layout.metadata;
    assert_eq!(
        (metadata.const_method, metadata.pool.holder),
        (pointer(8), pointer(24))
    );
    assert_eq!(
        (metadata.constant.pool, metadata.class_name),
        (pointer(8), pointer(24))
    );
    let two = |offset| member(offset, Width::Two);
    let constant = &metadata.constant;
    let indices = [constant.code_size, constant.name, constant.signature];
    assert_eq!((indices, constant.size), ([32, 34, 36].map(two), 48));
    assert_eq!((constant.flags, constant.has_lines), (two(28), 1));
    let thread = &layout.thread;
    assert_eq!(
        (thread.anchor, thread.os_thread),
        (Offset::new(656), pointer(560))
    );
    assert_eq!(thread.thread_id, int(208));
    let list = &layout.thread_list;
    assert_eq!((list.length, list.threads), (int(4), pointer(16)));
    let frame = &layout.frame;
    assert_eq!(
        (
            frame.call_wrapper,
            frame.wrapper_anchor.bytes(),
            frame.sender_sp
        ),
        (-48, 32, -8)
    );
}

#[test]
fn the_layout_of_jdk_21_is_that_of_its_tables() {
    let layout = of(JDK_21, 21).layout;
    let heap = &layout.code_heap;
    let spaces = [heap.memory, heap.segment_map].map(Offset::bytes);
    assert_eq!((spaces, heap.log2_segment_size), ([0, 112], int(248)));
    let blob = &layout.code_blob;
    assert_eq!(
        (blob.name, blob.size, blob.frame_size),
        (pointer(64), int(72), int(88))
    );
    let nmethod = &layout.nmethod;
    assert_eq!(
        (nmethod.compile_id, nmethod.comp_level),
        (int(308), member(328, Width::One))
    );
    let constant = &layout.metadata.constant;
    assert_eq!((constant.size, constant.flags), (56, int(28)));
    assert_eq!(constant.name, member(36, Width::Two));
    let thread = &layout.thread;
    assert_eq!(
        (thread.anchor, thread.os_thread),
        (Offset::new(928), pointer(792))
    );
    assert_eq!(thread.thread_id, int(192));
}

/// It keeps immutable data outside of the code heaps, and offsets instead of pointers.
#[test]
fn the_layout_of_jdk_25_is_that_of_its_tables() {
    let layout = of(JDK_25, 25).layout;
    let heap = &layout.code_heap;
    assert_eq!((heap.block_length, heap.block_header), (int(0), 8));
    let (begin, end) = (int(36), int(40));
    assert_eq!(layout.code_blob.code, BlobCode::Offsets { begin, end });
    assert_eq!(layout.code_blob.frame_complete, member(54, Width::Two));
    let nmethod = &layout.nmethod;
    assert_eq!(nmethod.method, pointer(80));
    let two = |offset| member(offset, Width::Two);
    let (entry, verified) = (two(152), two(154));
    assert_eq!(nmethod.entries, EntryPoints::Offsets { entry, verified });
    let (call, method_handle) = (int(176), int(180));
    assert_eq!(
        nmethod.deopt_handlers,
        DeoptHandlers::Offsets {
            call,
            method_handle
        }
    );
    let data = NmethodData::Apart {
        immutable: pointer(96),
        immutable_size: int(160),
        scopes_pcs: int(196),
        scopes_data: int(200),
        mutable: pointer(16),
        mutable_size: int(48),
        relocation_size: int(28),
    };
    assert_eq!(nmethod.data, data);
    assert_eq!(layout.thread.os_thread, pointer(1016));
}

#[test]
fn a_vm_is_described_by_what_its_tables_lead_to() {
    let made = MadeUpJvm::new(JDK_17, 17);
    let jvm = describe(&made.bytes).unwrap();
    assert_eq!(
        (jvm.version.major, jvm.flags.collector),
        (17, Collector::G1)
    );
    let [heap] = &jvm.code_heaps[..] else {
        panic!("{:?}", jvm.code_heaps)
    };
    let [start, end] = [made.code, made.code + CODE_SIZE].map(Address::new);
    assert_eq!((&heap.reserved, heap.committed_end), (&(start..end), end));
    assert_eq!(heap.log2_segment_size, 7);
    let [iload, exits] = &jvm.interpreter.codelets[..] else {
        panic!("{:?}", jvm.interpreter)
    };
    let at = |offset| start.wrapping_add(offset);
    assert_eq!(
        (&iload.code, iload.bytecode),
        (&(at(0x20)..at(0x60)), Some(21))
    );
    assert_eq!((&exits.code, exits.bytecode), (&(at(0x80)..at(0xe0)), None));
    assert_eq!(exits.description, "error exits");
    let base = Address::new(0x8_0000_0000);
    let pointers = CompressedClassPointers { base, shift: 0 };
    assert_eq!(jvm.class_pointers, Some(pointers));
    assert_eq!(jvm.call_stub_return, at(0x800));
    assert_eq!(
        jvm.to_string(),
        "HotSpot 17.0.1+2-Made-up with G1, compressed class pointers (0x800000000 + (p << 0)), one code heap"
    );
    assert_eq!(jvm.taken["nmethod::_compile_id"], 304);
}

/// Its tables have no constants of frames.
#[test]
fn a_vm_on_arm64_has_its_frames_as_in_its_sources() {
    let lines = JDK_17.lines();
    let exported: Vec<_> = lines.filter(|line| !line.contains("\tframe::")).collect();
    assert!(exported.len() < JDK_17.lines().count());
    let made = MadeUpJvm::new(&exported.join("\n"), 17);
    let jvm = describe_on(Machine::Aarch64, &made.bytes).unwrap();
    let frame = &jvm.layout.frame;
    assert_eq!((frame.call_wrapper, frame.sender_sp), (-64, -8));
    assert_eq!(frame.wrapper_anchor.bytes(), 32);
    assert_eq!(jvm.unexported.frame_bcp, -72);
    assert!(describe(&made.bytes).is_err());
    // The kernel's walk knows the frames of x86-64 only.
    assert_eq!(shim_places::of(&jvm), None);
    assert!(shim_places::of(&of(JDK_17, 17)).is_some());
}

#[test]
fn a_version_without_tests_is_said_to_have_none() {
    let shown = of(JDK_21, 20).to_string();
    assert!(shown.contains("; untested: "), "{shown}");
}

#[test]
fn what_is_missing_is_named() {
    let gone = [
        "\tCodeHeap\t_segmap\t",
        "\tKlass\t_name\t",
        "type\tPcDesc\t",
    ];
    let lines = JDK_17.lines();
    let kept = lines.filter(|line| !gone.iter().any(|gone| line.contains(gone)));
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len() + gone.len(), JDK_17.lines().count());
    let made = MadeUpJvm::with_other_tables(JDK_17, 17, &kept.join("\n"));
    let refused = describe(&made.bytes).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "HotSpot 17.0.1+2-Made-up does not export CodeHeap::_segmap, the type PcDesc, Klass::_name"
    );
}

#[test]
fn a_vm_that_is_starting_is_not_refused() {
    let made = MadeUpJvm::new(JDK_17, 17);
    for pointer in [
        MadeUpJvm::exported(0),
        MadeUpJvm::exported(1),
        MadeUpJvm::exported(3),
        made.field("Abstract_VM_Version::_s_vm_release"),
        made.field("JVMFlag::flags"),
        made.field("CodeCache::_heaps"),
        made.field("AbstractInterpreter::_code"),
        made.field("StubRoutines::_call_stub_return_address"),
        made.field("ThreadsSMRSupport::_java_thread_list"),
    ] {
        let mut starting = made.clone();
        starting.put(pointer, 0, 8);
        let found = describe(&starting.bytes);
        assert!(matches!(found, Err(JvmError::NotStarted(_))), "{found:?}");
    }
}

#[test]
fn a_vm_counts_the_classes_that_it_unloads() {
    for (tables, major) in [(JDK_17, 17), (JDK_21, 21), (JDK_25, 25)] {
        let made = MadeUpJvm::new(tables, major);
        let found = describe(&made.bytes).unwrap().unloaded_classes.unwrap();
        assert_eq!(found.described, UNLOADED_CLASSES);
        assert_eq!(made.word(found.counter.get()), UNLOADED_CLASSES);
    }
}
