//! VMs that write a shadow stack: a record for each call, in private memory.

mod remapped;

use remapped::Remapped;

use crate::code_kind::CodeKind;
use crate::dex;
use crate::facts::VmFacts;
use crate::interpreter_loop::{CalledFrames, Walked, drop_repeated, exact_pcs, walk_copy};
use crate::kind::{LeafMethod, ManagedStack, Methods, Unwound, Vm, VmKind};
use crate::method::Method;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use varid_model::Pid;
use varid_process::Process;
use varid_shim::{CapturedSample, ManagedFrame, flags};
use varid_tunnel::abi::{Call, RULE_SHADOW};

/// Any VM that cooperates.
#[derive(Debug)]
pub struct Shadow;

impl VmKind for Shadow {
    fn name(&self) -> &'static str {
        "a VM with a shadow stack"
    }

    fn recognise(&self, facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        (facts.layout.has_rule(RULE_SHADOW)).then(|| {
            let vm = ShadowVm {
                facts: facts.clone(),
                remapped: RefCell::default(),
            };
            Rc::new(vm) as Rc<dyn Vm>
        })
    }
}

#[derive(Debug)]
struct ShadowVm {
    facts: VmFacts,
    /// What it stores instead of addresses.
    remapped: RefCell<Remapped>,
}

/// A VM whose remapped addresses of a process stand for these methods.
pub(crate) fn with_remapped(facts: &VmFacts, pid: Pid, entries: Vec<Call>) -> Rc<dyn Vm> {
    Rc::new(ShadowVm {
        facts: facts.clone(),
        remapped: RefCell::new(Remapped::of(pid, entries)),
    })
}

impl Vm for ShadowVm {
    fn facts(&self) -> &VmFacts {
        &self.facts
    }

    /// Records below sp are of methods that an exception has left, and that the one which caught
    /// it has not taken back yet. Where all are, sp is on another stack (a signal's, a
    /// coroutine's), and says nothing about them.
    fn drop_stale(&self, record: &CapturedSample, frames: &mut Cow<'_, [ManagedFrame]>) {
        if !self.facts.is_on_native_stack() {
            return;
        }
        let sp = record.regs.sp().unwrap_or(0);
        if let Some(live @ 1..) = frames.iter().position(|frame| frame.address().get() >= sp) {
            frames.to_mut().drain(..live);
        }
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
            // No stack has the records.
            let walk = |_, _, _: &mut Vec<ManagedFrame>| Walked::Cut;
            let copied = walk_copy(
                record,
                &self.facts,
                &native.frames,
                native,
                &CalledFrames::default(),
                space,
                &walk,
            );
            (found.frames, found.incomplete) = (Cow::Owned(copied.0), copied.1);
        }
        if self.facts.is_on_native_stack() {
            drop_repeated(&mut found.frames);
        }
        exact_pcs(&mut found.frames, &self.facts, native, space, |_| true);
        if self.is_unpublished(sample, &found.frames) {
            found.leaf = LeafMethod::Unpublished;
        } else if sample.leaf == Some(CodeKind::Interpreter) {
            found.leaf = LeafMethod::Transition;
        }
        found
    }

    fn with_new_description(&self, facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        (facts.layout.has_rule(RULE_SHADOW)).then(|| {
            let vm = Self {
                facts: facts.clone(),
                remapped: RefCell::new(self.remapped.borrow().entries_only()),
            };
            Rc::new(vm) as Rc<dyn Vm>
        })
    }

    fn end_batch(&self, process: &Process) -> bool {
        self.remapped.borrow_mut().end_batch();
        self.facts.has_changed(process.pid, None)
    }

    fn restore(&self, process: &mut dyn Methods, frames: &mut [ManagedFrame]) {
        self.remapped
            .borrow_mut()
            .restore(&self.facts, process, frames);
    }

    fn method(
        &self,
        process: &mut Process,
        pointer: u64,
    ) -> Result<Method, varid_tunnel::TunnelError> {
        dex::resolve(&self.facts, process, pointer)
    }
}

impl ShadowVm {
    /// A method that keeps a shadow record says so a little after its native frame is there, and
    /// takes it back a little before: in between, the innermost record is its caller's. It is
    /// recognised by where the record says it was made: not within the leaf's own frame.
    fn is_unpublished(&self, sample: &Unwound<'_>, managed: &[ManagedFrame]) -> bool {
        self.facts.is_on_native_stack()
            && sample.leaf == Some(CodeKind::Interpreter)
            && sample
                .native
                .frames
                .get(1)
                .zip(managed.first())
                .is_some_and(|(caller, innermost)| innermost.address() >= caller.sp)
    }
}
