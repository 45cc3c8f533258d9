//! How are native frames merged with managed frames that lie on a stack of their own, as Dalvik's do?
//!
//! Addresses on two stacks cannot be compared. The order follows from the interpreter: one native frame of its loop executes a
//! method and all methods that this calls without native code in between.

use super::chain::{Chain, reason};
use crate::{ManagedProcess, Vm};
use varid_model::{Marker, Stack};
use varid_shim::{ManagedFrame, Record, frame_flags};
use varid_tunnel::abi::{RANGE_BODY, RANGE_INTERPRETER, RANGE_TRACES};
use varid_unwind::NativeStack;

/// Whether code of this kind executes bytecode.
pub(super) fn is_loop(kind: Option<u32>) -> bool {
    matches!(kind, Some(RANGE_BODY | RANGE_INTERPRETER | RANGE_TRACES))
}

/// Takes the bytecode that compiled code was made of for the innermost frame's: it has told
/// where it is when it last called the VM, if ever.
pub(super) fn take_trace(managed: &mut [ManagedFrame], chain: &mut Chain<'_>, vm: &Vm, ip: u64) {
    let Some(frame) = managed.first_mut().filter(|frame| frame.is_exported()) else {
        return;
    };
    // A trace is one method's. In the middle of a call the frame may be the callee's already.
    if let Some(pc) = vm.trace(ip)
        && chain.process.method(frame.method).has_code_at(pc)
    {
        frame.pc = pc;
        frame.flags &= !frame_flags::PAIR;
    }
}

/// Frames that know their method, and where it last was, by their places.
pub(super) fn exported(managed: &[ManagedFrame]) -> Vec<(usize, ManagedFrame)> {
    let all = managed.iter().copied().enumerate();
    all.filter(|(_, frame)| frame.is_exported()).collect()
}

/// Who unwinds takes it that the loop's registers are kept by all that it calls, and the VM's own
/// assembly need not: a pc that is none of the frame's method is not its.
pub(super) fn keep_to_methods(
    told: &[(usize, ManagedFrame)],
    managed: &mut [ManagedFrame],
    process: &mut ManagedProcess,
) {
    for (place, told) in told {
        if let Some(frame) = managed.get_mut(*place)
            && !frame.is_exported()
            && !process.method(told.method).has_code_at(frame.pc)
        {
            *frame = *told;
        }
    }
}

impl Chain<'_> {
    /// Native frames, and managed ones, whose loops they are.
    pub(super) fn pair(
        &mut self,
        record: &Record,
        native: &NativeStack,
        managed: &[ManagedFrame],
        vm: &Vm,
        stack: Stack,
    ) {
        let mut rest = managed;
        let mut entered = false;
        for frame in &native.frames {
            if rest.is_empty() || !is_loop(vm.range(frame.lookup())) {
                self.native(frame.address);
                continue;
            }
            entered = true;
            if stack != Stack::Full {
                break;
            }
            while let Some((next, after)) = rest.split_first() {
                self.managed(next);
                rest = after;
                if next.is_outermost() {
                    break;
                }
            }
        }
        while let Some((next, after)) = rest.split_first().filter(|_| self.leaf) {
            self.managed(next);
            self.native_stretch |= next.is_outermost();
            rest = after;
        }
        self.leaf_at_least();
        let all_shown = entered && stack != Stack::Full;
        if let Some(error) = native
            .stopped
            .as_ref()
            .filter(|_| !all_shown && (stack == Stack::Full || !rest.is_empty()))
        {
            self.marker(Marker::Reason(reason(error)));
        }
        self.callers(record.tid, rest);
    }
}
