//! Finds the managed frames of a sample of ART.

use crate::described::Description;
use crate::described::interpreter_loop::{
    CalledFrames, CopiedFrames, StackCopy, Walked, drop_repeated, exact_pcs, frame_at_sp, registers,
};
use crate::seam::stack_positions::StackPositions;
use crate::seam::{CodeKind, LeafMethod, ManagedStack, Unwound};
use std::borrow::Cow;
use varid_model::{Address, CodeUnits, FrameAddress, Reason};
use varid_process::AddressSpace;
use varid_shim::{CapturedSample, FramePc, ManagedFrame, Step, Walk, flags};
use varid_tunnel::abi::RULE_AT_SP;
use varid_unwind::{NativeFrame, NativeStack};

/// Returns true if the frames of a record come from its copy of the stack, because the shim has walked none.
pub(super) fn are_copied(record: &CapturedSample, walked: &[ManagedFrame]) -> bool {
    is_unwalked(record) || (walked.is_empty() && !record.has(flags::TORN))
}

fn is_unwalked(record: &CapturedSample) -> bool {
    record.has(flags::NO_WALK) || record.has(flags::NOT_READY)
}

/// Returns the frames that the shim walked, or those in the copy of the stack if it could not walk. `called`: the switch interpreter's
/// frames in the copy.
pub(super) fn frames<'r>(
    description: &Description,
    sample: &Unwound<'r>,
    walked: ManagedStack<'r>,
    called: &CalledFrames,
    space: &AddressSpace,
) -> ManagedStack<'r> {
    let record = sample.record;
    let mut found = walked;
    if sample.record.has(flags::INNER)
        && !is_confirmed(description, sample.native, &mut found.frames, space)
    {
        found.torn = true;
    }
    let from_copy = if is_unwalked(record) {
        Some(frames_from_stack_copy(
            description,
            sample,
            &sample.native.frames,
            called,
            space,
        ))
    } else if found.frames.is_empty() && !record.has(flags::TORN) {
        frames_of_unpublished_fragment(description, sample, called, space)
    } else {
        None
    };
    if let Some(CopiedFrames { frames, incomplete }) = from_copy {
        (found.frames, found.incomplete) = (Cow::Owned(frames), incomplete);
    }
    if description.is_on_native_stack() {
        drop_repeated(&mut found.frames);
    }
    leave_returned_without_pc(&mut found.frames);
    if description.layout.has_rule(RULE_AT_SP) {
        add_unwound(description, sample, &mut found.frames, space);
        found.torn = found.torn && !unwound_all(description, sample);
    }
    exact_pcs(&mut found.frames, description, sample.native, space, |_| {
        true
    });
    if sample.leaf == Some(CodeKind::Interpreter) {
        found.leaf = LeafMethod::Transition;
    }
    found
}

/// The offset of the switch interpreter's frame in its method once the method has returned: `kDexNoIndex` of ART's dex_file_types.h.
const RETURNED: CodeUnits = CodeUnits::new(u32::MAX);

/// Removes the pc of the innermost frame if its method has returned and the frame is still in the list.
fn leave_returned_without_pc(managed: &mut Cow<'_, [ManagedFrame]>) {
    if let Some(FramePc::Relative { method, offset }) = managed.first().map(ManagedFrame::pc)
        && offset == RETURNED
        && let Some(innermost) = managed.to_mut().first_mut()
    {
        let pc = Address::new(0);
        innermost.set_pc(FramePc::Exported { method, pc });
    }
}

/// Returns true if unwinding meets one of the innermost quick frames that the shim has walked. Frames inside the one that it meets are
/// discarded; if it meets none of them, all are. The shim cannot tell each frame that is being made or left, or an outdated note.
fn is_confirmed(
    description: &Description,
    native: &NativeStack,
    managed: &mut Cow<'_, [ManagedFrame]>,
    space: &AddressSpace,
) -> bool {
    let outermost = managed.iter().position(ManagedFrame::is_outermost);
    let size = outermost.map_or(managed.len(), |at| at.saturating_add(1));
    let stretch = managed.get(..size).unwrap_or_default();
    let end = native.end.filter(|_| native.stopped.is_none());
    let is_met = |frame: &ManagedFrame| {
        end == Some(frame.address())
            || native
                .frames
                .iter()
                .any(|native| is_same(description, native, frame, space))
    };
    let met = stretch.iter().position(is_met);
    // The pc of an interpreted frame comes from registers that the frames inside it have saved.
    let is_interpreted = |frame: &ManagedFrame| frame.absolute_pc().is_some();
    let met = met.filter(|passed| *passed == 0 || !stretch.iter().any(is_interpreted));
    match met {
        Some(0) => {}
        Some(passed) => drop(managed.to_mut().drain(..passed)),
        None => managed.to_mut().clear(),
    }
    met.is_some()
}

/// Returns true if a native frame is this quick frame that the shim has walked, at the same call.
fn is_same(
    description: &Description,
    native: &NativeFrame,
    frame: &ManagedFrame,
    space: &AddressSpace,
) -> bool {
    native.sp == frame.address()
        && match frame.pc() {
            FramePc::Compiled { returns, .. } => native.address == FrameAddress::Return(returns),
            FramePc::Absolute(pc) => {
                let found = registers(description, native.lookup().get(), &native.regs, space);
                found == Some((frame.address().get(), pc.get()))
            }
            _ => false,
        }
}

/// Adds the frames of nterp that unwinding has found and the walk has not: while nterp calls a function of the VM directly, the thread's
/// note of its top frame is that of an earlier call. A frame inside one of them to which such a note led has returned, and is removed.
fn add_unwound(
    description: &Description,
    sample: &Unwound<'_>,
    managed: &mut Cow<'_, [ManagedFrame]>,
    space: &AddressSpace,
) {
    let native = &sample.native.frames;
    let sp = native.first().map(|leaf| leaf.sp).unwrap_or_default();
    let mut positions = None; // of the managed frames, as long as none of them is added or taken away
    for (depth, frame) in native.iter().enumerate() {
        let ip = frame.lookup().get();
        if !description.is_at_sp(ip) {
            continue;
        }
        let Some((address, pc)) = registers(description, ip, &frame.regs, space) else {
            continue;
        };
        let above = positions
            .get_or_insert_with(|| StackPositions::of(managed, sp, false))
            .place(managed, Address::new(address));
        let known = managed.get(above);
        let known = known.filter(|managed| managed.address().get() == address);
        let known = known.map(ManagedFrame::is_quick);
        let caller = native.get(depth.saturating_add(1));
        let end = caller.map(|caller| caller.sp).or(sample.native.end);
        let added = || frame_at_sp(description, sample.native, depth, (address, pc));
        match known {
            Some(false) => {}
            // An outdated note led there: it is of an earlier frame at the same address.
            Some(true) => {
                if let Some(noted) = managed.to_mut().get_mut(above) {
                    *noted = added();
                }
            }
            None => {
                managed.to_mut().insert(above, added());
                positions = None;
            }
        }
        let is_within = |other: &ManagedFrame| {
            other.address().get() > address && end.is_some_and(|end| other.address() < end)
        };
        if managed.iter().any(is_within) {
            managed.to_mut().retain(|other| !is_within(other));
            positions = None;
        }
    }
}

/// Returns true if [`add_unwound`] finds every managed frame of a sample that was not walked. Then nterp has called a function of the VM,
/// which no note and no register shows yet, and nterp's frames are one stretch that native code has called. Native methods have no native
/// frame of their own.
fn unwound_all(description: &Description, sample: &Unwound<'_>) -> bool {
    let native = sample.native;
    let is_at_sp = |frame: &&NativeFrame| description.is_at_sp(frame.lookup().get());
    let kind = |frame: &NativeFrame| description.code_at(frame.lookup().get());
    let of_vm = |frame: &&NativeFrame| kind(frame) == Some(CodeKind::Runtime);
    let mut stretch = native.frames.iter().skip_while(of_vm).peekable();
    let begins = stretch.peek().is_some_and(is_at_sp);
    let mut outside = stretch.skip_while(is_at_sp).peekable();
    sample.record.frames.is_empty()
        && native.stopped.is_none()
        && begins
        && outside.peek().is_some()
        && outside.all(|frame| !kind(frame).is_some_and(CodeKind::executes))
}

/// Returns the frames in the copy of the stack, found from the registers of the native frames in `frames`.
fn frames_from_stack_copy(
    description: &Description,
    sample: &Unwound<'_>,
    frames: &[NativeFrame],
    called: &CalledFrames,
    space: &AddressSpace,
) -> CopiedFrames {
    let walk = |address, pc, managed: &mut Vec<ManagedFrame>| {
        walk_list(description, sample.record, address, pc, managed)
    };
    let copy = StackCopy {
        record: sample.record,
        description,
        frames,
        native: sample.native,
        called,
        space,
    };
    copy.walk(&walk)
}

/// Walks the linked frames of a loop as far as the copy of the stack reaches.
fn walk_list(
    description: &Description,
    record: &CapturedSample,
    address: u64,
    pc: u64,
    managed: &mut Vec<ManagedFrame>,
) -> Walked {
    let read = |address: u64, to: &mut [u8]| -> bool {
        record
            .stack_at(address, to.len())
            .map(|bytes| to.copy_from_slice(bytes))
            .is_some()
    };
    let mut walk = Walk::from_frame(&description.layout, address, pc, read);
    loop {
        match walk.step() {
            Step::Frame(found) => managed.push(found),
            Step::End => return Walked::Whole,
            Step::Torn | Step::Dropped => return Walked::Cut,
        }
    }
}

/// While the VM begins a new fragment, the previous one is unreachable for a moment: the thread executes methods, and its list is empty.
/// Returns the frames of the innermost stretch of interpreters from the copy of the stack, or None if it has no interpreter. Frames beyond
/// native code that this stretch has called are in the VM's list only.
fn frames_of_unpublished_fragment(
    description: &Description,
    sample: &Unwound<'_>,
    called: &CalledFrames,
    space: &AddressSpace,
) -> Option<CopiedFrames> {
    let native = sample.native;
    let kind = |frame: &NativeFrame| description.code_at(frame.lookup().get());
    let executes = |frame: &NativeFrame| kind(frame).is_some_and(CodeKind::executes);
    let first = native.frames.iter().position(executes)?;
    let mut outer = native.frames.iter().enumerate().skip(first);
    // Frames on the native stack are unwound, whatever lies between them.
    let is_listed =
        |frame: &NativeFrame| executes(frame) && !description.is_at_sp(frame.lookup().get());
    let end = outer
        .by_ref()
        .find(|(_, frame)| kind(frame).is_none())
        .and_then(|_| outer.find(|(_, frame)| is_listed(frame)));
    let end = end.map(|(at, _)| at);
    let inner = native.frames.get(..end.unwrap_or(native.frames.len()))?;
    let mut copied = frames_from_stack_copy(description, sample, inner, called, space);
    let beyond_fragment = end.map(|_| Reason::TornFrames);
    copied.incomplete = copied.incomplete.or(beyond_fragment);
    Some(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{Machine, Regs};
    use varid_shim::FramePc;
    use varid_tunnel::abi::{
        CodeRange, Layout, RANGE_BODY, RANGE_BRIDGE, RANGE_INTERPRETER, RANGE_VM, Rule,
    };
    use varid_unwind::{NativeStack, Reached, UnwindError};

    const STUB: u64 = 0x1000;
    const NTERP: u64 = 0x2000;
    const SWITCH: u64 = 0x3000;
    const BRIDGE: u64 = 0x4000;
    const NATIVE: u64 = 0x9000;

    /// The switch interpreter by the first rule, nterp by the second.
    fn description() -> Description {
        let at_sp = Rule {
            kind: RULE_AT_SP,
            // Any that a sample has.
            reg_pc: Machine::NATIVE.fp() as u8,
            ..Rule::default()
        };
        let range = |start, kind, rule| CodeRange {
            start,
            end: start + 0x1000,
            kind,
            rule,
        };
        let ranges = vec![
            range(STUB, RANGE_VM, 0),
            range(NTERP, RANGE_BODY, 1),
            range(SWITCH, RANGE_INTERPRETER, 0),
            range(BRIDGE, RANGE_BRIDGE, 0),
        ];
        Description::made_up(Layout::with_rules(&[Rule::default(), at_sp]), ranges)
    }

    fn is_whole(frames: &[u64], stopped: Option<UnwindError>) -> bool {
        let frame = |(depth, at): (usize, &u64)| NativeFrame {
            address: FrameAddress::Instruction(Address::new(at + 0x10)),
            sp: Address::new(0x7000 + 16 * depth as u64),
            regs: Regs::default(),
            reached: Reached::Unwound,
        };
        let native = NativeStack {
            frames: frames.iter().enumerate().map(frame).collect(),
            end: None,
            stopped,
        };
        let sample = Unwound {
            record: &CapturedSample::default(),
            ip: 0,
            leaf: None,
            leaf_is_managed: false,
            native: &native,
        };
        unwound_all(&description(), &sample)
    }

    #[test]
    fn a_stub_that_nterp_has_called_lacks_no_frame() {
        assert!(is_whole(&[STUB, NTERP, NTERP, NATIVE, NATIVE], None));
        assert!(is_whole(&[NTERP, NTERP, BRIDGE, NATIVE], None));
        // Not all of the stack is known.
        let cut = Some(UnwindError::NoStack);
        assert!(!is_whole(&[STUB, NTERP, NTERP, NATIVE], cut));
        assert!(!is_whole(&[STUB], None));
        assert!(!is_whole(&[NTERP], None));
        // A native method, which is known by the walk alone, may be in between, or a frame of the other interpreter.
        assert!(!is_whole(&[NATIVE, NTERP, NATIVE], None));
        assert!(!is_whole(&[STUB, BRIDGE, NTERP, NATIVE], None));
        assert!(!is_whole(&[STUB, NTERP, NATIVE, NTERP, NATIVE], None));
        assert!(!is_whole(&[STUB, NTERP, SWITCH, NATIVE], None));
    }

    const PC: u64 = 0x5000;

    /// Native frames, by their code and their stack pointers, with the registers of nterp's frame at 0x7000.
    fn unwound(frames: &[(u64, u64)]) -> NativeStack {
        let mut regs = Regs::default();
        regs.set_frame(NTERP + 0x10, 0x7000, PC);
        let frame = |(at, sp): &(u64, u64)| NativeFrame {
            address: FrameAddress::Return(Address::new(at + 0x11)),
            sp: Address::new(*sp),
            regs,
            reached: Reached::Unwound,
        };
        NativeStack {
            frames: frames.iter().map(frame).collect(),
            end: None,
            stopped: None,
        }
    }

    /// Walked frames with those that unwinding adds.
    fn with_unwound(native: &NativeStack, walked: Vec<ManagedFrame>) -> Vec<ManagedFrame> {
        let sample = Unwound {
            record: &CapturedSample::default(),
            ip: 0,
            leaf: None,
            leaf_is_managed: false,
            native,
        };
        let mut managed = Cow::Owned(walked);
        add_unwound(
            &description(),
            &sample,
            &mut managed,
            &AddressSpace::default(),
        );
        managed.into_owned()
    }

    fn interpreted(at: u64, pc: u64) -> ManagedFrame {
        let pc = FramePc::Absolute(Address::new(pc));
        ManagedFrame::new(Address::new(at), pc, true)
    }

    #[test]
    fn a_live_frame_of_nterp_takes_the_place_of_an_outdated_note() {
        let native = unwound(&[(NTERP, 0x7000), (NATIVE, 0x7100)]);
        let nterp = interpreted(0x7000, PC);
        let method = Address::new(0x6000);
        let noted = ManagedFrame::new(Address::new(0x7000), FramePc::Native { method }, true);
        for before in [vec![], vec![noted], vec![nterp]] {
            assert_eq!(with_unwound(&native, before), [nterp]);
        }
    }

    #[test]
    fn whether_native_code_called_nterp_is_known_only_if_its_caller_is() {
        let mut native = unwound(&[(NTERP, 0x7000)]);
        assert!(with_unwound(&native, vec![])[0].is_outermost());
        native.stopped = Some(UnwindError::NoStack);
        assert!(!with_unwound(&native, vec![])[0].is_outermost());
    }

    #[test]
    fn an_unwound_frame_of_nterp_is_inserted_before_detached_frames() {
        // A function that nterp has called; the other interpreter, which executes a method that has left its compiled code.
        let frames = [
            (STUB, 0x6f00),
            (NTERP, 0x7000),
            (NATIVE, 0x7100),
            (SWITCH, 0x7200),
        ];
        let (elsewhere, caller) = (interpreted(0x300, 0x6000), interpreted(0x7300, 0x6010));
        let found = with_unwound(&unwound(&frames), vec![elsewhere, caller]);
        assert_eq!(found, [interpreted(0x7000, PC), elsewhere, caller]);
    }

    #[test]
    fn a_method_that_has_returned_is_known_and_its_instruction_is_not() {
        let method = Address::new(0x5000);
        let at = |offset| {
            let pc = FramePc::Relative { method, offset };
            ManagedFrame::new(Address::new(STACK), pc, false)
        };
        let pc_of_first = |frames: &[ManagedFrame]| {
            let mut managed = Cow::Borrowed(frames);
            leave_returned_without_pc(&mut managed);
            assert_eq!(managed.get(1..), frames.get(1..));
            managed.first().map(ManagedFrame::pc)
        };
        let pc = Address::new(0);
        let returned = FramePc::Exported { method, pc };
        assert_eq!(pc_of_first(&[at(RETURNED), at(RETURNED)]), Some(returned));
        let entered = at(CodeUnits::new(0));
        assert_eq!(pc_of_first(&[entered]), Some(entered.pc()));
        assert_eq!(pc_of_first(&[]), None);
    }

    const STACK: u64 = 0x7000;
    const COMPILED: u64 = 0x40_0000;

    fn native(frames: &[(u64, FrameAddress)], end: Option<u64>) -> NativeStack {
        let frame = |(sp, address): &(u64, FrameAddress)| NativeFrame {
            address: *address,
            sp: Address::new(*sp),
            regs: Regs::default(),
            reached: Reached::Unwound,
        };
        NativeStack {
            frames: frames.iter().map(frame).collect(),
            end: end.map(Address::new),
            stopped: None,
        }
    }

    fn compiled(at: u64, returns: u64, is_outermost: bool) -> ManagedFrame {
        let method = Address::new(0x5000);
        let returns = Address::new(returns);
        let pc = FramePc::Compiled { method, returns };
        ManagedFrame::new(Address::new(at), pc, is_outermost)
    }

    /// The addresses of the frames that are left, and whether they are confirmed.
    fn confirmed(native: &NativeStack, frames: &[ManagedFrame]) -> (Vec<u64>, bool) {
        let mut managed = Cow::Borrowed(frames);
        let is_confirmed = is_confirmed(
            &description(),
            native,
            &mut managed,
            &AddressSpace::default(),
        );
        let left = managed.iter().map(|frame| frame.address().get());
        (left.collect(), is_confirmed)
    }

    #[test]
    fn walked_frames_count_from_where_unwinding_arrives() {
        let leaf = (STACK, FrameAddress::Instruction(Address::new(COMPILED)));
        let caller = |sp, at| (sp, FrameAddress::Return(Address::new(at)));
        let frames = [
            compiled(STACK + 0x40, COMPILED + 8, false),
            compiled(STACK + 0x80, COMPILED + 16, true),
            compiled(STACK + 0x200, COMPILED + 24, true),
        ];
        let all = vec![STACK + 0x40, STACK + 0x80, STACK + 0x200];
        let met = native(
            &[leaf, caller(STACK + 0x40, COMPILED + 8)],
            Some(STACK + 0x80),
        );
        assert_eq!(confirmed(&met, &frames), (all.clone(), true));
        // The first one is none: the leaf's frame ends at the second.
        let ends = native(&[leaf], Some(STACK + 0x80));
        assert_eq!(confirmed(&ends, &frames), (all[1..].to_vec(), true));
        let other_call = native(
            &[leaf, caller(STACK + 0x40, COMPILED + 12)],
            Some(STACK + 0x60),
        );
        assert_eq!(confirmed(&other_call, &frames), (vec![], false));
        // Beyond the stretch that it has to lead to nothing is confirmed.
        let beyond = native(&[leaf], Some(STACK + 0x200));
        assert_eq!(confirmed(&beyond, &frames), (vec![], false));
        let stopped = NativeStack {
            stopped: Some(varid_unwind::UnwindError::NoStack),
            ..ends
        };
        assert_eq!(confirmed(&stopped, &frames), (vec![], false));
    }

    #[test]
    fn nterps_frames_count_only_if_unwinding_arrives_at_the_first() {
        let leaf = (STACK, FrameAddress::Instruction(Address::new(COMPILED)));
        let pc = FramePc::Absolute(Address::new(0x9000));
        let frames = [
            ManagedFrame::new(Address::new(STACK + 0x40), pc, false),
            compiled(STACK + 0x80, COMPILED + 16, true),
        ];
        let all = vec![STACK + 0x40, STACK + 0x80];
        let met = native(&[leaf], Some(STACK + 0x40));
        assert_eq!(confirmed(&met, &frames), (all, true));
        // nterp's registers have come through a frame that is none.
        let later = native(&[leaf], Some(STACK + 0x80));
        assert_eq!(confirmed(&later, &frames), (vec![], false));
    }
}
