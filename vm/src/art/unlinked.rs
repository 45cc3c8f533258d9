//! Corrects the list of a thread whose innermost frame is not linked to its caller yet.
//!
//! The link is what an earlier frame has left in the same memory: the caller by chance, none, or a frame that has returned. The interpreter
//! that is calling the method tells which frame is the caller.

use crate::art::layout::read_once;
use crate::described::interpreter_loop::{CalledFrames, registers};
use crate::described::{Description, LayoutSource};
use crate::seam::CodeKind;
use std::borrow::Cow;
use varid_model::Address;
use varid_process::{AddressSpace, MappedCode};
use varid_shim::ManagedFrame;
use varid_tunnel::builds;
use varid_unwind::{NativeFrame, NativeStack};

/// Returns true if the code at an address has made a frame the innermost one and not yet linked it. The library knows, whoever describes the
/// VM.
pub(super) fn pushes_frame(
    description: &Description,
    address: Address,
    space: &AddressSpace,
) -> bool {
    let Some((library, own)) = MappedCode::new(space).file_at(address) else {
        return false;
    };
    if let Some(build) = builds::lookup(library.build_id()) {
        return build.pushes().any(|push| push.contains(&own.get()));
    }
    // Other libraries were read when the VM was found.
    let is_read = matches!(description.layout_source, LayoutSource::Library(_));
    let file = library.file().filter(|_| is_read);
    let layout = file.and_then(|file| read_once(file).ok());
    layout.is_some_and(|layout| layout.pushes().iter().any(|push| push.contains(&own.get())))
}

/// Returns the depth of the native frame that was interrupted where a new frame is not linked yet: the leaf, or what a signal has
/// interrupted. `pushes_frame`: see [`pushes_frame`].
pub(super) fn interrupted_push(
    description: &Description,
    native: &NativeStack,
    pushes_frame: impl Fn(Address) -> bool,
) -> Option<usize> {
    native.frames.iter().position(|frame| {
        let at = frame.lookup();
        frame.address.is_instruction()
            && description.code_at(at.get()) == Some(CodeKind::Bridge)
            && pushes_frame(at)
    })
}

/// Returns the managed frame of the interpreter that has called the native frame at `depth`, if it is known. `called`: the frames of the
/// switch interpreter.
pub(super) fn caller(
    description: &Description,
    native: &NativeStack,
    depth: usize,
    called: &CalledFrames,
    space: &AddressSpace,
) -> Option<Address> {
    let kind = |frame: &NativeFrame| description.code_at(frame.lookup().get());
    let callers = native.frames.iter().enumerate();
    let mut callers = callers.skip(depth.saturating_add(1));
    // Another frame of the switch interpreter leads to its frame.
    let (depth, interpreter) = callers.find(|(depth, frame)| match kind(frame) {
        Some(CodeKind::Interpreter) => called.contains_key(depth),
        kind => kind.is_none_or(CodeKind::executes),
    })?;
    match kind(interpreter)? {
        CodeKind::Loop => {
            let ip = interpreter.lookup().get();
            let (address, _) = registers(description, ip, &interpreter.regs, space)?;
            Some(Address::new(address))
        }
        CodeKind::Interpreter => called.get(&depth)?.ok(),
        _ => None,
    }
}

/// Drops the frames behind the new one in its list that are not its callers. Returns the address of the new frame if its callers are
/// missing then. `sp`: of the native frame that makes it. `caller`: the frame that it will be linked to, if known.
pub(super) fn drop_others(
    managed: &mut Cow<'_, [ManagedFrame]>,
    sp: Address,
    caller: Option<Address>,
) -> Option<Address> {
    let is_listed = |frame: &ManagedFrame| !frame.is_quick() && frame.address() >= sp;
    let new = managed.iter().position(is_listed)?;
    let list = managed.get(new..)?;
    let end = list.iter().position(ManagedFrame::is_outermost);
    let list = list.get(..=end.unwrap_or(list.len().saturating_sub(1)))?;
    let end = new.saturating_add(list.len());
    let is_caller = |frame: &ManagedFrame| Some(frame.address()) == caller;
    let found = list.iter().position(is_caller).filter(|at| *at > 0);
    let others = new.saturating_add(1)..found.map_or(end, |at| new.saturating_add(at));
    if !others.is_empty() {
        drop(managed.to_mut().drain(others));
    }
    if found.is_some() {
        return None;
    }
    let frame = managed.to_mut().get_mut(new)?;
    *frame = ManagedFrame::new(frame.address(), frame.pc(), true);
    Some(frame.address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{FrameAddress, Machine, Reason, Regs};
    use varid_shim::FramePc;
    use varid_tunnel::abi::{
        CodeRange, Layout, RANGE_BODY, RANGE_BRIDGE, RANGE_INTERPRETER, RANGE_VM, Rule,
    };
    use varid_unwind::Reached;

    const BRIDGE: u64 = 0x1000;
    const PUSH: u64 = 0x1010;
    const VM: u64 = 0x2000;
    const LOOP: u64 = 0x3000;
    const SWITCH: u64 = 0x4000;
    const NATIVE: u64 = 0x9000;
    const SP: u64 = 0x7000;
    const METHOD: Address = Address::new(0x6000);

    fn description() -> Description {
        let range = |start, kind| CodeRange {
            start,
            end: start + 0x1000,
            kind,
            rule: 0,
        };
        let ranges = vec![
            range(BRIDGE, RANGE_BRIDGE),
            range(VM, RANGE_VM),
            range(LOOP, RANGE_BODY),
            range(SWITCH, RANGE_INTERPRETER),
        ];
        // Any registers that a sample has.
        let rule = Rule {
            reg_frame: Machine::NATIVE.fp() as u8,
            reg_pc: Machine::NATIVE.fp() as u8,
            ..Rule::default()
        };
        Description::made_up(Layout::with_rules(&[rule]), ranges)
    }

    /// Native frames, innermost first, of which a loop has its managed frame at 0x7100.
    fn native(frames: &[FrameAddress]) -> NativeStack {
        let mut regs = Regs::default();
        regs.set(Machine::NATIVE.fp(), Some(SP + 0x100));
        let frame = |(depth, address): (usize, &FrameAddress)| NativeFrame {
            address: *address,
            sp: Address::new(SP + 16 * depth as u64),
            regs,
            reached: Reached::Unwound,
        };
        NativeStack {
            frames: frames.iter().enumerate().map(frame).collect(),
            end: None,
            stopped: None,
        }
    }

    const fn at(address: u64) -> FrameAddress {
        FrameAddress::Instruction(Address::new(address))
    }

    const fn call(address: u64) -> FrameAddress {
        FrameAddress::Return(Address::new(address + 1))
    }

    #[test]
    fn the_leaf_or_what_a_signal_has_interrupted_makes_a_frame() {
        let depth = |frames: &[FrameAddress]| {
            interrupted_push(&description(), &native(frames), |address| {
                address.get() == PUSH
            })
        };
        assert_eq!(depth(&[at(PUSH), call(VM)]), Some(0));
        assert_eq!(depth(&[at(NATIVE), call(VM), at(PUSH)]), Some(2));
        // No call is there.
        assert_eq!(depth(&[at(VM), call(PUSH)]), None);
        assert_eq!(depth(&[at(BRIDGE), call(VM)]), None);
        assert_eq!(depth(&[]), None);
    }

    #[test]
    fn the_interpreter_that_calls_a_method_has_the_callers_frame() {
        let known = |callers: &[u64], called: &CalledFrames| {
            let callers = callers.iter().map(|address| call(*address));
            let frames: Vec<_> = std::iter::once(at(PUSH)).chain(callers).collect();
            let space = AddressSpace::default();
            caller(&description(), &native(&frames), 0, called, &space).map(Address::get)
        };
        let none = CalledFrames::default();
        assert_eq!(known(&[VM, BRIDGE, LOOP], &none), Some(SP + 0x100));
        // The second frame of the switch interpreter.
        let switch = [BRIDGE, SWITCH, SWITCH + 0x10, BRIDGE, LOOP];
        let called = CalledFrames::from([(3, Ok(Address::new(SP + 0x80)))]);
        assert_eq!(known(&switch, &called), Some(SP + 0x80));
        let called = CalledFrames::from([(3, Err(Reason::Truncated))]);
        assert_eq!(known(&switch, &called), None);
        // Native code has been called, or unwinding has stopped.
        assert_eq!(known(&[BRIDGE, NATIVE, LOOP], &none), None);
        assert_eq!(known(&[BRIDGE], &none), None);
    }

    const NEW: u64 = SP + 0x40;
    const STALE: u64 = SP + 0x60;
    const CALLER: u64 = SP + 0x80;
    const FIRST: u64 = SP + 0xa0;
    const OUTER: u64 = SP + 0x200;

    /// The addresses of the frames that are left, and that of the new frame if its callers are missing. The lists end with `outermost`.
    fn left(managed: &[u64], outermost: &[u64], caller: Option<u64>) -> (Vec<u64>, Option<u64>) {
        let pc = FramePc::Absolute(Address::new(0x5000));
        let frame = |address: &u64| {
            ManagedFrame::new(Address::new(*address), pc, outermost.contains(address))
        };
        let mut managed: Cow<'_, [ManagedFrame]> = managed.iter().map(frame).collect();
        let unlinked = drop_others(&mut managed, Address::new(SP), caller.map(Address::new));
        if let Some(unlinked) = unlinked {
            let new = managed.iter().find(|frame| frame.address() == unlinked);
            assert!(new.unwrap().is_outermost());
        }
        let left = managed.iter().map(|frame| frame.address().get()).collect();
        (left, unlinked.map(Address::get))
    }

    #[test]
    fn what_is_left_in_a_frames_link_is_believed_if_it_is_the_caller() {
        let managed = [NEW, CALLER, FIRST, OUTER];
        let found = left(&managed, &[FIRST, OUTER], Some(CALLER));
        assert_eq!(found, (managed.to_vec(), None));
        // Frames that have returned lead to the caller.
        let stale = [NEW, STALE, CALLER, FIRST, OUTER];
        let found = left(&stale, &[FIRST, OUTER], Some(CALLER));
        assert_eq!(found, (managed.to_vec(), None));
    }

    #[test]
    fn callers_are_missing_where_the_link_leads_past_them_or_nowhere() {
        let missing = (vec![NEW, OUTER], Some(NEW));
        let of = |managed: &[u64], outermost: &[u64], caller| left(managed, outermost, caller);
        let zero = of(&[NEW, OUTER], &[NEW, OUTER], Some(CALLER));
        assert_eq!(zero, missing);
        let past = of(&[NEW, FIRST, OUTER], &[FIRST, OUTER], Some(CALLER));
        assert_eq!(past, missing);
        let stale = of(&[NEW, STALE, OUTER], &[STALE, OUTER], Some(CALLER));
        assert_eq!(stale, missing);
        // Which frame is the caller is not known.
        let unknown = of(&[NEW, CALLER, OUTER], &[CALLER, OUTER], None);
        assert_eq!(unknown, missing);
        // The walk is torn.
        let torn = of(&[NEW, STALE], &[], Some(CALLER));
        assert_eq!(torn, (vec![NEW], Some(NEW)));
        assert_eq!(of(&[], &[], Some(CALLER)), (vec![], None));
    }

    #[test]
    fn frames_of_a_signal_handler_and_native_methods_are_others() {
        let handler = SP - 0x80;
        let found = left(&[handler, NEW, STALE], &[handler, STALE], Some(CALLER));
        assert_eq!(found, (vec![handler, NEW], Some(NEW)));
        assert_eq!(left(&[handler], &[handler], None), (vec![handler], None));
        let pc = FramePc::Native { method: METHOD };
        let noted = ManagedFrame::new(Address::new(SP + 0x10), pc, false);
        let mut managed = Cow::Owned(vec![noted]);
        assert_eq!(drop_others(&mut managed, Address::new(SP), None), None);
        assert_eq!(managed.len(), 1);
    }
}
