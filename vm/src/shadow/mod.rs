//! VMs that write a shadow stack: a record for each call, in private memory.

mod remapped;

use remapped::Remapped;

use crate::described::interpreter_loop::{
    CalledFrames, StackCopy, Walked, drop_repeated, exact_pcs,
};
use crate::described::{DescribedKind, DescribedVm, Description, dex, refreshed};
use crate::seam::{
    CodeKind, LeafMethod, ManagedStack, MergeOrder, Method, Methods, Refreshed, Unwound, Vm,
    VmChanges, VmFrames, VmMethods, VmTarget,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use varid_model::Pid;
use varid_process::{AddressSpace, Process};
use varid_shim::{CapturedSample, ManagedFrame, Target, flags};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::{Call, RULE_SHADOW};

/// Any VM that cooperates with varid.
#[derive(Debug)]
pub struct Shadow;

impl DescribedKind for Shadow {
    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        let is_shadow = description.layout.has_rule(RULE_SHADOW);
        is_shadow.then(|| Rc::new(ShadowVm::new(description, Remapped::default())) as Rc<dyn Vm>)
    }
}

#[derive(Debug)]
struct ShadowVm {
    description: Description,
    /// The table of its remapped addresses.
    remapped: RefCell<Remapped>,
}

/// A VM whose remapped addresses in a process stand for these methods.
pub(crate) fn with_remapped(description: &Description, pid: Pid, entries: Vec<Call>) -> Rc<dyn Vm> {
    Rc::new(ShadowVm::new(description, Remapped::of(pid, entries)))
}

impl DescribedVm for ShadowVm {
    fn description(&self) -> &Description {
        &self.description
    }

    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        let is_shadow = description.layout.has_rule(RULE_SHADOW);
        is_shadow.then(|| {
            let entries = self.remapped.borrow().entries_only();
            Rc::new(Self::new(description, entries)) as Rc<dyn Vm>
        })
    }
}

impl VmTarget for ShadowVm {
    fn target(&self, flags: u32, _space: &AddressSpace) -> Target {
        self.description.target(flags)
    }
}

impl VmChanges for ShadowVm {
    fn end_batch(&self, process: &Process) -> Refreshed {
        self.remapped.borrow_mut().end_batch();
        refreshed(self, process, None)
    }

    fn forked(&self) -> Rc<dyn Vm> {
        let entries = self.remapped.borrow().entries_only();
        Rc::new(Self::new(&self.description, entries))
    }
}

impl VmFrames for ShadowVm {
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByAddress
    }

    fn restore(&self, process: &mut dyn Methods, frames: &mut [ManagedFrame]) {
        self.remapped
            .borrow_mut()
            .restore(&self.description, process, frames);
    }

    /// Records below sp are of methods that an exception has left, and that the method which caught it has not removed yet. If all records
    /// are below sp, sp is on another stack (a signal's, a coroutine's) and says nothing about them.
    fn drop_stale(&self, record: &CapturedSample, frames: &mut Cow<'_, [ManagedFrame]>) {
        if !self.description.is_on_native_stack() {
            return;
        }
        let sp = record.regs.sp().unwrap_or(0);
        if let Some(live @ 1..) = frames.iter().position(|frame| frame.address().get() >= sp) {
            frames.to_mut().drain(..live);
        }
    }

    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        leaf == Some(CodeKind::Bridge) || record.has(flags::IN_BODY)
    }

    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r> {
        let mut found = walked;
        let (record, native, space) = (sample.record, sample.native, &process.process().space);
        if record.has(flags::NO_WALK) || record.has(flags::NOT_READY) {
            // The records are on no stack.
            let walk = |_, _, _: &mut Vec<ManagedFrame>| Walked::Cut;
            let copy = StackCopy {
                record,
                description: &self.description,
                frames: &native.frames,
                native,
                called: &CalledFrames::default(),
                space,
            };
            let copied = copy.walk(&walk);
            (found.frames, found.incomplete) = (Cow::Owned(copied.frames), copied.incomplete);
        }
        if self.description.is_on_native_stack() {
            drop_repeated(&mut found.frames);
        }
        exact_pcs(&mut found.frames, &self.description, native, space, |_| {
            true
        });
        if self.is_unpublished(sample, &found.frames) {
            found.leaf = LeafMethod::Unpublished;
        } else if sample.leaf == Some(CodeKind::Interpreter) {
            found.leaf = LeafMethod::Transition;
        }
        found
    }

    fn native_caller(&self) -> CodeKind {
        CodeKind::Bridge
    }
}

impl VmMethods for ShadowVm {
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError> {
        dex::resolve(&self.description, process, pointer)
    }
}

impl ShadowVm {
    fn new(description: &Description, remapped: Remapped) -> Self {
        Self {
            description: description.clone(),
            remapped: RefCell::new(remapped),
        }
    }

    /// Returns true if the leaf's method has not published its record, so that the innermost one is its caller's.
    ///
    /// A method with a shadow record publishes it shortly after its native frame is made, and removes it shortly before the frame is left.
    /// In between, the innermost record is recognised by the address at which it was made, which is not within the leaf's own frame. If the
    /// leaf cannot be unwound, this cannot be checked, and the record is not used.
    fn is_unpublished(&self, sample: &Unwound<'_>, managed: &[ManagedFrame]) -> bool {
        let native = sample.native;
        self.description.is_on_native_stack()
            && sample.leaf == Some(CodeKind::Interpreter)
            && managed
                .first()
                .is_some_and(|innermost| match native.frames.get(1) {
                    Some(caller) => innermost.address() >= caller.sp,
                    None => native.stopped.is_some(),
                })
    }
}
