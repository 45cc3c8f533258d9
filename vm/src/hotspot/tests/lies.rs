//! Tests that tables and structures with wrong contents are refused, and that reading them ends.

use super::{JDK_17, JDK_25, PAGE, describe};
use crate::hotspot::error::JvmError;
use proptest::prelude::*;
use varid_testing::hotspot::{BASE, MadeUpJvm};

/// Returns why a VM is refused after a change.
fn refused(change: impl FnOnce(&mut MadeUpJvm)) -> String {
    let mut made = MadeUpJvm::new(JDK_17, 17);
    change(&mut made);
    match describe(&made.bytes) {
        Ok(jvm) => panic!("{jvm}"),
        Err(error) => error.to_string(),
    }
}

/// Returns why a VM is refused that exports these tables instead of its own.
fn refused_with(tables: &str) -> String {
    let made = MadeUpJvm::with_other_tables(JDK_17, 17, tables);
    describe(&made.bytes).unwrap_err().to_string()
}

#[test]
fn a_table_whose_entries_have_no_such_size_is_refused() {
    for (stride, offset) in [(7, 0), (4096, 0), (48, 45), (48, u64::MAX)] {
        let why = refused(|made| {
            made.put(MadeUpJvm::exported(1), stride, 8);
            made.put(MadeUpJvm::exported(3), offset, 8);
        });
        assert!(why.starts_with("gHotSpotVMStructEntry"), "{why}");
    }
}

#[test]
fn a_table_without_an_end_is_left() {
    let why = refused(|made| {
        let name = made.string("a name");
        let table = made.add(1 << 17);
        for at in (table..table + (1 << 17)).step_by(8) {
            made.put(at, name, 8);
        }
        // Entries of eight bytes, whose name is a part of their size.
        for (place, word) in (8..).zip([table, 8, 0, 4]) {
            made.put(MadeUpJvm::exported(place), word, 8);
        }
    });
    assert_eq!(why, "gHotSpotVMTypes does not end within 8192 entries");
}

#[test]
fn a_name_without_an_end_is_left() {
    let why = refused(|made| {
        let name = made.add(1 << 12);
        for at in (name..name + (1 << 12)).step_by(8) {
            made.put(at, u64::from_le_bytes(*b"nonsense"), 8);
        }
        let table = made.word(MadeUpJvm::exported(0));
        made.put(table, name, 8);
    });
    assert!(why.contains("does not end within 512 bytes"), "{why}");
}

#[test]
fn pointers_that_lead_nowhere_are_errors_of_what_was_read() {
    for place in [0, 8, 12, 16] {
        let why = refused(|made| made.put(MadeUpJvm::exported(place), 0xdead_0000, 8));
        assert!(why.starts_with("gHotSpotVM"), "{why}");
        assert!(why.contains("cannot read"), "{why}");
    }
    for name in ["CodeCache::_heaps", "AbstractInterpreter::_code"] {
        let why = refused(|made| made.put(made.field(name), u64::MAX - 3, 8));
        assert!(
            why.starts_with(name) && why.contains("cannot read"),
            "{why}"
        );
    }
}

#[test]
fn a_field_outside_of_its_structure_is_refused() {
    for (offset, why) in [
        ("344", "it is outside of its structure"),
        ("99999999999", "it is outside of its structure"),
        ("253", "its offset is not aligned"),
    ] {
        let line = "field\tCodeHeap\t_log2_segment_size\tint\t";
        let tables = JDK_17.replace(&format!("{line}256"), &format!("{line}{offset}"));
        let found = refused_with(&tables);
        let name = "CodeHeap::_log2_segment_size is ";
        assert!(found.starts_with(name) && found.ends_with(why), "{found}");
    }
}

#[test]
fn a_static_field_is_no_member() {
    let from = "field\tKlass\t_name\tSymbol*\t24";
    let tables = JDK_17.replace(from, "static\tKlass\t_name\tSymbol*");
    let found = refused_with(&tables);
    assert_eq!(found, "Klass::_name is 0x0: it is static");
}

#[test]
fn implausible_values_are_refused_by_name() {
    let heap = |made: &MadeUpJvm| made.word(made.word(made.target("CodeCache::_heaps") + 8));
    let queue = |made: &MadeUpJvm| made.target("AbstractInterpreter::_code");
    type Change<'a> = (&'a str, &'a dyn Fn(&mut MadeUpJvm));
    let changes: [Change<'_>; 12] = [
        ("Abstract_VM_Version::_vm_major_version", &|made| {
            made.put(
                made.field("Abstract_VM_Version::_vm_major_version"),
                4711,
                4,
            )
        }),
        ("JVMFlag::numFlags", &|made| {
            made.put(made.field("JVMFlag::numFlags"), u64::MAX, 8)
        }),
        ("CodeCache::_heaps", &|made| {
            made.put(made.target("CodeCache::_heaps"), u64::MAX, 4)
        }),
        ("CodeHeap::_log2_segment_size", &|made| {
            let member = made.field("CodeHeap::_log2_segment_size");
            made.put(heap(made) + member, 40, 4)
        }),
        ("CodeHeap::_memory", &|made| {
            let space = heap(made) + made.field("CodeHeap::_memory");
            made.put(space + made.field("VirtualSpace::_high_boundary"), 0, 8)
        }),
        ("CodeHeap::_memory", &|made| {
            let space = heap(made) + made.field("CodeHeap::_memory");
            made.put(space + made.field("VirtualSpace::_high"), u64::MAX, 8)
        }),
        ("CodeHeap::_segmap", &|made| {
            let space = heap(made) + made.field("CodeHeap::_segmap");
            let low = made.word(space + made.field("VirtualSpace::_low"));
            made.put(space + made.field("VirtualSpace::_high"), low + 31, 8)
        }),
        ("StubQueue::_queue_end", &|made| {
            made.put(queue(made) + made.field("StubQueue::_queue_end"), 0x2000, 4)
        }),
        ("StubQueue::_number_of_stubs", &|made| {
            let member = made.field("StubQueue::_number_of_stubs");
            made.put(queue(made) + member, 1 << 20, 4)
        }),
        ("InterpreterCodelet::_size", &|made| {
            made.put(made.code + made.field("InterpreterCodelet::_size"), 0, 4)
        }),
        ("StubRoutines::_call_stub_return_address", &|made| {
            made.put(
                made.field("StubRoutines::_call_stub_return_address"),
                BASE,
                8,
            )
        }),
        ("OSThread::_thread_id", &|made| {
            let list = made.target("ThreadsSMRSupport::_java_thread_list");
            let threads = made.word(list + made.field("ThreadsList::_threads"));
            let os_thread = made.word(made.word(threads) + made.field("JavaThread::_osthread"));
            made.put(os_thread + made.field("OSThread::_thread_id"), 13, 4)
        }),
    ];
    for (name, change) in changes {
        let why = refused(change);
        assert!(why.starts_with(&format!("{name} is ")), "{name}: {why}");
    }
}

#[test]
fn a_flag_that_is_missing_is_named() {
    let why = refused(|made| {
        let name = made.string("DebugNonSafepoints");
        let first = (name - BASE) as usize;
        made.bytes[first] = b'X';
    });
    assert!(
        why.ends_with("does not export the flag DebugNonSafepoints"),
        "{why}"
    );
}

#[test]
fn code_heaps_that_overlap_are_refused() {
    let why = refused(|made| {
        let list = made.target("CodeCache::_heaps");
        let data = made.word(list + 8);
        made.put(data + 8, made.word(data), 8);
        made.put(list, 2, 4);
    });
    assert!(why.contains("a code heap overlaps another one"), "{why}");
}

#[test]
fn a_vm_without_a_counter_of_unloaded_classes_is_described() {
    let changes: [fn(&mut MadeUpJvm, u64); 8] = [
        |made, _| made.put(made.field("PerfMemory::_start"), 0, 8),
        // The magic number, the format, and the offset of the first entry.
        |made, start| made.put(start, 0, 4),
        |made, start| made.put(start + 5, 3, 1),
        |made, start| made.put(start + 24, u32::MAX.into(), 4),
        // Fewer entries, and entries of other sizes.
        |made, start| made.put(start + 28, 1, 4),
        |made, start| made.put(start + 64, 0, 4),
        |made, start| made.put(start + 64, u32::MAX.into(), 4),
        // The value is behind the entry.
        |made, start| made.put(start + 128 + 16, 57, 4),
    ];
    for (place, change) in changes.iter().enumerate() {
        let mut made = MadeUpJvm::new(JDK_17, 17);
        let start = made.target("PerfMemory::_start");
        change(&mut made, start);
        let found = describe(&made.bytes).unwrap();
        assert_eq!(found.unloaded_classes, None, "{place}");
        let shown = found.to_string();
        assert!(
            shown.ends_with("; it does not say whether it unloads classes"),
            "{shown}"
        );
    }
}

proptest! {
    /// The process exits while it is read, or its memory is not where it should be.
    #[test]
    fn memory_that_ends_anywhere_is_an_error(pages in any::<prop::sample::Index>()) {
        let made = MadeUpJvm::new(JDK_17, 17);
        let end = pages.index(made.bytes.len() / PAGE + 1) * PAGE;
        let found = describe(made.bytes.get(..end).unwrap_or_default());
        prop_assert!(matches!(found, Err(JvmError::Memory { .. })), "{:?}", found);
    }

    #[test]
    fn any_word_may_be_wrong(at in any::<prop::sample::Index>(), word in any::<u64>(), narrow in any::<bool>()) {
        let mut made = MadeUpJvm::new(JDK_25, 25);
        let words = made.bytes.len() / 8;
        let word = if narrow { word & 0x1f_ffff } else { word };
        made.put(BASE + 8 * at.index(words) as u64, word, 8);
        if let Ok(jvm) = describe(&made.bytes) {
            prop_assert!(jvm.code_heaps.len() < 16 && jvm.interpreter.codelets.len() <= 2);
        }
    }
}
