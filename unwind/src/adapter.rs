//! Which frame does an adapter leave: code that calls one function, and returns right behind the call?

use crate::architecture;
use crate::fixed_frame::FixedFrame;
use varid_model::Machine;

/// The frame that the code at a return address leaves, as its next instructions say: they free it, restore registers and return.
/// None: they do anything else. `code`: the bytes from the return address on, of which 24 are enough.
pub fn frame_left_by(machine: Machine, code: &[u8]) -> Option<FixedFrame> {
    architecture::of(machine).frame_left_by(machine, code)
}

/// Whether [`frame_left_by`] reads a machine's code: that of x86-64.
pub fn reads_adapters(machine: Machine) -> bool {
    machine == Machine::X86_64
}
