//! The register map: which register stands where in a record, by DWARF number.

use crate::abi::RECORD_REGS;

/// One register of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegInfo {
    /// DWARF number, as CFI and the tunnel's layouts name it.
    pub dwarf: u16,
    /// Bit in perf's `sample_regs_user` (arch/*/include/uapi/asm/perf_regs.h).
    pub perf: u8,
}

const fn reg(dwarf: u16, perf: u8) -> RegInfo {
    RegInfo { dwarf, perf }
}

/// The registers of a record, in their order: what a callee saves, then sp, then ip.
#[cfg(target_arch = "x86_64")]
pub const REGS: &[RegInfo] = &[
    reg(3, 1),   // rbx
    reg(6, 6),   // rbp
    reg(12, 20), // r12
    reg(13, 21), // r13
    reg(14, 22), // r14
    reg(15, 23), // r15
    reg(7, 7),   // rsp
    reg(16, 8),  // rip, the return address' column
];

/// The registers of a record, in their order: x19 to x30, sp, pc.
#[cfg(target_arch = "aarch64")]
pub const REGS: &[RegInfo] = &[
    reg(19, 19),
    reg(20, 20),
    reg(21, 21),
    reg(22, 22),
    reg(23, 23),
    reg(24, 24),
    reg(25, 25),
    reg(26, 26),
    reg(27, 27),
    reg(28, 28),
    reg(29, 29),
    reg(30, 30),
    reg(31, 31),
    reg(32, 32),
];

/// Index of the stack pointer in [`REGS`].
const SP: usize = REGS.len() - 2;
/// Index of the instruction pointer in [`REGS`].
const IP: usize = REGS.len() - 1;
/// Index of the frame pointer in [`REGS`].
const FP: usize = if cfg!(target_arch = "x86_64") { 1 } else { 10 };

/// The place in a record of a register known by its DWARF number.
pub fn dwarf_to_index(dwarf: u16) -> Option<usize> {
    REGS.iter().position(|reg| reg.dwarf == dwarf)
}

/// The user registers of a sample; those of [`REGS`], unknown ones are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Regs([Option<u64>; RECORD_REGS]);

impl Regs {
    /// All registers of a record are known.
    pub fn from_record(values: &[u64; RECORD_REGS]) -> Self {
        let mut regs = Self::default();
        for (to, from) in regs.0.iter_mut().zip(values).take(REGS.len()) {
            *to = Some(*from);
        }
        regs
    }

    /// The register with this DWARF number.
    pub fn get(&self, dwarf: u16) -> Option<u64> {
        dwarf_to_index(dwarf).and_then(|index| self.0.get(index).copied().flatten())
    }

    /// Sets the register with this DWARF number, if a record has it.
    pub fn set(&mut self, dwarf: u16, value: Option<u64>) {
        if let Some(slot) = dwarf_to_index(dwarf).and_then(|index| self.0.get_mut(index)) {
            *slot = value;
        }
    }

    /// Sets instruction, stack and frame pointer.
    pub fn set_frame(&mut self, ip: u64, sp: u64, fp: u64) {
        for (index, value) in [(IP, ip), (SP, sp), (FP, fp)] {
            if let Some(slot) = self.0.get_mut(index) {
                *slot = Some(value);
            }
        }
    }

    /// The stack pointer.
    pub fn sp(&self) -> Option<u64> {
        self.0.get(SP).copied().flatten()
    }

    /// The instruction pointer.
    pub fn ip(&self) -> Option<u64> {
        self.0.get(IP).copied().flatten()
    }

    /// The frame pointer.
    pub fn fp(&self) -> Option<u64> {
        self.0.get(FP).copied().flatten()
    }
}
