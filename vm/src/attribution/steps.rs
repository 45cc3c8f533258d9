//! Classifies each native frame of a sample once, for the merge.

use crate::seam::{CodeKind, Vm, VmCompiler};
use varid_model::{Address, FrameAddress};
use varid_process::Process;
use varid_unwind::{NativeFrame, NativeStack, Reached};

/// A native frame, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Its instruction or return address.
    pub address: FrameAddress,
    /// Its stack pointer.
    pub sp: Address,
    /// The kind of its code. None if it is not the VM's.
    pub kind: Option<CodeKind>,
    /// Frames of this code have the method at the stack pointer, and are not in the VM's list.
    pub is_at_sp: bool,
    /// How unwinding has come to it.
    pub reached: Reached,
}

impl Step {
    fn of(
        frame: &NativeFrame,
        vm: Option<&dyn Vm>,
        compiler: Option<&dyn VmCompiler>,
        process: &Process,
    ) -> Self {
        let lookup = frame.lookup();
        let own = vm.and_then(|vm| vm.code_at(lookup));
        let compiled = || {
            let is_compiled = compiler?.is_code(lookup, process);
            is_compiled.then_some(CodeKind::Compiled)
        };
        Self {
            address: frame.address,
            sp: frame.sp,
            kind: own.or_else(compiled),
            is_at_sp: own.is_some() && vm.is_some_and(|vm| vm.is_at_sp(lookup)),
            reached: frame.reached,
        }
    }

    /// Returns true if this is the frame of a method: of compiled code, or of an interpreter whose frames are native ones.
    pub fn is_method_frame(&self) -> bool {
        matches!(self.kind, Some(CodeKind::NativeFrames | CodeKind::Compiled))
    }

    /// Returns true if its code interprets frames of the VM's list.
    pub fn interprets_listed_frames(&self) -> bool {
        matches!(self.kind, Some(CodeKind::Loop | CodeKind::Interpreter)) && !self.is_at_sp
    }
}

/// Classifies the native frames of a sample, innermost first.
pub(super) fn classify(
    native: &NativeStack,
    vm: Option<&dyn Vm>,
    process: &Process,
    steps: &mut Vec<Step>,
) {
    steps.clear();
    let compiler = vm.and_then(|vm| vm.compiler());
    let frames = native.frames.iter();
    steps.extend(frames.map(|frame| Step::of(frame, vm, compiler, process)));
}
