//! What has a signal interrupted? The kernel's trampoline has unwind information that leads to the link register, which is not where the
//! thread was: its function's return address, or that of a call before. The registers are in the frame that the kernel has pushed.

use crate::architecture::Caller;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use varid_model::{Address, Machine};

/// In the frame, `struct rt_sigframe` of the kernel: the registers x0 to x30, then the stack pointer and the instruction. Before them are
/// a `siginfo_t` of 128 bytes, 168 bytes of a `ucontext_t` up to its `mcontext_t`, which has an alignment of 16, and the fault's address.
const REGISTERS: u64 = 312;
const STACK_POINTER: u16 = 31;
const INSTRUCTION: u16 = 32;

/// What was interrupted, if the kernel has pushed this frame: it has the same link register and frame pointer as `linked`, where its unwind
/// information leads.
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
