//! Attribution: from what the shim saw to the frames that a profile shows.
//!
//! Native frames come from unwinding, managed ones from the walk, and the two are merged by
//! address: a managed frame lies inside the native frame of its caller. A native frame of an
//! interpreter loop stands for the managed frame that it executes and is replaced by it.

mod by_unwind_info;
mod cached;
mod chain;
mod merge;
mod missing;
mod remap;
mod shared_code;
mod steps;
mod unwinding;

pub use cached::cached_callchain;
pub use remap::{RemapTable, random_build_id};

use crate::ManagedProcess;
use crate::seam::{CodeKind, LeafMethod, ManagedStack, MergeOrder, Unwound, Vm, VmCompiler};
use chain::Chain;
use merge::{Item, Merging};
use std::borrow::Cow;
use std::ops::Range;
use steps::Step;
use varid_model::{Address, Precision, Reason, Stack};
use varid_shim::{CapturedSample, ManagedFrame, flags};
use varid_unwind::{NativeStack, UnwoundStack};

/// A sample's user frames; its memory is used again for the next sample's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributed {
    /// Leaf first; callers as return addresses, managed ones as the invoke's address + 1.
    pub user: Vec<Address>,
    /// Which of them stand for frames that were seen before, and are recorded as they were then.
    pub known: Range<usize>,
    /// The leaf was in a window of the interpreter where its registers say nothing yet or no
    /// longer: the method is that of the thread's top frame, its bytecode the last known.
    pub transition: bool,
    /// Where the innermost managed frame lies; None: there is none, or it has no address.
    pub frame: Option<Address>,
    /// How well the instruction of the innermost managed frame is known.
    pub precision: Precision,
    native: NativeStack,
    steps: Vec<Step>,
    items: Vec<Item>,
}

impl Attributed {
    fn clear(&mut self) {
        self.user.clear();
        (self.known, self.transition, self.frame) = (0..0, false, None);
        self.precision = Precision::Exact;
    }
}

/// Attributes a record. `stack` is what the session was asked for. The copy of the thread's stack may be another one after it.
pub fn attribute(
    sampled: &mut CapturedSample,
    process: &mut ManagedProcess,
    remap: &mut RemapTable,
    stack: Stack,
    attributed: &mut Attributed,
) {
    attributed.clear();
    // A kernel thread has no user part.
    let Some(ip) = sampled.regs.ip().filter(|ip| *ip != 0) else {
        return;
    };
    if sampled.has(flags::LEAF_ONLY) {
        let mut chain = Chain::new(sampled, ip, process, remap, &mut attributed.user);
        chain.leaf_alone(Reason::NotCaptured);
        return;
    }
    // Half of the last frame is missing: those before it are whole.
    let half_missing = sampled.frames.are_torn();
    if let Some(vm) = process.vm.clone() {
        vm.restore(process, &mut sampled.frames);
    }
    if process.is_marked() {
        let chain = Chain::new(sampled, ip, process, remap, &mut attributed.user);
        by_unwind_info::attribute(sampled, ip, chain, stack);
        return;
    }
    let knowledge = process.knowledge();
    let attribution = Attribution {
        record: sampled,
        ip,
        stack,
        half_missing,
    };
    let unwound_whole = attribution.run(process, remap, attributed);
    cached::store(sampled, process, stack, &attributed.user);
    if let Some(mut unwound) = unwound_whole {
        let copy = (&mut sampled.stack, &mut sampled.beyond);
        unwound.replace(&mut attributed.native, sampled.stack_addr, copy);
        process.unwound.put(sampled.tid, knowledge, unwound);
    }
}

/// The attribution of one record.
#[derive(Clone, Copy)]
struct Attribution<'r> {
    record: &'r CapturedSample,
    /// The user's instruction.
    ip: u64,
    stack: Stack,
    /// Half of the last walked frame is missing.
    half_missing: bool,
}

impl<'r> Attribution<'r> {
    /// Unwinds the native frames, asks the VM for the managed ones, and merges them. Returns the thread's previous unwound stack if the new one is
    /// to replace it.
    fn run(
        self,
        process: &mut ManagedProcess,
        remap: &mut RemapTable,
        attributed: &mut Attributed,
    ) -> Option<UnwoundStack> {
        let Self { record, ip, .. } = self;
        let vm = process.vm.clone();
        let vm = vm.as_deref();
        let leaf = vm.and_then(|vm| vm.code_at(Address::new(ip)));
        let mut frames = Cow::Borrowed(&*record.frames);
        if let Some(vm) = vm {
            vm.drop_stale(record, &mut frames);
        }
        let leaf_is_managed = !frames.is_empty() && self.is_managed(leaf, vm);
        let native = &mut attributed.native;
        let unwound_whole = self.unwind(process, vm, &frames, leaf_is_managed, native);
        let walked = self.walked(frames, native);
        let is_entered_natively = self.is_entered_natively(&walked);
        let managed = match vm {
            Some(vm) => {
                let sample = Unwound {
                    record,
                    ip,
                    leaf,
                    leaf_is_managed,
                    native,
                };
                vm.frames(&sample, walked, process)
            }
            None => walked,
        };
        let in_interpreter = match leaf {
            Some(kind) => kind.executes(),
            None => {
                let mut frames = native.frames.iter().map(|frame| frame.lookup().get());
                process.may_be_interpreter(ip) || frames.any(|at| process.is_in_starting_vm(at))
            }
        };
        steps::classify(native, vm, &process.process, &mut attributed.steps);
        let mut chain = Chain::new(record, ip, process, remap, &mut attributed.user);
        chain.native_stretch =
            leaf_is_managed && is_entered_natively && self.stack == Stack::Vertical;
        if let Some(class) = vm.and_then(|vm| vm.allocated_class(record, &chain.process.process)) {
            chain.managed(&class);
        }
        if managed.leaf == LeafMethod::Unpublished {
            chain.leaf_alone(Reason::TornFrames);
        }
        self.merge(
            &mut chain,
            vm,
            native,
            &attributed.steps,
            &managed,
            &mut attributed.items,
        );
        chain.extend(&attributed.items, record, native, &managed.frames);
        let missing = managed.missing();
        chain.finish(record, native, &managed.frames, in_interpreter, missing);
        let innermost = managed.frames.first().map(|frame| frame.address().get());
        let lowest = innermost.into_iter().chain(chain.quick).min();
        attributed.frame = lowest.filter(|at| *at != 0).map(Address::new);
        attributed.transition = !managed.frames.is_empty() && managed.leaf != LeafMethod::Known;
        (attributed.known, attributed.precision) = (chain.known, chain.precision);
        unwound_whole
    }

    /// Returns true if no native frame lies between the leaf and the innermost managed frame, if there is one. `leaf`: the kind of the VM's
    /// code that the leaf is in.
    fn is_managed(self, leaf: Option<CodeKind>, vm: Option<&dyn Vm>) -> bool {
        match vm {
            Some(vm) => vm.leaf_is_managed(self.record, leaf),
            None => self.record.has(flags::IN_BODY),
        }
    }

    /// Returns true if a JNI method's frame comes first: its native code may have called what the leaf is in.
    fn is_entered_natively(self, walked: &ManagedStack<'_>) -> bool {
        !self.record.has(flags::IN_BODY)
            && walked.frames.first().is_some_and(ManagedFrame::is_quick)
    }

    /// Returns the managed frames that the shim walked.
    fn walked(self, frames: Cow<'r, [ManagedFrame]>, native: &NativeStack) -> ManagedStack<'r> {
        let record = self.record;
        // The shim has searched for what the signal interrupted. Unwinding knows.
        let is_misled = record.has(flags::INTERRUPTED)
            && native
                .frames
                .iter()
                .find(|frame| !record.is_on_alternate_stack(frame.sp))
                .is_some_and(|interrupted| interrupted.sp != record.ordinary_sp());
        ManagedStack {
            frames: match is_misled {
                true => Cow::default(),
                false => frames,
            },
            torn: record.has(flags::TORN) || is_misled,
            incomplete: match self.stack {
                _ if self.half_missing => Some(Reason::TornFrames),
                Stack::Vertical | Stack::Full => {
                    let cut = record.has(flags::FRAMES_TRUNCATED);
                    cut.then_some(Reason::Truncated)
                }
                Stack::None => None,
            },
            leaf: LeafMethod::Known,
            unlinked: None,
        }
    }

    /// Merges native and managed frames into items for the chain.
    fn merge(
        self,
        chain: &mut Chain<'_>,
        vm: Option<&dyn Vm>,
        native: &NativeStack,
        steps: &[Step],
        managed: &ManagedStack<'_>,
        items: &mut Vec<Item>,
    ) {
        let compiler = vm.and_then(|vm| vm.compiler());
        let of = Merging {
            record: self.record,
            steps,
            stopped: native.stopped.as_ref(),
            end: native.end,
            managed: &managed.frames,
            // Without callers none is missing.
            unlinked: managed.unlinked.filter(|_| self.stack != Stack::None),
            stack: self.stack,
            native_caller: vm.map(|vm| vm.native_caller()),
            has_compiled_code: compiler.is_some_and(VmCompiler::has_code),
            is_empty: chain.user.is_empty(),
            wants_leaf: chain.leaf,
        };
        let order = vm.map_or(MergeOrder::ByAddress, |vm| vm.merge_order());
        let is_shown = &mut |frame: &ManagedFrame| chain.shows(frame);
        match order {
            MergeOrder::ByAddress => merge::by_address(of, is_shown, items),
            MergeOrder::ByLoop => merge::by_loop(of, is_shown, items),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
