//! The bytecode that a frame executes, according to the unwind information of its function.

use crate::dex_marker::BytecodePc;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use crate::unwind_info::{CodeRule, UnwindInfo};

/// Returns the bytecode that a frame of a stack executes.
pub fn bytecode_pc(
    stack: StackSlice<'_>,
    frame: &NativeFrame,
    info: &mut (impl UnwindInfo + ?Sized),
) -> BytecodePc {
    match info.rule(frame.lookup()) {
        CodeRule::Rule(rule) if rule.machine == frame.regs.machine() => {
            rule.bytecode_pc(&frame.regs, stack)
        }
        CodeRule::Rule(_)
        | CodeRule::Unknown
        | CodeRule::NotRead
        | CodeRule::NoCode
        | CodeRule::Elsewhere => BytecodePc::NoInterpreter,
    }
}
