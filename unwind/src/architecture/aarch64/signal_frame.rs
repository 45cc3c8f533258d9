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
/// The first of the records behind them, which are aligned to 16 bytes: floating-point registers, FPSIMD_MAGIC and the size of its
/// `struct fpsimd_context`.
const RECORDS: u64 = 592;
const FLOATING_POINT: u64 = 0x210 << 32 | 0x4650_8001;

/// Returns what was interrupted, if the kernel has pushed this frame: it has the same link register and frame pointer as `linked`, the
/// caller by the frame's unwind information or frame pointer.
///
/// rt_sigreturn(2) restores the registers one after the other, in the order of the frame. A sample that interrupts it when the frame pointer
/// is restored, and the stack pointer is not, is told by the frame's own contents.
pub(super) fn interrupted(
    frame: &NativeFrame,
    linked: Option<&Caller>,
    stack: StackSlice<'_>,
) -> Option<Caller> {
    let machine = Machine::Aarch64;
    let at = |offset: u64| {
        let address = frame.sp.get().checked_add(offset)?;
        stack.word(machine, Address::new(address))
    };
    let word = |number: u16| at(REGISTERS.checked_add(u64::from(number).checked_mul(8)?)?);
    let link = word(machine.link()?);
    let has_pushed = linked.is_some_and(|linked| {
        link == linked.regs.get(machine.ip()) && word(machine.fp()) == linked.regs.get(machine.fp())
    });
    let is_restoring = || {
        frame.address.is_instruction()
            && at(RECORDS) == Some(FLOATING_POINT)
            && word(machine.fp()) == frame.regs.fp()
    };
    if !has_pushed && !is_restoring() {
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
