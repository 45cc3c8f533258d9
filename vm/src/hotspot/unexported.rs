//! What HotSpot's tables do not have, by version: constants of its assembly code and encodings.

use super::error::{JvmError, Result};
use super::version::VmVersion;
use varid_model::Machine;

/// Facts of a version that no table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unexported {
    /// Whether descriptions of this version are tested.
    pub tested: Tested,
    /// `frame::interpreter_frame_method_offset`: where an interpreter frame has its `Method`, in bytes from the frame pointer.
    pub frame_method: i32,
    /// `frame::interpreter_frame_bcp_offset`: where it has the pointer to its bytecode, in bytes from the frame pointer.
    pub frame_bcp: i32,
    /// Where the interpreter has what it works on.
    pub registers: InterpreterRegisters,
    /// How an interpreter frame leads to its local variables.
    pub locals: Locals,
    /// How numbers of the debug information are encoded.
    pub numbers: Unsigned5,
}

/// Registers of the interpreter, by their DWARF numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterpreterRegisters {
    /// It has the `Method` while that is entered.
    pub method: u16,
    /// It has the address of the current instruction in the code that executes one.
    pub bcp: u16,
}

/// rbx and r13.
const X86_64: InterpreterRegisters = InterpreterRegisters { method: 3, bcp: 13 };
/// x12 (`rmethod`) and x22 (`rbcp`).
const AARCH64: InterpreterRegisters = InterpreterRegisters {
    method: 12,
    bcp: 22,
};

/// Whether descriptions of a version are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// With Debian's builds.
    Yes,
    /// The facts are those of its sources.
    No,
}

/// How an interpreter frame leads to its local variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locals {
    /// By their address.
    Absolute,
    /// By the distance from the frame pointer, in words.
    Relative,
}

/// The encoding of numbers in debug information and tables of lines (utilities/unsigned5.hpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsigned5 {
    /// Bytes below 192 end a number.
    WithZero,
    /// One is subtracted from each byte, none of which is 0, and those below 191 end a number.
    WithoutZero,
}

/// The oldest version of which the facts are known, and the newest.
const KNOWN: std::ops::RangeInclusive<u32> = 11..=25;
/// The versions that tests describe.
const TESTED: [(Machine, u32); 4] = [
    (Machine::X86_64, 17),
    (Machine::X86_64, 21),
    (Machine::X86_64, 25),
    (Machine::Aarch64, 17),
];
/// The first version whose interpreter frames have relative pointers to local variables.
const RELATIVE_LOCALS: u32 = 21;
/// The first version that encodes numbers without zeros.
const WITHOUT_ZERO: u32 = 20;

impl Unexported {
    /// Returns the facts of a version.
    pub(super) fn of(version: &VmVersion, machine: Machine) -> Result<Self> {
        let major = version.major;
        // frame_x86.hpp, frame_aarch64.hpp: arm64 has a word for alignment, or for the extended stack pointer, between them.
        let (frame_bcp, registers) = match machine {
            Machine::X86_64 => (-64, X86_64),
            Machine::Aarch64 => (-72, AARCH64),
            Machine::X86 | Machine::Arm => return Err(JvmError::Machine),
        };
        if !KNOWN.contains(&major) {
            return Err(JvmError::NotKnown {
                vm: version.to_string(),
                fact: "what an interpreter frame has where (frame::interpreter_frame_bcp_offset)",
            });
        }
        let is_tested = TESTED.contains(&(machine, major));
        Ok(Self {
            tested: match is_tested {
                true => Tested::Yes,
                false => Tested::No,
            },
            frame_method: -24,
            frame_bcp,
            registers,
            locals: match major >= RELATIVE_LOCALS {
                true => Locals::Relative,
                false => Locals::Absolute,
            },
            numbers: match major >= WITHOUT_ZERO {
                true => Unsigned5::WithoutZero,
                false => Unsigned5::WithZero,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(major: u32, machine: Machine) -> Result<Unexported> {
        let release = format!("{major}.0.1+1");
        Unexported::of(&VmVersion { major, release }, machine)
    }

    #[test]
    fn facts_change_with_the_version_and_the_machine() {
        let [old, new] = [17, 21].map(|major| of(major, Machine::X86_64).unwrap());
        assert_eq!((old.frame_method, old.frame_bcp), (-24, -64));
        assert_eq!(
            (old.locals, old.numbers),
            (Locals::Absolute, Unsigned5::WithZero)
        );
        assert_eq!(
            (new.locals, new.numbers),
            (Locals::Relative, Unsigned5::WithoutZero)
        );
        assert_eq!((old.tested, new.tested), (Tested::Yes, Tested::Yes));
        let arm64 = of(21, Machine::Aarch64).unwrap();
        assert_eq!((arm64.frame_bcp, arm64.tested), (-72, Tested::No));
        assert_eq!(of(11, Machine::X86_64).unwrap().tested, Tested::No);
    }

    #[test]
    fn a_version_of_which_nothing_is_known_is_refused_by_name() {
        for major in [8, 26] {
            let refused = of(major, Machine::X86_64).unwrap_err().to_string();
            let version = format!("HotSpot {major}.0.1+1: what an interpreter frame has where");
            assert!(refused.starts_with(&version), "{refused}");
        }
        assert_eq!(of(17, Machine::Arm), Err(JvmError::Machine));
    }
}
