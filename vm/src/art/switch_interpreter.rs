//! Which frame does the switch interpreter execute, where only a copy of the stack tells?
//!
//! `ExecuteSwitchImplCpp` is a C++ function: no register is known to lead to its frame. What calls it does so by the assembly
//! `ExecuteSwitchImplAsm` with a `SwitchImplContext` on its stack, whose third word points to the `ShadowFrame`
//! (interpreter/interpreter_switch_impl.h). The code of the caller says where on its stack that is. The frame counts only if it lies
//! in the stack of the caller, which may have made it itself, or beyond, and if its method begins with the bytecode that the unwind
//! information of `ExecuteSwitchImplAsm` names, which is found independently of it. At the first and the last instructions of either
//! function that is unknown: there the method must have bytecode.

use crate::art_layout::first_argument_on_stack;
use crate::code_kind::CodeKind;
use crate::facts::VmFacts;
use crate::interpreter_loop::CalledFrames;
use crate::kind::{Methods, Unwound};
use crate::method::Method;
use crate::stack_copy::stack_of;
use std::cell::RefCell;
use std::collections::HashMap;
use varid_model::{Address, Machine, Reason};
use varid_process::MappedCode;
use varid_process::reader::ForeignMemory;
use varid_tunnel::Memory;
use varid_tunnel::abi::{RULE_LIST, Rule};
use varid_unwind::{BytecodePc, NativeFrame, bytecode_pc};

/// The place of the pointer to the frame in a context, in words.
const SHADOW_FRAME: u64 = 2;
/// Bytes of a function that calls the interpreter; Debian's longest has 2,400.
const MAX_FUNCTION: u64 = 1 << 16;
/// Calls of the interpreter that a library has; ART 11 has 22.
const MAX_CALLS: usize = 64;

/// Where the contexts of the calls of the interpreter are, by the address that a call returns to: from the stack pointer at the first
/// instruction of the calling function. None: the code does not say it.
#[derive(Debug, Default)]
pub(super) struct SwitchCalls(RefCell<HashMap<Address, Option<i64>>>);

impl SwitchCalls {
    /// The frames that the switch interpreter executes in a sample, of each native frame of `ExecuteSwitchImplAsm`.
    pub(super) fn frames(
        &self,
        facts: &VmFacts,
        sample: &Unwound<'_>,
        process: &mut dyn Methods,
    ) -> CalledFrames {
        let native = &sample.native.frames;
        let Some(rule) = facts
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
            facts.code_at(ip) == Some(CodeKind::Interpreter) && !facts.is_at_sp(ip)
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
            let frame = self.frame((facts, rule), sample, depth, first, process);
            found.insert(depth, frame);
        }
        found
    }

    /// The frame that is executed by the call of the interpreter at a depth; `first`: its method's first instruction, if that is known.
    fn frame(
        &self,
        (facts, rule): (&VmFacts, &Rule),
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
        // A call has pushed the return address, or has left it in a register.
        let pushed = match machine {
            Machine::X86_64 | Machine::X86 => u64::from(machine.word()),
            Machine::Aarch64 | Machine::Arm => 0,
        };
        let end = end.ok_or(Reason::Truncated)?;
        let entry = end.get().wrapping_sub(pushed);
        let returns = caller.address.recorded();
        let offset = self
            .context(facts, returns, machine, process)
            .ok_or(Reason::TornFrames)?;
        let context = entry.wrapping_add_signed(offset);
        let pointer = context.wrapping_add(SHADOW_FRAME.wrapping_mul(machine.word().into()));
        let word = |address: u64| {
            stack
                .word(machine, Address::new(address))
                .ok_or(Reason::Truncated)
        };
        let frame = word(pointer)?;
        let is_live = frame >= caller.sp.get();
        let method = word(frame.wrapping_add(rule.frame_method.into()))?;
        match process.method(method) {
            Method::Known {
                code: Some(code), ..
            } if is_live && first.is_none_or(|first| code.start == first.get()) => {
                Ok(Address::new(frame))
            }
            Method::Gone => Err(Reason::VmGone),
            _ => Err(Reason::TornFrames),
        }
    }

    /// Where the context of a call is.
    fn context(
        &self,
        facts: &VmFacts,
        returns: Address,
        machine: Machine,
        process: &mut dyn Methods,
    ) -> Option<i64> {
        if let Some(known) = self.0.borrow().get(&returns) {
            return *known;
        }
        let found = read_context(facts, returns, machine, process);
        let mut known = self.0.borrow_mut();
        if known.len() < MAX_CALLS {
            known.insert(returns, found);
        }
        found
    }
}

/// Reads the calling function's code, which is a library's: it is the same at all times.
fn read_context(
    facts: &VmFacts,
    returns: Address,
    machine: Machine,
    process: &mut dyn Methods,
) -> Option<i64> {
    let function = facts.bridge_at(returns.get().checked_sub(1)?)?;
    let size = function.end.checked_sub(function.start)?;
    let mut code = vec![
        0;
        usize::try_from(size)
            .ok()
            .filter(|_| size <= MAX_FUNCTION)?
    ];
    let memory = ForeignMemory::new(process.process().pid);
    memory.read(function.start, &mut code).ok()?;
    first_argument_on_stack(machine, &code, function.start, returns.get())
}
