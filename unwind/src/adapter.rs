//! The frame of an adapter: code that calls one function and returns right after the call.

use crate::architecture;
use crate::fixed_frame::FixedFrame;
use varid_model::Machine;

/// Returns the frame that the code at a return address pops, if its next instructions free the frame, restore registers and return, and do
/// nothing else. `code`: the bytes from the return address on; 24 are enough.
pub fn frame_left_by(machine: Machine, code: &[u8]) -> Option<FixedFrame> {
    architecture::of(machine).frame_left_by(machine, code)
}

/// Returns true if [`frame_left_by`] can read the code of a machine: only x86-64.
pub fn reads_adapters(machine: Machine) -> bool {
    machine == Machine::X86_64
}
