//! Which items come of which frames?

use super::*;
use proptest::prelude::*;
use varid_model::{MonotonicNs, Period, Pid, Regs, Tid};
use varid_shim::{FramePc, flags};
use varid_unwind::Reached;

const SP: u64 = 0x7000;
/// Bytes of a native frame.
const SIZE: u64 = 0x40;

/// The VM's own method: it has no place in a callchain.
const RUNTIME: u64 = 0xf0;

/// A native frame, the nth from the leaf.
fn step(n: usize, kind: Option<CodeKind>) -> Step {
    let at = Address::new(0x1000 + 0x10 * n as u64);
    Step {
        address: match n {
            0 => FrameAddress::Instruction(at),
            _ => FrameAddress::Return(at),
        },
        sp: Address::new(SP + SIZE * n as u64),
        kind,
        is_at_sp: kind == Some(CodeKind::NativeFrames),
        reached: Reached::Unwound,
    }
}

fn steps(kinds: &[Option<CodeKind>]) -> Vec<Step> {
    let numbered = kinds.iter().enumerate();
    numbered.map(|(n, kind)| step(n, *kind)).collect()
}

/// A managed frame that lies within the nth native frame from the leaf.
fn frame(n: u64, is_outermost: bool) -> ManagedFrame {
    let pc = FramePc::Absolute(Address::new(0x2000 + n));
    ManagedFrame::new(Address::new(SP + SIZE * n + 8), pc, is_outermost)
}

fn of_method(n: u64, method: u64) -> ManagedFrame {
    let method = Address::new(method);
    let pc = FramePc::Exported { method, pc: method };
    ManagedFrame::new(Address::new(SP + SIZE * n + 8), pc, false)
}

fn record(flags: u32) -> CapturedSample {
    let mut regs = Regs::default();
    regs.set_frame(0x1000, SP, 0);
    CapturedSample {
        time: MonotonicNs::new(1),
        pid: Pid::new(1),
        tid: Tid::new(1),
        cpu: 0,
        flags,
        period: Period::new(1),
        ip: Address::new(0x1000),
        regs,
        frames: Default::default(),
        kernel: Vec::new(),
        stack_addr: Address::new(SP),
        stack: Vec::new(),
        holes: Default::default(),
        interrupted: Default::default(),
        beyond: Default::default(),
        code: Default::default(),
        allocated: None,
    }
}

/// The items of these frames; `flags` are the record's.
fn items(
    steps: &[Step],
    managed: &[ManagedFrame],
    flags: u32,
    stopped: Option<&UnwindError>,
    stack: Stack,
) -> Vec<Item> {
    items_with(steps, managed, None, flags, stopped, stack)
}

/// The same, if the managed frame `unlinked` is not linked to its caller.
fn items_with(
    steps: &[Step],
    managed: &[ManagedFrame],
    unlinked: Option<usize>,
    flags: u32,
    stopped: Option<&UnwindError>,
    stack: Stack,
) -> Vec<Item> {
    let record = record(flags);
    let of = Merging {
        record: &record,
        steps,
        stopped,
        end: None,
        managed,
        unlinked,
        stack,
        native_caller: Some(CodeKind::Bridge),
        has_compiled_code: false,
        is_empty: true,
        wants_leaf: flags & flags::IN_KERNEL == 0,
    };
    let mut items = Vec::new();
    let is_shown = &mut |frame: &ManagedFrame| frame.method() != Some(Address::new(RUNTIME));
    by_address(of, is_shown, &mut items);
    items
}

fn native(n: usize) -> Item {
    Item::Native(step(n, None).address)
}

use CodeKind::{Bridge, Compiled, Interpreter, Loop, NativeFrames, Runtime};
use Item::{Caller, Callers, Leaf, Managed, MethodsOf, Missing, NativeStretch};

#[test]
fn native_frames_and_managed_ones_are_merged_by_address() {
    let (one, two) = (frame(0, false), frame(1, true));
    type Case<'a> = (&'a str, Vec<Option<CodeKind>>, Vec<ManagedFrame>, Vec<Item>);
    let cases: [Case<'_>; 8] = [
        (
            "only native code",
            vec![None, None],
            vec![],
            vec![native(0), native(1), Leaf, Callers(0)],
        ),
        (
            "a loop stands for the frame that it executes",
            vec![Some(Loop), Some(Bridge), None],
            vec![one],
            vec![Managed(0), native(2), Leaf, Callers(1)],
        ),
        (
            "a loop without a frame is all there is",
            vec![Some(Loop), None],
            vec![],
            vec![native(0), native(1), Leaf, Callers(0)],
        ),
        (
            "the VM's code between two frames of a fragment is their call",
            vec![Some(Loop), Some(Runtime), Some(Interpreter), None],
            vec![one, frame(2, true)],
            vec![Managed(0), Managed(1), native(3), Leaf, Callers(2)],
        ),
        (
            "beside native code it is shown",
            vec![Some(Loop), None, Some(Runtime), None],
            vec![one, two],
            vec![
                Managed(0),
                native(1),
                Managed(1),
                native(2),
                native(3),
                Leaf,
                Callers(2),
            ],
        ),
        (
            "compiled code shows its own methods",
            vec![None, Some(Compiled), Some(Compiled), None],
            vec![],
            vec![
                native(0),
                MethodsOf {
                    depth: 1,
                    inside: Inside::Nothing,
                },
                MethodsOf {
                    depth: 2,
                    inside: Inside::Edge,
                },
                native(3),
                Leaf,
                Callers(0),
            ],
        ),
        (
            "the VM's own method is no leaf",
            vec![Some(Loop)],
            vec![of_method(0, RUNTIME), two],
            vec![Managed(0), Managed(1), NativeStretch, Leaf, Callers(2)],
        ),
        (
            "frames beyond the native ones are callers",
            vec![Some(Loop)],
            vec![one, two, frame(2, false)],
            vec![Managed(0), Leaf, Callers(1)],
        ),
    ];
    for (what, kinds, managed, expected) in cases {
        let found = items(&steps(&kinds), &managed, 0, None, Stack::Full);
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn native_frames_that_were_passed_over_are_left_out_with_a_marker() {
    let mut steps = steps(&[None, Some(Compiled), None]);
    steps[1].reached = Reached::Resumed;
    let method = MethodsOf {
        depth: 1,
        inside: Inside::Nothing,
    };
    assert_eq!(
        items(&steps, &[], 0, None, Stack::Vertical),
        [
            native(0),
            NativeStretch,
            method,
            native(2),
            Leaf,
            Callers(0)
        ]
    );
}

#[test]
fn a_stack_that_cannot_be_unwound_says_so_where_frames_may_be_missing() {
    let no_stack = UnwindError::NoStack;
    let all = steps(&[None, Some(Loop)]);
    let managed = [frame(1, false), frame(2, true)];
    let found = |stack, managed: &[ManagedFrame]| items(&all, managed, 0, Some(&no_stack), stack);
    let truncated = Missing(Reason::Truncated);
    assert_eq!(
        found(Stack::Full, &managed),
        [native(0), Leaf, truncated, Callers(0)]
    );
    assert_eq!(
        found(Stack::Vertical, &[]),
        [native(0), native(1), Leaf, Callers(0)]
    );
}

#[test]
fn below_the_kernel_no_frame_is_the_leaf() {
    let managed = [frame(0, false)];
    let found = |flags| items(&[], &managed, flags, None, Stack::Vertical);
    assert_eq!(found(flags::IN_KERNEL), [Leaf, Callers(0)]);
    assert_eq!(found(0), [Managed(0), Leaf, Callers(1)]);
    assert_eq!(
        items(&[], &[], 0, None, Stack::Vertical),
        [Leaf, Callers(0)]
    );
}

/// A new frame is the innermost one before it is linked to its caller's: the callers are missing up to what native code has called.
#[test]
fn callers_of_a_frame_that_is_not_linked_are_said_to_be_missing_once() {
    let torn = Missing(Reason::TornFrames);
    let (leaf, new) = (native(0), frame(1, true));
    let of_method = |depth| MethodsOf {
        depth,
        inside: Inside::Edge,
    };
    let called_by = |callers: &[Option<CodeKind>]| {
        let bridges = [Some(Bridge), Some(Bridge)];
        steps(&[&bridges, callers].concat())
    };
    let nterp = called_by(&[Some(Interpreter), Some(Bridge), Some(NativeFrames)]);
    let switch = called_by(&[Some(Interpreter), Some(Bridge), None, None]);
    let nested = called_by(&[
        Some(Loop),
        Some(Bridge),
        Some(Runtime),
        None,
        Some(Interpreter),
        Some(Bridge),
        Some(NativeFrames),
    ]);
    type Case<'a> = (&'a str, &'a [Step], Vec<ManagedFrame>, Vec<Item>);
    let cases: [Case<'_>; 6] = [
        (
            "nterp has called the interpreter",
            &nterp,
            vec![new],
            vec![leaf, Managed(0), torn, of_method(4), Leaf, Callers(1)],
        ),
        (
            "native code has called the interpreter",
            &switch,
            vec![new, frame(6, true)],
            vec![
                leaf,
                Managed(0),
                torn,
                native(4),
                native(5),
                Leaf,
                Callers(1),
            ],
        ),
        (
            "an interpreter further out lacks its frame, too",
            &nested,
            vec![new, frame(9, true)],
            vec![
                leaf,
                Managed(0),
                torn,
                native(4),
                native(5),
                native(6),
                torn,
                of_method(8),
                Leaf,
                Callers(1),
            ],
        ),
        (
            "unwound to the new frame",
            &nterp[..2],
            vec![new, frame(4, true)],
            vec![leaf, Leaf, Caller(0), torn, Callers(1)],
        ),
        (
            "not unwound",
            &nterp[..1],
            vec![new],
            vec![leaf, Leaf, Caller(0), torn, Callers(1)],
        ),
        (
            "no native frame",
            &[],
            vec![new, frame(4, true)],
            vec![Managed(0), torn, NativeStretch, Leaf, Callers(1)],
        ),
    ];
    for (what, steps, managed, expected) in cases {
        for stack in [Stack::Full, Stack::Vertical] {
            let found = items_with(steps, &managed, Some(0), 0, None, stack);
            assert_eq!(found, expected, "{what}, {stack:?}");
        }
    }
    // Linked, or the first frame of its list.
    for is_outermost in [true, false] {
        let managed = [frame(1, is_outermost), frame(4, true)];
        let found = items(&nterp[..2], &managed, 0, None, Stack::Vertical);
        assert_eq!(found, [leaf, Leaf, Callers(0)]);
    }
}

fn kind() -> impl Strategy<Value = Option<CodeKind>> {
    prop::sample::select(vec![
        None,
        Some(Loop),
        Some(Interpreter),
        Some(Bridge),
        Some(Runtime),
        Some(CodeKind::NativeFrames),
        Some(CodeKind::Traces),
        Some(Compiled),
    ])
}

/// Where a managed frame lies, in eighths of a native frame, and what its pc is like.
fn managed_frame() -> impl Strategy<Value = ManagedFrame> {
    (0u64..80, 0u8..6, any::<bool>()).prop_map(|(at, what, is_outermost)| {
        let method = Address::new(if what == 5 { RUNTIME } else { 0x90 });
        let pc = match what {
            0 | 1 => FramePc::Absolute(Address::new(0x2000 + at)),
            2 => FramePc::Native { method },
            3 => FramePc::Compiled {
                method,
                returns: Address::new(0x1000 + at / 8 * 0x10),
            },
            _ => FramePc::Exported { method, pc: method },
        };
        ManagedFrame::new(Address::new(SP + at * 8), pc, is_outermost)
    })
}

proptest! {
    /// Whatever the frames are: no managed frame is shown twice or out of order, no native one is, and all that are left are callers. Behind
    /// one that is not linked frames are missing.
    #[test]
    fn each_frame_is_shown_once_and_in_order(
        kinds in prop::collection::vec(kind(), 0..10),
        mut managed in prop::collection::vec(managed_frame(), 0..8),
        is_sorted in prop::bool::weighted(0.7),
        flags in prop::sample::select(vec![0, flags::IN_KERNEL, flags::NOT_READY, flags::LINKED_ONLY]),
        stops in any::<bool>(),
        stack in prop::sample::select(vec![Stack::Full, Stack::Vertical, Stack::None]),
        unlinked in prop::option::of(0usize..8),
    ) {
        if is_sorted {
            managed.sort_by_key(ManagedFrame::address);
        }
        let steps = steps(&kinds);
        let stopped = stops.then_some(&UnwindError::NoStack);
        let unlinked = unlinked.filter(|at| *at < managed.len());
        let items = items_with(&steps, &managed, unlinked, flags, stopped, stack);
        let (mut next_managed, mut next_native, mut leaf) = (0, 0, 0);
        // Only notes may be outdated, and only beside methods' own frames frames elsewhere are not believed.
        let nothing_is_dropped = managed.iter().all(|frame| {
            !matches!(frame.pc(), FramePc::Native { .. } | FramePc::Compiled { .. })
        }) && !steps.iter().any(Step::is_method_frame);
        for (at, item) in items.iter().enumerate() {
            match item {
                Managed(index) | Item::Walked(index) | Item::Caller(index) => {
                    prop_assert!(*index >= next_managed && *index < managed.len());
                    prop_assert!(*index == next_managed || !nothing_is_dropped);
                    let next = items.get(at + 1);
                    prop_assert!(unlinked != Some(*index) || next == Some(&Missing(Reason::TornFrames)));
                    next_managed = index + 1;
                }
                Callers(index) => {
                    prop_assert!(*index >= next_managed && at + 1 == items.len());
                    prop_assert!(*index == next_managed || !nothing_is_dropped);
                    prop_assert!(unlinked.is_none_or(|unlinked| unlinked < *index));
                }
                Item::Native(address) => {
                    let depth = steps.iter().position(|step| {
                        step.address.recorded() == address.recorded()
                            || FrameAddress::calling_at(step.address.recorded()) == *address
                    });
                    prop_assert!(depth.is_some_and(|depth| depth >= next_native));
                    next_native = depth.unwrap() + 1;
                }
                MethodsOf { depth, .. } => {
                    prop_assert!(*depth >= next_native && steps[*depth].is_method_frame());
                    next_native = depth + 1;
                }
                Leaf => leaf += 1,
                Item::NativeStretch | Missing(_) => {}
            }
        }
        prop_assert!(matches!(items.last(), Some(Callers(_))));
        prop_assert!(leaf <= 1);
    }
}
