//! Finds a frame that is the innermost one of ART's list and not linked to its caller yet.
//!
//! A sample there sees a list that ends with the new frame, as it does where native code has called the method. The interrupted instruction
//! tells the difference.

use crate::art::layout::read_once;
use crate::described::{Description, LayoutSource};
use crate::seam::CodeKind;
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

/// Returns the index of the managed frame that is not linked yet, if there is one. `pushes_frame`: see [`pushes_frame`].
pub(super) fn unlinked(
    description: &Description,
    native: &NativeStack,
    managed: &[ManagedFrame],
    pushes_frame: impl Fn(Address) -> bool,
) -> Option<usize> {
    // The leaf, and what a signal has interrupted.
    let is_interrupted = |frame: &&NativeFrame| {
        frame.address.is_instruction()
            && description.code_at(frame.lookup().get()) == Some(CodeKind::Bridge)
    };
    native
        .frames
        .iter()
        .filter(is_interrupted)
        .find_map(|frame| {
            let is_listed =
                |managed: &ManagedFrame| !managed.is_quick() && managed.address() >= frame.sp;
            let newest = managed.iter().position(is_listed)?;
            let ends_list = managed.get(newest).is_some_and(ManagedFrame::is_outermost);
            (ends_list && pushes_frame(frame.lookup())).then_some(newest)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{FrameAddress, Regs};
    use varid_shim::FramePc;
    use varid_tunnel::abi::{CodeRange, Layout, RANGE_BRIDGE, RANGE_VM, Rule};

    const BRIDGE: u64 = 0x1000;
    const PUSH: u64 = 0x1010;
    const VM: u64 = 0x2000;
    const SP: u64 = 0x7000;
    const METHOD: Address = Address::new(0x6000);

    fn index(frames: &[(FrameAddress, u64)], managed: &[ManagedFrame]) -> Option<usize> {
        let range = |start, kind| CodeRange {
            start,
            end: start + 0x1000,
            kind,
            rule: 0,
        };
        let ranges = vec![range(BRIDGE, RANGE_BRIDGE), range(VM, RANGE_VM)];
        let description = Description::made_up(Layout::with_rules(&[Rule::default()]), ranges);
        let frame = |(address, sp): &(FrameAddress, u64)| NativeFrame {
            address: *address,
            sp: Address::new(*sp),
            regs: Regs::default(),
        };
        let native = NativeStack {
            frames: frames.iter().map(frame).collect(),
            end: None,
            stopped: None,
        };
        unlinked(&description, &native, managed, |address| {
            address.get() == PUSH
        })
    }

    fn listed(at: u64, is_outermost: bool) -> ManagedFrame {
        let pc = FramePc::Absolute(Address::new(0x5000));
        ManagedFrame::new(Address::new(at), pc, is_outermost)
    }

    const fn at(address: u64) -> FrameAddress {
        FrameAddress::Instruction(Address::new(address))
    }

    #[test]
    fn only_the_last_frame_of_a_list_at_such_an_instruction_is_unlinked() {
        let (new, outer) = (listed(SP + 0x40, true), listed(SP + 0x200, true));
        let pushing = [(at(PUSH), SP)];
        assert_eq!(index(&pushing, &[new, outer]), Some(0));
        assert_eq!(index(&pushing, &[]), None);
        // It is linked, or a list begins elsewhere.
        let linked = listed(SP + 0x40, false);
        assert_eq!(index(&pushing, &[linked, outer]), None);
        assert_eq!(index(&[(at(BRIDGE), SP)], &[new, outer]), None);
        assert_eq!(index(&[(at(VM + 0x10), SP)], &[new, outer]), None);
        // No call is there.
        let caller = (FrameAddress::Return(Address::new(PUSH + 1)), SP + 0x80);
        assert_eq!(index(&[(at(VM), SP), caller], &[new, outer]), None);
        // A native method's frame is in no list.
        let noted = ManagedFrame::new(
            Address::new(SP + 0x10),
            FramePc::Native { method: METHOD },
            false,
        );
        assert_eq!(index(&pushing, &[noted, new, outer]), Some(1));
    }

    #[test]
    fn what_a_signal_has_interrupted_is_unlinked_and_what_its_handler_calls_is_not() {
        let (called, new) = (listed(SP - 0x80, true), listed(SP + 0x40, true));
        let frames = [(at(VM), SP - 0x100), (at(PUSH), SP)];
        assert_eq!(index(&frames, &[called, new]), Some(1));
        assert_eq!(index(&frames, &[called]), None);
    }
}
