//! Attribution: from what the shim saw to the frames that a profile shows.
//!
//! Native frames come from unwinding, managed ones from the walk, and the two are merged by
//! address: a managed frame lies inside the native frame of its caller. A native frame of an
//! interpreter loop stands for the managed frame that it executes and is replaced by it.

mod by_address;
mod by_loop;
mod by_unwind_info;
mod cached;
mod chain;
mod missing;
mod remap;
mod shared_code;

pub use cached::cached_callchain;
pub use remap::{FILE_OFFSET, RemapTable, random_build_id};

use crate::ManagedProcess;
use crate::seam::stack_copy::stack_of;
use crate::seam::stack_positions::StackPositions;
use crate::seam::{LeafMethod, ManagedStack, MergeOrder, Unwound, Vm};
use chain::Chain;
use std::borrow::Cow;
use std::ops::Range;
use varid_model::{Address, FrameAddress, Precision, Reason, Stack};
use varid_process::{MappedCode, Process};
use varid_shim::{CapturedSample, ManagedFrame, flags};
use varid_unwind::{CodeRule, NativeFrame, NativeStack, UnwindInfo};

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
}

/// Attributes a record. `stack` is what the session was asked for. The copy of the thread's stack may be another one after it.
pub fn attribute(
    sampled: &mut CapturedSample,
    process: &mut ManagedProcess,
    remap: &mut RemapTable,
    stack: Stack,
    attributed: &mut Attributed,
) {
    let Attributed {
        user,
        known,
        transition,
        frame,
        precision,
        native,
    } = attributed;
    user.clear();
    (*known, *transition, *frame) = (0..0, false, None);
    *precision = Precision::Exact;
    // A kernel thread has no user part.
    let Some(ip) = sampled.regs.ip().filter(|ip| *ip != 0) else {
        return;
    };
    let at = FrameAddress::Instruction(Address::new(ip));
    if sampled.has(flags::LEAF_ONLY) {
        let mut chain = Chain::new(sampled, at, process, remap, user);
        chain.native(at);
        chain.missing(Reason::NotCaptured);
        return;
    }
    // Half of the last frame is missing: those before it are whole.
    let half_missing = sampled.frames.are_torn();
    let vm = process.vm.clone();
    let vm = vm.as_deref();
    if let Some(vm) = vm {
        vm.restore(process, &mut sampled.frames);
    }
    let record = &*sampled;
    if process.is_marked() {
        let chain = Chain::new(record, at, process, remap, user);
        by_unwind_info::attribute(record, ip, chain, stack);
        return;
    }
    let knowledge = process.knowledge();
    let leaf = vm.and_then(|vm| vm.code_at(Address::new(ip)));
    let in_interpreter = match leaf {
        Some(kind) => kind.executes(),
        None => process.may_be_interpreter(ip),
    };
    let mut chain = Chain::new(record, at, process, remap, user);

    let mut frames = Cow::Borrowed(&*record.frames);
    if let Some(vm) = vm {
        vm.drop_stale(record, &mut frames);
    }
    let leaf_is_managed = !frames.is_empty()
        && match vm {
            Some(vm) => vm.leaf_is_managed(record, leaf),
            None => record.has(flags::IN_BODY),
        };
    // Frames that were not walked are found by unwinding, which goes on behind those that were.
    let walked_all = !record.has(flags::LINKED_ONLY);
    let mut unwound_whole = None;
    if stack == Stack::None || (leaf_is_managed && stack == Stack::Vertical && walked_all) {
        leaf_only(native, record, ip);
    } else {
        let positions = StackPositions::of(&frames, record.ordinary_sp(), false);
        let until = frames
            .iter()
            .enumerate()
            .find(|(at, frame)| !frame.is_quick() && !positions.is_detached(*at))
            .map(|(_, frame)| frame)
            .filter(|_| stack == Stack::Vertical && walked_all)
            .filter(|_| vm.is_some_and(|vm| vm.is_on_native_stack()))
            .map(|frame| frame.address());
        // The next sample is most likely on the ordinary stack again.
        if until.is_none() && !record.has(flags::INTERRUPTED) {
            unwound_whole = Some(chain.process.unwound.take(record.tid, knowledge));
        }
        let mut code = ProcessCode {
            mapped: MappedCode::new(chain.process.space()),
            vm,
            record,
            process: &chain.process.process,
        };
        let (regs, slice) = (&record.regs, stack_of(record));
        match &unwound_whole {
            Some(before) => native.unwind_after(before, regs, slice, &mut code),
            None => native.unwind(regs, slice, until, &mut code),
        }
    }
    // The shim has searched for what the signal interrupted. Unwinding knows.
    let is_misled = record.has(flags::INTERRUPTED)
        && native
            .frames
            .iter()
            .find(|frame| !record.is_on_alternate_stack(frame.sp))
            .is_some_and(|interrupted| interrupted.sp != record.ordinary_sp());
    if is_misled {
        frames = Cow::default();
    }
    // A JNI method's frame comes first: its native code may have called what the leaf is in.
    let entered_natively =
        !record.has(flags::IN_BODY) && frames.first().is_some_and(ManagedFrame::is_quick);
    chain.native_stretch = leaf_is_managed && entered_natively && stack == Stack::Vertical;
    let mut managed = ManagedStack {
        frames,
        torn: record.has(flags::TORN) || is_misled,
        incomplete: match stack {
            _ if half_missing => Some(Reason::TornFrames),
            Stack::Vertical | Stack::Full => {
                let cut = record.has(flags::FRAMES_TRUNCATED);
                cut.then_some(Reason::Truncated)
            }
            Stack::None => None,
        },
        leaf: LeafMethod::Known,
    };
    if let Some(vm) = vm {
        let sample = Unwound {
            record,
            ip,
            leaf,
            leaf_is_managed,
            native,
        };
        managed = vm.frames(&sample, managed, chain.process);
    }
    let ManagedStack {
        frames,
        torn,
        incomplete,
        leaf: leaf_method,
    } = managed;
    if leaf_method == LeafMethod::Unpublished {
        chain.native(at);
        chain.missing(Reason::TornFrames);
    }
    match vm {
        Some(vm) if vm.merge_order() == MergeOrder::ByLoop => {
            chain.merge_by_loop(record, native, &frames, vm, stack);
        }
        _ => chain.merge_by_address(record, native, &frames, vm, stack),
    }
    let incomplete = match torn {
        true => Some(Reason::TornFrames),
        false => incomplete,
    };
    chain.finish(record, native, &frames, in_interpreter, incomplete);
    *transition = !frames.is_empty() && leaf_method != LeafMethod::Known;
    *known = chain.known;
    *precision = chain.precision;
    let innermost = frames.first().map(|frame| frame.address().get());
    let lowest = innermost.into_iter().chain(chain.quick).min();
    *frame = lowest.filter(|at| *at != 0).map(Address::new);
    cached::store(record, process, stack, user);
    if let Some(mut unwound) = unwound_whole {
        let copy = (&mut sampled.stack, &mut sampled.beyond);
        unwound.replace(native, sampled.stack_addr, copy);
        process.unwound.put(sampled.tid, knowledge, unwound);
    }
}

fn leaf_only(native: &mut NativeStack, record: &CapturedSample, ip: u64) {
    native.frames.clear();
    native.frames.push(NativeFrame {
        address: FrameAddress::Instruction(Address::new(ip)),
        sp: Address::new(record.regs.sp().unwrap_or(0)),
        regs: record.regs,
    });
    (native.end, native.stopped) = (None, None);
}

/// The code of a process: that of its mappings, and what its VM has compiled.
struct ProcessCode<'a> {
    mapped: MappedCode<'a>,
    vm: Option<&'a dyn Vm>,
    record: &'a CapturedSample,
    process: &'a Process,
}

impl UnwindInfo for ProcessCode<'_> {
    fn rule(&mut self, pc: Address) -> CodeRule {
        self.mapped.rule(pc)
    }

    fn frame_rule(&mut self, frame: &NativeFrame) -> CodeRule {
        let rule = self.mapped.frame_rule(frame);
        if !matches!(rule, CodeRule::Unknown) {
            return rule;
        }
        let vm = self.vm;
        let compiler = vm.and_then(|vm| vm.compiler());
        let compiled =
            compiler.and_then(|compiler| compiler.unwind_rule(frame, self.record, self.process));
        let generated = || {
            let stack = stack_of(self.record);
            self.process.generated_rule(frame, self.record.time, stack)
        };
        if let Some(rule) = compiled.or_else(generated) {
            return rule;
        }
        // A system call may be its function's last instruction, as the one that returns from a signal's handler is.
        match frame.address {
            FrameAddress::Instruction(after)
                if self.record.has(flags::IN_KERNEL)
                    && self.record.regs.ip() == Some(after.get()) =>
            {
                self.mapped.rule(FrameAddress::Return(after).lookup())
            }
            _ => CodeRule::Unknown,
        }
    }

    fn is_code(&mut self, pc: Address) -> bool {
        self.mapped.is_code(pc)
    }

    fn begins_threads(&mut self, pc: Address) -> bool {
        self.mapped.begins_threads(pc)
    }

    fn keeps_frame_pointers(&mut self, pc: Address) -> bool {
        self.mapped.keeps_frame_pointers(pc)
    }

    fn function_start(&mut self, pc: Address) -> Option<Address> {
        self.mapped.function_start(pc)
    }
}

#[cfg(test)]
pub(crate) mod tests;
