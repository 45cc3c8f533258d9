//! The machine of a substitute.

use object::elf;

/// The machine whose tools read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetMachine {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit ARM.
    Aarch64,
    /// 32-bit ARM.
    Arm,
    /// 64-bit RISC-V.
    Riscv64,
}

impl TargetMachine {
    /// The machine that this program was built for.
    #[must_use]
    pub const fn host() -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::Aarch64
        } else if cfg!(target_arch = "arm") {
            Self::Arm
        } else if cfg!(target_arch = "x86") {
            Self::X86
        } else if cfg!(target_arch = "riscv64") {
            Self::Riscv64
        } else {
            Self::X86_64
        }
    }

    /// Size of an address in bytes.
    pub(super) fn address_size(self) -> usize {
        if self.is_64() { 8 } else { 4 }
    }

    pub(super) fn is_64(self) -> bool {
        !matches!(self, Self::X86 | Self::Arm)
    }

    /// Returns a no-op of `bytes` bytes, if the machine has one of that length.
    pub(super) fn no_operation(self, bytes: u8) -> Vec<u8> {
        match self {
            Self::X86_64 | Self::X86 => {
                // `nop` with prefixes. No instruction is longer than 15 bytes.
                let prefixes = usize::from(bytes.clamp(1, 15)).saturating_sub(1);
                let mut instruction = vec![0x66; prefixes];
                instruction.push(0x90);
                instruction
            }
            Self::Aarch64 => vec![0x1f, 0x20, 0x03, 0xd5],
            Self::Arm => vec![0x00, 0xf0, 0x20, 0xe3],
            Self::Riscv64 => vec![0x01, 0x00],
        }
    }

    pub(super) fn e_machine(self) -> u16 {
        match self {
            Self::X86_64 => elf::EM_X86_64,
            Self::X86 => elf::EM_386,
            Self::Aarch64 => elf::EM_AARCH64,
            Self::Arm => elf::EM_ARM,
            Self::Riscv64 => elf::EM_RISCV,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_that_does_nothing_is_as_long_as_a_code_unit_on_x86() {
        let of = |machine: TargetMachine, bytes| machine.no_operation(bytes);
        assert_eq!(of(TargetMachine::X86_64, 2), [0x66, 0x90]);
        for bytes in 1..=15 {
            assert_eq!(of(TargetMachine::X86, bytes).len(), usize::from(bytes));
        }
        for (bytes, length) in [(0, 1), (u8::MAX, 15)] {
            assert_eq!(of(TargetMachine::X86_64, bytes).len(), length);
        }
    }
}
