//! Is what is missing said, where it is missing, and never in the leaf's place?

use super::world::*;
use crate::attribution::chain::Chain;
use crate::attribution::merge::{Inside, Item};
use proptest::prelude::*;
use varid_model::{Address, FrameAddress, Pid, Reason, Stack};
use varid_recording::remap::{self, marker_at};
use varid_shim::flags::*;
use varid_shim::{CapturedSample, ManagedFrame};
use varid_unwind::{NativeFrame, NativeStack, Reached, UnwindError};

#[test]
fn a_leaf_in_no_mapping_stays_and_is_counted() {
    let mut world = World::list();
    let record = world.record(&["nowhere", "native"]);
    let user = world.user(record, 0, &[], Stack::Vertical);
    assert_eq!(user, [NOWHERE, because(Reason::UnknownMapping)]);
}

#[test]
fn bytecode_that_is_in_no_method_is_counted() {
    let mut world = World::list();
    let cases = [
        (NOWHERE, 0, Reason::UnknownMapping),
        (JIT, 0, Reason::UnknownMapping),
        (NOWHERE, IN_KERNEL, Reason::UnknownMapping),
        // In the dex file's header there is no method.
        (DEX + 0x20, 0, Reason::TornFrames),
    ];
    for (pc, mode, reason) in cases {
        let mut record = world.record(&["body", "bridge"]);
        let ip = record.ip.get();
        if mode == IN_KERNEL {
            record.ip = Address::new(0xffff_ffff_8100_0000);
            record.kernel = vec![record.ip];
        }
        let frames = [managed(1, FIRST, pc, OUTERMOST)];
        let user = world.user(record, IN_BODY | mode, &frames, Stack::Vertical);
        assert_eq!(user, [ip, because(reason)], "{pc:#x}, {mode}");
    }
}

#[test]
fn half_a_frame_at_the_end_of_a_record_is_torn_and_those_before_it_stay() {
    let mut world = World::list();
    let mut record = world.record(&["body", "outermost"]);
    record.flags = IN_BODY;
    let pc = world.code[0].start;
    record.regs.set(PC, Some(pc));
    let frames = [managed(1, FIRST, pc, 0), managed(2, FIRST, 4, RELATIVE)];
    record.frames = frames[..].into();
    let whole = addresses(&world.attribute(&record, Stack::Vertical).user);
    assert_eq!(whole, [pc, pc + 4 + 1]);
    let entries = record.frames.packed().to_vec();
    record.frames.set_packed(&entries[..entries.len() - 1]);
    let user = addresses(&world.attribute(&record, Stack::Vertical).user);
    assert_eq!(user, [pc, because(Reason::TornFrames)]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_method_that_cannot_be_read_is_counted() {
    // A process that is there, and one that has ended.
    for (pid, reason) in [
        (Some(std::process::id()), Reason::UnknownMethod),
        (None, Reason::VmGone),
    ] {
        let mut world = World::list();
        world.process.process.pid = pid.map_or(world.process.process.pid, Pid::new);
        let record = world.record(&["native", "bridge", "native", "outermost"]);
        let (native, outermost) = (world.at("native"), world.at("outermost"));
        let user = world.user(record, 0, &[managed(1, UNREADABLE, 0, QUICK)], Stack::Full);
        assert_eq!(user, [native, because(reason), native, outermost]);
    }
}

#[test]
fn a_relative_pc_counts_from_its_method_and_stays_in_it() {
    let mut world = World::list();
    let code = world.code[0].clone();
    let record = world.record(&["interpreter", "bridge"]);
    let ip = record.ip.get();
    let frame = |pc| [managed(1, FIRST, pc, OUTERMOST | RELATIVE)];
    let last = code.end - code.start - 2;
    assert_eq!(
        world.user(record.clone(), IN_BODY, &frame(last), Stack::Vertical),
        [code.end - 2]
    );
    let beyond = world.user(record, IN_BODY, &frame(last + 2), Stack::Vertical);
    assert_eq!(beyond, [ip, because(Reason::TornFrames)]);
}

#[test]
fn an_interpreter_without_frames_says_why() {
    let mut world = World::list();
    let whole = world.record(&["body", "bridge", "outermost"]);
    let ip = whole.ip.get();
    let cut = CapturedSample {
        stack: Vec::new(),
        ..whole.clone()
    };
    for (record, flags, reason) in [
        (&whole, TORN, Reason::TornFrames),
        (&whole, NO_BASE, Reason::TornFrames),
        (&whole, NOT_READY, Reason::VmNotReady),
        (&cut, NO_BASE, Reason::Truncated),
        (&cut, NOT_READY, Reason::VmNotReady),
    ] {
        let user = world.user(record.clone(), flags, &[], Stack::Vertical);
        assert_eq!(user.first(), Some(&ip), "{reason:?}");
        assert_eq!(user.last(), Some(&because(reason)), "{user:x?}");
        assert_eq!(unattributed(&user), Some(reason));
    }
    world.process.vm_problem = Some("its layout failed its check".to_owned());
    let user = world.user(whole, 0, &[], Stack::None);
    assert_eq!(user, [ip, because(Reason::UnknownVm)]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn what_a_starting_vm_has_called_may_lack_its_methods() {
    let mut world = World::starting();
    let (native, vm) = (world.at("native"), world.at("vm_code"));
    let not_ready = because(Reason::VmNotReady);
    // With a kernel's walker, which has no layout yet, and with copies of the stack.
    for flags in [NOT_READY, 0] {
        let called = world.record(&["native", "vm_code", "native", "outermost"]);
        let user = world.user(called, flags, &[], Stack::Vertical);
        let outermost = world.at("outermost");
        assert_eq!(user, [native, vm, native, outermost, not_ready]);
        let beside = world.record(&["native", "outermost"]);
        let user = world.user(beside, flags, &[], Stack::Vertical);
        assert_eq!(user, [native, outermost]);
    }
}

#[test]
fn frames_that_end_early_say_so_at_their_end() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let record = world.record(&["body", "bridge"]);
    for (flags, reason) in [
        (TORN, Reason::TornFrames),
        (FRAMES_TRUNCATED, Reason::Truncated),
    ] {
        let frames = [managed(1, FIRST, pc, 0)];
        let user = world.user(record.clone(), IN_BODY | flags, &frames, Stack::Vertical);
        assert_eq!(user, [pc, because(reason)]);
    }
    // Frames that nobody asked for are not missing.
    let frames = [managed(1, FIRST, pc, 0)];
    assert_eq!(
        world.user(record, IN_BODY | FRAMES_TRUNCATED, &frames, Stack::None),
        [pc]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn native_frames_that_cannot_be_had_are_marked_between_those_that_can() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let frames = [managed(9, FIRST, pc, OUTERMOST)];
    let (native, jit) = (world.at("native"), world.at("jit"));

    let record = world.record(&["native", "jit", "native"]);
    let user = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(user, [native, jit, because(Reason::NoUnwindInfo), pc + 1]);

    let record = world.record(&["native", "nowhere", "native"]);
    let user = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(user, [native, because(Reason::StackUnreadable), pc + 1]);

    let mut record = world.record(&["native", "native", "native"]);
    record.stack.truncate(FRAME as usize);
    let user = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(user, [native, native, because(Reason::Truncated), pc + 1]);
}

#[test]
fn every_way_to_stop_has_its_reason() {
    for (error, reason) in [
        (UnwindError::NoStack, Reason::Truncated),
        (UnwindError::NoInfo(Address::new(1)), Reason::NoUnwindInfo),
        (
            UnwindError::Elsewhere(Address::new(1)),
            Reason::VirtualThread,
        ),
        (
            UnwindError::NoCode(Address::new(1)),
            Reason::StackUnreadable,
        ),
        (
            UnwindError::NotAscending(Address::new(1)),
            Reason::StackUnreadable,
        ),
    ] {
        assert_eq!(error.reason(), reason);
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_pc_that_is_not_in_the_frames_method_is_no_place() {
    let mut world = World::list();
    let (native, quick, outermost) = (world.at("native"), world.at("quick"), world.at("outermost"));
    let code = world.code[0].clone();
    for (method, pc) in [
        (SECOND, Some(code.start)),
        (FIRST, Some(code.end)),
        (NATIVE, Some(code.start)),
        (UNREADABLE, Some(code.start)),
        (FIRST, None),
    ] {
        let mut record = world.record(&["native", "quick", "outermost"]);
        record.regs.set(PC, pc);
        put(&mut record, SP + FRAME, method);
        let user = world.user(record, 0, &[], Stack::Full);
        assert_eq!(
            user,
            [
                native,
                quick,
                because(Reason::UnknownCompiledCode),
                outermost
            ],
            "{method:#x} {pc:x?}"
        );
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn code_that_is_not_known_is_the_one_reason_where_it_cannot_be_left() {
    let mut world = World::list();
    let record = world.record(&["quick", "native"]);
    let (quick, elsewhere) = (world.at("quick"), world.at("native"));
    let frame = NativeFrame {
        address: FrameAddress::Instruction(Address::new(quick)),
        sp: Address::new(SP),
        regs: record.regs,
        reached: Reached::Unwound,
    };
    let native = NativeStack {
        frames: vec![frame],
        ..NativeStack::default()
    };
    let methods = Item::MethodsOf {
        depth: 0,
        inside: Inside::Nothing,
    };
    let missing = Item::Missing(Reason::NoUnwindInfo);
    let unknown = because(Reason::UnknownCompiledCode);
    let no_info = because(Reason::NoUnwindInfo);
    let other = Item::Native(FrameAddress::Instruction(Address::new(elsewhere)));
    for (items, expected) in [
        (vec![methods, Item::Leaf, missing], vec![quick, unknown]),
        (
            vec![methods, other, missing],
            vec![quick, unknown, elsewhere + 1, no_info],
        ),
    ] {
        let mut user = Vec::new();
        let (process, remap) = (&mut world.process, &mut world.remap);
        let mut chain = Chain::new(&record, quick, process, remap, &mut user);
        chain.extend(&items, &record, &native, &[]);
        assert_eq!(addresses(&user), expected);
    }
}

fn any_frame() -> impl Strategy<Value = (u64, u64, u64, u64)> {
    let method = prop::sample::select(vec![FIRST, SECOND, NATIVE, RUNTIME, UNREADABLE]);
    (0u64..12, method, 0u64..40, 0u64..8)
}

fn any_flags() -> impl Strategy<Value = u32> {
    let all = [
        IN_BODY,
        NO_BASE,
        TORN,
        FRAMES_TRUNCATED,
        STACK_TRUNCATED,
        NOT_READY,
        INHERITED,
        NO_WALK,
        LINKED_ONLY,
    ];
    prop::sample::subsequence(all.to_vec(), 0..4)
        .prop_map(|flags| flags.iter().fold(0, |all, flag| all | flag))
}

/// A record that says anything.
#[derive(Debug)]
struct Sample {
    functions: Vec<&'static str>,
    frames: Vec<(u64, u64, u64, u64)>,
    flags: u32,
    registers: (u64, u64),
    words: Vec<(usize, u64)>,
    shadow: bool,
    stack: Stack,
}

prop_compose! {
    fn any_sample(leaves: &'static [&'static str])(
        leaf in prop::sample::select(leaves),
        callers in prop::collection::vec(prop::sample::select([LOOPS, OTHERS].concat()), 0..7),
        frames in prop::collection::vec(any_frame(), 0..6),
        flags in any_flags(),
        registers in (0u64..60, 0u64..600),
        words in prop::collection::vec((0usize..60, prop_oneof![Just(FIRST), 0u64..600, any::<u64>()]), 0..8),
        shadow: bool,
        stack in prop::sample::select(vec![Stack::Vertical, Stack::Full, Stack::None]),
    ) -> Sample {
        let functions = [vec![leaf], callers].concat();
        Sample { functions, frames, flags, registers, words, shadow, stack }
    }
}

const LOOPS: &[&str] = &["body", "interpreter"];
const OTHERS: &[&str] = &[
    "bridge",
    "vm",
    "quick",
    "native",
    "helper",
    "outermost",
    "jit",
    "nowhere",
];

/// A user sample begins with an address that the PMU or a managed frame gave.
fn leaf_is_real(sample: Sample) -> Result<(), TestCaseError> {
    let mut world = if sample.shadow {
        World::shadow()
    } else {
        World::list()
    };
    let code = world.code[0].clone();
    let mut record = world.record(&sample.functions);
    let slots = record.stack.len() / 8;
    for (slot, value) in sample.words.into_iter().filter(|(slot, _)| *slot < slots) {
        put(
            &mut record,
            SP + 8 * slot as u64,
            if value < 600 { SP + value } else { value },
        );
    }
    record.regs.set(PC, Some(code.start + sample.registers.0));
    record
        .regs
        .set(FRAME_REGISTER, Some(SP + sample.registers.1));
    let frames = sample
        .frames
        .into_iter()
        .map(|(n, method, pc, flags)| managed(n, method, code.start + pc, flags));
    let frames: Vec<ManagedFrame> = frames.collect();
    let ip = record.ip.get();
    let user = world.user(record, sample.flags, &frames, sample.stack);
    prop_assert!(!user.is_empty());
    prop_assert_eq!(marker_at(Address::new(user[0])), None);
    prop_assert!(
        user[0] == ip
            || world.process.process.space.at(user[0]).is_some()
            || remap::contains(Address::new(user[0]))
    );
    Ok(())
}

proptest! {
    #[test]
    fn a_native_leaf_is_always_real(sample in any_sample(OTHERS)) {
        leaf_is_real(sample)?;
    }

    #[test]
    fn a_loops_leaf_is_always_real(sample in any_sample(LOOPS)) {
        leaf_is_real(sample)?;
    }
}

#[test]
fn a_loop_that_cannot_be_unwound_keeps_its_leaf() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let frames = [managed(9, FIRST, pc, OUTERMOST)];
    let lost = world.record(&["interpreter", "nowhere"]);
    let cut = CapturedSample {
        stack: Vec::new(),
        ..lost.clone()
    };
    for record in [lost, cut] {
        assert_eq!(
            world.user(record, 0, &frames, Stack::Vertical).first(),
            Some(&pc)
        );
    }
}

#[test]
fn a_loop_without_anybodys_method_is_itself() {
    let mut world = World::list();
    let record = world.record(&["interpreter", "bridge", "outermost"]);
    let ip = record.ip.get();
    let user = world.user(record, 0, &[managed(1, RUNTIME, 0, QUICK)], Stack::None);
    assert_eq!(user.first(), Some(&ip));
}
