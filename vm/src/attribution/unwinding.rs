//! Unwinds the native frames of a sample.

use super::Attribution;
use crate::ManagedProcess;
use crate::seam::Vm;
use crate::seam::stack_copy::stack_of;
use crate::seam::stack_positions::StackPositions;
use varid_model::{Address, FrameAddress, Stack};
use varid_process::{MappedCode, Process};
use varid_shim::{CapturedSample, ManagedFrame, flags};
use varid_unwind::{CodeRule, NativeFrame, NativeStack, Reached, UnwindInfo, UnwoundStack};

impl Attribution<'_> {
    /// Unwinds the native frames that the session records. `frames`: the managed frames that the shim walked. Returns the thread's previous stack if
    /// the new one is to replace it.
    pub(super) fn unwind(
        self,
        process: &mut ManagedProcess,
        vm: Option<&dyn Vm>,
        frames: &[ManagedFrame],
        leaf_is_managed: bool,
        native: &mut NativeStack,
    ) -> Option<UnwoundStack> {
        let Self {
            record, ip, stack, ..
        } = self;
        // Frames that were not walked are found by unwinding, which goes on behind those that were.
        let walked_all = !record.has(flags::LINKED_ONLY);
        if stack == Stack::None || (leaf_is_managed && stack == Stack::Vertical && walked_all) {
            leaf_only(native, record, ip);
            return None;
        }
        let positions = StackPositions::of(frames, record.ordinary_sp(), false);
        let until = frames
            .iter()
            .enumerate()
            .find(|(at, frame)| !frame.is_quick() && !positions.is_detached(*at))
            .map(|(_, frame)| frame)
            .filter(|_| stack == Stack::Vertical && walked_all)
            .filter(|_| vm.is_some_and(|vm| vm.is_on_native_stack()))
            .map(|frame| frame.address());
        // The next sample is most likely on the ordinary stack again.
        let knowledge = process.knowledge();
        let is_whole = until.is_none() && !record.has(flags::INTERRUPTED);
        let before = is_whole.then(|| process.unwound.take(record.tid, knowledge));
        let mut code = ProcessCode {
            mapped: MappedCode::new(process.space()),
            vm,
            record,
            process: &process.process,
        };
        let (regs, slice) = (&record.regs, stack_of(record));
        match &before {
            Some(before) => native.unwind_after(before, regs, slice, &mut code),
            None => native.unwind(regs, slice, until, &mut code),
        }
        before
    }
}

/// Sets the sampled instruction as the only frame.
pub(super) fn leaf_only(native: &mut NativeStack, record: &CapturedSample, ip: u64) {
    native.frames.clear();
    native.frames.push(NativeFrame {
        address: FrameAddress::Instruction(Address::new(ip)),
        sp: Address::new(record.regs.sp().unwrap_or(0)),
        regs: record.regs,
        reached: Reached::Unwound,
    });
    (native.end, native.stopped) = (None, None);
}

/// The code of a process: of its mappings, and of its VM's compiler.
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
