//! What an instruction does to registers and memory, if it does not change the flow of control.

pub mod integer;

use varid_riscv::{Atomic, Condition, Extension, Instruction, Operation, Precision, Width};

use crate::{
    fault::Cause,
    hart::Hart,
    memory::{Memory, Stored},
};

/// Executes an instruction at `pc`. The caller executes those that end a block.
///
/// # Errors
///
/// It uses memory that it must not use, or the machine does not have it.
#[inline]
pub fn execute(
    hart: &mut Hart,
    memory: &mut Memory,
    instruction: &Instruction,
    pc: u32,
) -> Result<Stored, Cause> {
    let Instruction {
        operation,
        rd,
        rs1,
        rs2,
        immediate,
        ..
    } = *instruction;
    let constant = immediate.cast_unsigned();
    let value = match operation {
        Operation::AluImmediate(op) => integer::alu(op, hart.get(rs1), constant),
        Operation::Alu(op) => integer::alu(op, hart.get(rs1), hart.get(rs2)),
        Operation::Load(width, extension) => load(
            memory,
            hart.get(rs1).wrapping_add(constant),
            width,
            extension,
        )?,
        Operation::Store(width) => {
            let address = hart.get(rs1).wrapping_add(constant);
            return store(memory, address, width, hart.get(rs2));
        }
        Operation::Lui => constant,
        Operation::Auipc => pc.wrapping_add(constant),
        Operation::Multiply(op) => integer::multiply(op, hart.get(rs1), hart.get(rs2)),
        Operation::Divide(op) => integer::divide(op, hart.get(rs1), hart.get(rs2)),
        Operation::Fence => return Ok(Stored::Data),
        Operation::LoadReserved(width) => {
            let address = hart.get(rs1);
            hart.reservation = Some(address);
            load(memory, address, width, Extension::Sign)?
        }
        Operation::StoreConditional(width) => {
            let (address, value) = (hart.get(rs1), hart.get(rs2));
            let is_reserved = hart.reservation.take() == Some(address);
            let stored = match is_reserved {
                true => store(memory, address, width, value)?,
                false => Stored::Data,
            };
            hart.set(rd, u32::from(!is_reserved));
            return Ok(stored);
        }
        Operation::Atomic(op, width) => return atomic(hart, memory, instruction, op, width),
        Operation::LoadFloat(precision) => {
            let address = hart.get(rs1).wrapping_add(constant);
            let bits = match precision {
                Precision::Single => boxed(u32::from_le_bytes(memory.load(address)?)),
                Precision::Double => u64::from_le_bytes(memory.load(address)?),
            };
            hart.set_float(rd, bits);
            return Ok(Stored::Data);
        }
        Operation::StoreFloat(precision) => {
            let address = hart.get(rs1).wrapping_add(constant);
            let bytes = hart.float(rs2).to_le_bytes();
            return Ok(match precision {
                Precision::Single => memory.store(address, (hart.float(rs2) as u32).to_le_bytes()),
                Precision::Double => memory.store(address, bytes),
            }?);
        }
        Operation::Float(..) => return Err(Cause::Unsupported("floating-point operations")),
        Operation::AluImmediateWord(_)
        | Operation::AluWord(_)
        | Operation::MultiplyWord
        | Operation::DivideWord(_) => return Err(Cause::Unsupported("instructions of RV64")),
        // They end blocks.
        Operation::Jal
        | Operation::Jalr
        | Operation::Branch(_)
        | Operation::FenceI
        | Operation::Ecall
        | Operation::Ebreak
        | Operation::TrapReturn
        | Operation::WaitForInterrupt
        | Operation::Csr(_)
        | Operation::CsrImmediate(_) => return Ok(Stored::Data),
    };
    hart.set(rd, value);
    Ok(Stored::Data)
}

/// Returns true if a branch is taken.
#[inline]
#[must_use]
pub fn is_taken(condition: Condition, left: u32, right: u32) -> bool {
    match condition {
        Condition::Equal => left == right,
        Condition::NotEqual => left != right,
        Condition::Less => left.cast_signed() < right.cast_signed(),
        Condition::GreaterOrEqual => left.cast_signed() >= right.cast_signed(),
        Condition::LessUnsigned => left < right,
        Condition::GreaterOrEqualUnsigned => left >= right,
    }
}

/// A value of 32 bits in a register of 64: with ones above it.
fn boxed(bits: u32) -> u64 {
    u64::from(bits) | 0xffff_ffff_0000_0000
}

fn load(memory: &Memory, at: u32, width: Width, extension: Extension) -> Result<u32, Cause> {
    Ok(match (width, extension) {
        (Width::Byte, Extension::Zero) => u8::from_le_bytes(memory.load(at)?).into(),
        (Width::Byte, Extension::Sign) => {
            i32::from(i8::from_le_bytes(memory.load(at)?)).cast_unsigned()
        }
        (Width::Half, Extension::Zero) => u16::from_le_bytes(memory.load(at)?).into(),
        (Width::Half, Extension::Sign) => {
            i32::from(i16::from_le_bytes(memory.load(at)?)).cast_unsigned()
        }
        (Width::Word, _) => u32::from_le_bytes(memory.load(at)?),
        (Width::Double, _) => return Err(Cause::Unsupported("instructions of RV64")),
    })
}

fn store(memory: &mut Memory, at: u32, width: Width, value: u32) -> Result<Stored, Cause> {
    Ok(match width {
        Width::Byte => memory.store(at, (value as u8).to_le_bytes())?,
        Width::Half => memory.store(at, (value as u16).to_le_bytes())?,
        Width::Word => memory.store(at, value.to_le_bytes())?,
        Width::Double => return Err(Cause::Unsupported("instructions of RV64")),
    })
}

fn atomic(
    hart: &mut Hart,
    memory: &mut Memory,
    instruction: &Instruction,
    op: Atomic,
    width: Width,
) -> Result<Stored, Cause> {
    let address = hart.get(instruction.rs1);
    let old = load(memory, address, width, Extension::Sign)?;
    let operand = hart.get(instruction.rs2);
    let (signed_old, signed_operand) = (old.cast_signed(), operand.cast_signed());
    let new = match op {
        Atomic::Swap => operand,
        Atomic::Add => old.wrapping_add(operand),
        Atomic::Xor => old ^ operand,
        Atomic::And => old & operand,
        Atomic::Or => old | operand,
        Atomic::Minimum => signed_old.min(signed_operand).cast_unsigned(),
        Atomic::Maximum => signed_old.max(signed_operand).cast_unsigned(),
        Atomic::MinimumUnsigned => old.min(operand),
        Atomic::MaximumUnsigned => old.max(operand),
    };
    let stored = store(memory, address, width, new)?;
    hart.set(instruction.rd, old);
    Ok(stored)
}
