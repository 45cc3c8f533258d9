//! Dalvik: frames on a stack of their own, each with an area below its frame pointer.

use crate::described::interpreter_loop::{CalledFrames, StackCopy, Walked, exact_pcs};
use crate::described::{DescribedKind, DescribedVm, Description, dex, refreshed};
use crate::seam::{
    CodeKind, LeafMethod, ManagedStack, MergeOrder, Method, Methods, Refreshed, Unwound, Vm,
    VmChanges, VmFrames, VmMethods, VmTarget,
};
use std::borrow::Cow;
use std::rc::Rc;
use varid_model::Address;
use varid_process::reader::ForeignMemory;
use varid_process::{AddressSpace, Process};
use varid_shim::{CapturedSample, FramePc, ManagedFrame, Target, flags};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::RULE_SAVE_AREA;
use varid_tunnel::method::resolve_named;

/// The VM of Android until 4.4, with varid's patch.
#[derive(Debug)]
pub struct Dalvik;

impl DescribedKind for Dalvik {
    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        description.layout.has_rule(RULE_SAVE_AREA).then(|| {
            let description = description.clone();
            Rc::new(DalvikVm { description }) as Rc<dyn Vm>
        })
    }
}

#[derive(Debug)]
struct DalvikVm {
    description: Description,
}

impl DescribedVm for DalvikVm {
    fn description(&self) -> &Description {
        &self.description
    }

    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        Dalvik.recognise(description)
    }
}

impl VmTarget for DalvikVm {
    fn target(&self, flags: u32, _space: &AddressSpace) -> Target {
        self.description.target(flags)
    }
}

impl VmChanges for DalvikVm {
    fn end_batch(&self, process: &Process) -> Refreshed {
        refreshed(self, process, None)
    }

    fn forked(&self) -> Rc<dyn Vm> {
        Rc::new(Self {
            description: self.description.clone(),
        })
    }
}

impl VmFrames for DalvikVm {
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByLoop
    }

    fn leaf_is_managed(&self, _record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        leaf.is_some_and(CodeKind::executes)
    }

    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r> {
        let mut found = walked;
        let (record, native) = (sample.record, sample.native);
        if record.has(flags::NO_WALK) || record.has(flags::NOT_READY) {
            let copy = StackCopy {
                record,
                description: &self.description,
                frames: &native.frames,
                native,
                called: &CalledFrames::default(),
                space: &process.process().space,
            };
            let copied = copy.walk(&one_frame);
            (found.frames, found.incomplete) = (Cow::Owned(copied.frames), copied.incomplete);
        }
        if sample.leaf == Some(CodeKind::Traces) {
            self.take_trace(found.frames.to_mut(), process, sample.ip);
        }
        let exported = exported(&found.frames);
        // Only the pc of exported frames may be replaced: the callees of other frames have saved theirs.
        let may_take = ManagedFrame::is_exported;
        exact_pcs(
            &mut found.frames,
            &self.description,
            native,
            &process.process().space,
            may_take,
        );
        if !exported.is_empty() {
            keep_to_methods(&exported, found.frames.to_mut(), process);
        }
        let innermost = found.frames.first();
        if sample.leaf_is_managed && innermost.is_some_and(ManagedFrame::is_exported) {
            found.leaf = LeafMethod::Transition;
        }
        found
    }

    fn native_caller(&self) -> CodeKind {
        CodeKind::Bridge
    }
}

impl VmMethods for DalvikVm {
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError> {
        let memory = ForeignMemory::new(process.pid);
        let named = resolve_named(&self.description.layout, &memory, pointer)?;
        Ok(dex::place_named(process, &named))
    }
}

impl DalvikVm {
    /// Sets the innermost frame's pc to the bytecode that the compiled code at `ip` was made from. The pc that the frame itself has
    /// exported is that of its last call of the VM, if there was one.
    fn take_trace(&self, frames: &mut [ManagedFrame], process: &mut dyn Methods, ip: u64) {
        let Some(frame) = frames.first_mut().filter(|frame| frame.is_exported()) else {
            return;
        };
        // A trace belongs to one method. In the middle of a call, the frame may already be the callee's.
        if let Some(pc) = self.description.trace(ip)
            && let Some(method) = frame.method()
            && process.method(method.get()).has_code_at(pc)
        {
            frame.set_pc(FramePc::Absolute(Address::new(pc)));
        }
    }
}

/// Adds a loop's innermost frame. The others are not in the copy of the stack. The pc of the innermost frame is known, whatever called it.
fn one_frame(address: u64, pc: u64, managed: &mut Vec<ManagedFrame>) -> Walked {
    let pc = FramePc::Absolute(Address::new(pc));
    managed.push(ManagedFrame::new(Address::new(address), pc, false));
    Walked::Cut
}

/// Returns the frames that have a method and a pc exported by it, with their indices.
fn exported(managed: &[ManagedFrame]) -> Vec<(usize, ManagedFrame)> {
    let all = managed.iter().copied().enumerate();
    all.filter(|(_, frame)| frame.is_exported()).collect()
}

/// Restores frames whose pc from a register is not in their method. The unwinder assumes that everything a loop calls preserves its
/// registers, but the VM's own assembly need not.
fn keep_to_methods(
    exported: &[(usize, ManagedFrame)],
    managed: &mut [ManagedFrame],
    process: &mut dyn Methods,
) {
    for (index, before) in exported {
        if let Some(frame) = managed.get_mut(*index)
            && let (Some(pc), Some(method)) = (frame.absolute_pc(), before.method())
            && !process.method(method.get()).has_code_at(pc.get())
        {
            *frame = *before;
        }
    }
}
