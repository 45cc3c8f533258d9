//! Finds the frames that the switch interpreter executes, where only a copy of the stack shows them.
//!
//! `ExecuteSwitchImplCpp` is a C++ function: no known register leads to its frame. It is called by the assembly `ExecuteSwitchImplAsm`,
//! whose caller has a `SwitchImplContext` on its stack. The third word of that points to the `ShadowFrame`
//! (interpreter/interpreter_switch_impl.h). The caller's code shows where on its stack the context is. The frame is accepted only if it
//! lies in the stack of the caller, which may have made it itself, or beyond, and if its method begins with the bytecode that the unwind
//! information of `ExecuteSwitchImplAsm` names, which is found independently. At the first and the last instructions of either function
//! that bytecode is unknown: there the method must have bytecode.

use crate::art::layout::first_argument_on_stack;
use crate::described::Description;
use crate::described::interpreter_loop::CalledFrames;
use crate::seam::CodeKind;
use crate::seam::Method;
use crate::seam::stack_copy::stack_of;
use crate::seam::{Methods, Unwound};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use varid_model::{Address, Machine, Reason};
use varid_process::MappedCode;
use varid_process::reader::ForeignMemory;
use varid_tunnel::Memory;
use varid_tunnel::abi::{RULE_LIST, Rule};
use varid_unwind::{BytecodePc, NativeFrame, StackSlice, bytecode_pc};

/// Index of the pointer to the frame in a context, in words.
const SHADOW_FRAME: u64 = 2;
/// The largest function that calls the interpreter, in bytes. Debian's longest has 2,400.
const MAX_FUNCTION: u64 = 1 << 16;
/// The most calls of the interpreter in a library. ART 11 has 22.
const MAX_CALLS: usize = 64;

/// The contexts of the calls of the interpreter, by the return address of the call: the context's offset from the stack pointer at the
/// first instruction of the calling function, or why it is not known.
#[derive(Debug, Default)]
pub(super) struct SwitchCalls(RefCell<HashMap<Address, Result<i64, Reason>>>);

impl SwitchCalls {
    /// Returns the frames that the switch interpreter executes in a sample, for each native frame of `ExecuteSwitchImplAsm`.
    pub(super) fn frames(
        &self,
        description: &Description,
        sample: &Unwound<'_>,
        process: &mut dyn Methods,
    ) -> CalledFrames {
        let native = &sample.native.frames;
        let Some(rule) = description
            .layout
            .rules()
            .iter()
            .find(|rule| rule.kind == RULE_LIST)
        else {
            return CalledFrames::default();
        };
        let stack = stack_of(sample.record);
        let is_interpreter = |frame: &NativeFrame| {
            let ip = frame.lookup().get();
            description.code_at(ip) == Some(CodeKind::Interpreter) && !description.is_at_sp(ip)
        };
        let mut found = CalledFrames::default();
        for (depth, frame) in native
            .iter()
            .enumerate()
            .filter(|(_, frame)| is_interpreter(frame))
        {
            let mut code = MappedCode::new(&process.process().space);
            let first = match bytecode_pc(stack, frame, &mut code) {
                BytecodePc::MethodAt(first) => Some(first),
                BytecodePc::Unknown => None,
                BytecodePc::At(_) | BytecodePc::NoInterpreter => continue,
            };
            let frame = self.frame((description, rule), sample, depth, first, process);
            found.insert(depth, frame);
        }
        found
    }

    /// Returns the frame that the call of the interpreter at `depth` executes. `first`: its method's first instruction, if known.
    fn frame(
        &self,
        (description, rule): (&Description, &Rule),
        sample: &Unwound<'_>,
        depth: usize,
        first: Option<Address>,
        process: &mut dyn Methods,
    ) -> Result<Address, Reason> {
        let native = sample.native;
        let stack = stack_of(sample.record);
        let after = |by| native.frames.get(depth.saturating_add(by));
        let caller = after(1).ok_or(Reason::Truncated)?;
        let end = after(2).map(|frame| frame.sp).or(native.end);
        let machine = caller.regs.machine();
        let end = end.ok_or(Reason::Truncated)?;
        let context = self.context(description, caller.address.recorded(), machine, process)?;
        let frame = frame_of_call(stack, machine, caller.sp..end, context)?;
        let method = stack
            .word(machine, frame.wrapping_add(rule.frame_method.into()))
            .ok_or(Reason::Truncated)?;
        match process.method(method) {
            Method::Known {
                code: Some(code), ..
            } if first.is_none_or(|first| code.start == first.get()) => Ok(frame),
            Method::Gone => Err(Reason::VmGone),
            _ => Err(Reason::TornFrames),
        }
    }

    /// Returns the offset of a call's context.
    fn context(
        &self,
        description: &Description,
        returns: Address,
        machine: Machine,
        process: &mut dyn Methods,
    ) -> Result<i64, Reason> {
        if let Some(known) = self.0.borrow().get(&returns) {
            return *known;
        }
        if self.0.borrow().len() >= MAX_CALLS {
            return Err(Reason::TornFrames);
        }
        let found = read_context(description, returns, machine, process);
        self.0.borrow_mut().insert(returns, found);
        found
    }
}

/// Reads the code of the calling function. It is code of a library: it does not change, and can be read while the process lives.
fn read_context(
    description: &Description,
    returns: Address,
    machine: Machine,
    process: &mut dyn Methods,
) -> Result<i64, Reason> {
    let call = returns.get().wrapping_sub(1);
    let function = description.bridge_at(call).ok_or(Reason::TornFrames)?;
    let size = function.end.saturating_sub(function.start);
    let size = usize::try_from(size)
        .ok()
        .filter(|_| size <= MAX_FUNCTION)
        .ok_or(Reason::TornFrames)?;
    let mut code = vec![0; size];
    let memory = ForeignMemory::new(process.process().pid);
    memory
        .read(function.start, &mut code)
        .map_err(|_| Reason::VmGone)?;
    let found = first_argument_on_stack(machine, &code, function.start, returns.get());
    found.ok_or(Reason::TornFrames)
}

/// Returns the interpreter's frame that a context leads to. `caller`: the stack of the function that has called the interpreter. `context`:
/// the context's offset from the stack pointer at that function's first instruction.
///
/// # Errors
///
/// A word lies beyond the copy of the stack, or the frame is below the caller's: the VM makes some frames on its heap.
fn frame_of_call(
    stack: StackSlice<'_>,
    machine: Machine,
    caller: Range<Address>,
    context: i64,
) -> Result<Address, Reason> {
    let word = u64::from(machine.word());
    // The call has pushed the return address, or left it in a register.
    let pushed = match machine {
        Machine::X86_64 | Machine::X86 => word,
        Machine::Aarch64 | Machine::Arm => 0,
    };
    let entry = caller.end.get().wrapping_sub(pushed);
    let context = Address::new(entry).wrapping_add_signed(context);
    let pointer = context.wrapping_add(SHADOW_FRAME.wrapping_mul(word));
    let frame = stack.word(machine, pointer).ok_or(Reason::Truncated)?;
    match frame >= caller.start.get() {
        true => Ok(Address::new(frame)),
        false => Err(Reason::TornFrames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SP: u64 = 0x7000;
    const END: u64 = 0x7100;

    /// What a context at 0x70a8 says that leads to a frame at this address. The copy of the stack has 512 bytes.
    fn of_frame_at(frame: u64, context: i64) -> Result<Address, Reason> {
        let mut bytes = vec![0; 512];
        let pointer = 0x70a8 + 16 - SP as usize;
        bytes[pointer..pointer + 8].copy_from_slice(&frame.to_ne_bytes());
        let stack = StackSlice::new(Address::new(SP), &bytes);
        let caller = Address::new(SP)..Address::new(END);
        frame_of_call(stack, Machine::X86_64, caller, context)
    }

    #[test]
    fn a_frame_is_its_callers_or_one_of_a_caller_of_that() {
        let context = 0x70a8 - (END as i64 - 8);
        // ART 11 makes it where the interpreter is called, ART 14 further out.
        for frame in [SP, 0x7020, END, 0x7fff_0000] {
            assert_eq!(of_frame_at(frame, context), Ok(Address::new(frame)));
        }
        assert_eq!(of_frame_at(SP - 8, context), Err(Reason::TornFrames));
        assert_eq!(of_frame_at(0, context), Err(Reason::TornFrames));
        assert_eq!(of_frame_at(SP, 0x1000), Err(Reason::Truncated));
    }
}
