//! Control and status registers.

use std::collections::HashMap;

use varid_processor::Cycles;
use varid_riscv::{CsrAccess, Instruction, Operation};

use crate::{fault::Cause, hart::Hart};

/// The registers' numbers, by the privileged specification, version 20211203, table 2.2 and following.
mod number {
    pub const FFLAGS: i32 = 0x001;
    pub const FRM: i32 = 0x002;
    pub const FCSR: i32 = 0x003;
    pub const MCYCLE: i32 = 0xb00;
    pub const MINSTRET: i32 = 0xb02;
    pub const MCYCLEH: i32 = 0xb80;
    pub const MINSTRETH: i32 = 0xb82;
    pub const CYCLE: i32 = 0xc00;
    pub const TIME: i32 = 0xc01;
    pub const INSTRET: i32 = 0xc02;
    pub const CYCLEH: i32 = 0xc80;
    pub const TIMEH: i32 = 0xc81;
    pub const INSTRETH: i32 = 0xc82;
}

/// Registers that keep what is written and do nothing: those of machine mode, which start-up code sets.
const MACHINE: std::ops::RangeInclusive<i32> = 0x300..=0x3ff;
/// Registers that are 0: vendor, architecture, implementation, hart.
const IDENTITY: std::ops::RangeInclusive<i32> = 0xf11..=0xf15;

/// The control and status registers that are not in [`Hart`].
#[derive(Debug, Clone, Default)]
pub struct ControlRegisters {
    machine: HashMap<i32, u32>,
}

impl ControlRegisters {
    /// Executes an instruction that reads or writes one. Counters cannot be written.
    pub fn execute(
        &mut self,
        hart: &mut Hart,
        instruction: &Instruction,
        instructions: u64,
        now: Cycles,
    ) -> Result<(), Cause> {
        let (access, operand) = match instruction.operation {
            Operation::Csr(access) => (access, hart.get(instruction.rs1)),
            Operation::CsrImmediate(access) => (access, instruction.rs1.number() as u32),
            _ => return Ok(()),
        };
        let number = instruction.immediate & 0xfff;
        let high = |value: u64| (value >> 32) as u32;
        let old = match number {
            number::FFLAGS => hart.fcsr & 0x1f,
            number::FRM => hart.fcsr >> 5 & 7,
            number::FCSR => hart.fcsr & 0xff,
            number::CYCLE | number::MCYCLE | number::TIME => now.0 as u32,
            number::CYCLEH | number::MCYCLEH | number::TIMEH => high(now.0),
            number::INSTRET | number::MINSTRET => instructions as u32,
            number::INSTRETH | number::MINSTRETH => high(instructions),
            _ if MACHINE.contains(&number) => {
                self.machine.get(&number).copied().unwrap_or_default()
            }
            _ if IDENTITY.contains(&number) => 0,
            _ => return Err(Cause::Csr(number)),
        };
        let new = match access {
            CsrAccess::Write => operand,
            CsrAccess::Set => old | operand,
            CsrAccess::Clear => old & !operand,
        };
        if instruction.writes_csr() {
            match number {
                number::FFLAGS => hart.fcsr = hart.fcsr & !0x1f | new & 0x1f,
                number::FRM => hart.fcsr = hart.fcsr & !0xe0 | (new & 7) << 5,
                number::FCSR => hart.fcsr = new & 0xff,
                _ if MACHINE.contains(&number) => {
                    self.machine.insert(number, new);
                }
                _ => {}
            }
        }
        hart.set(instruction.rd, old);
        Ok(())
    }
}
