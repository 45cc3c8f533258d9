//! The registers that a signal interrupted. The unwind information of the kernel's trampoline leads to the link register, which is not
//! where the thread was: it holds the return address of the function, or of an earlier call. The registers are in the frame that the kernel
//! has pushed.

use crate::architecture::Caller;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use varid_model::{Address, Machine};

/// The offset of the registers in the frame, the kernel's `struct rt_sigframe`: x0 to x30, then the stack pointer and the instruction
/// pointer. Before them are a `siginfo_t` of 128 bytes, the 168 bytes of a `ucontext_t` before its `mcontext_t`, which is aligned to 16
/// bytes, and the fault address.
const REGISTERS: u64 = 312;
const STACK_POINTER: u16 = 31;
const INSTRUCTION: u16 = 32;

/// Returns what was interrupted, if the kernel has pushed this frame: it has the same link register and frame pointer as `linked`, the
/// caller by the frame's unwind information.
pub(super) fn interrupted(
    frame: &NativeFrame,
    linked: &Caller,
    stack: StackSlice<'_>,
) -> Option<Caller> {
    let machine = Machine::Aarch64;
    let word = |number: u16| {
        let offset = REGISTERS.checked_add(u64::from(number).checked_mul(8)?)?;
        let at = frame.sp.get().checked_add(offset)?;
        stack.word(machine, Address::new(at))
    };
    let is_signal_frame = word(machine.link()?) == linked.regs.get(machine.ip())
        && word(machine.fp()) == linked.regs.get(machine.fp());
    if !is_signal_frame {
        return None;
    }
    let mut regs = frame.regs;
    for number in machine.regs().iter().map(|register| register.dwarf) {
        if number < STACK_POINTER {
            regs.set(number, word(number));
        }
    }
    let sp = word(STACK_POINTER)?;
    regs.set_frame(word(INSTRUCTION)?, sp, word(machine.fp())?);
    Some(Caller {
        cfa: Address::new(sp),
        regs,
    })
}
