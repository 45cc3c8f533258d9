//! The text of an instruction, as binutils' disassembler prints it: with the usual aliases, and without a compressed form's prefix.

use std::fmt;

use varid_model::Address;

use crate::{
    Alu, Atomic, Condition, CsrAccess, Divide, Extension, Float, Instruction, Integer, Multiply,
    Operation, Precision, Register, Width,
};

/// An instruction at an address, to be displayed.
#[derive(Debug, Clone, Copy)]
pub struct Text<'i> {
    instruction: &'i Instruction,
    address: Address,
}

impl Instruction {
    /// Its text, if it is at an address: `beqz a0, 0x1008`.
    #[must_use]
    pub const fn text(&self, address: Address) -> Text<'_> {
        Text {
            instruction: self,
            address,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instruction {
            operation,
            rd,
            rs1,
            rs2,
            rs3,
            immediate,
            ..
        } = *self.instruction;
        // Addresses of RV32 wrap at 32 bits; those of RV64 that an offset leads to are printed in full.
        let target = self.address.wrapping_add_signed(immediate.into());
        let upper = immediate.cast_unsigned() >> 12;
        match operation {
            Operation::Lui => write!(f, "lui {rd}, {upper:#x}"),
            Operation::Auipc => write!(f, "auipc {rd}, {upper:#x}"),
            Operation::Jal => match rd {
                Register::ZERO => write!(f, "j {target}"),
                Register::RA => write!(f, "jal {target}"),
                _ => write!(f, "jal {rd}, {target}"),
            },
            Operation::Jalr => jump_register(f, rd, rs1, immediate),
            Operation::Branch(condition) => branch(f, condition, rs1, rs2, target),
            Operation::Load(width, extension) => {
                let unsigned = match extension {
                    Extension::Sign => "",
                    Extension::Zero => "u",
                };
                write!(f, "l{}{unsigned} {rd}, {immediate}({rs1})", suffix(width))
            }
            Operation::Store(width) => {
                write!(f, "s{} {rs2}, {immediate}({rs1})", suffix(width))
            }
            Operation::AluImmediate(alu) => immediate_operation(f, alu, rd, rs1, immediate),
            Operation::AluImmediateWord(Alu::Add) if immediate == 0 => {
                write!(f, "sext.w {rd}, {rs1}")
            }
            Operation::AluImmediateWord(alu) => match is_shift(alu) {
                true => write!(f, "{}w {rd}, {rs1}, {immediate:#x}", name(alu)),
                false => write!(f, "{}w {rd}, {rs1}, {immediate}", name(alu)),
            },
            Operation::Alu(alu) => register_operation(f, alu, rd, rs1, rs2),
            Operation::AluWord(Alu::Sub) if rs1 == Register::ZERO => {
                write!(f, "negw {rd}, {rs2}")
            }
            Operation::AluWord(alu) => write!(f, "{}w {rd}, {rs1}, {rs2}", name(alu)),
            Operation::Multiply(multiply) => {
                let name = match multiply {
                    Multiply::Low => "mul",
                    Multiply::High => "mulh",
                    Multiply::HighSignedUnsigned => "mulhsu",
                    Multiply::HighUnsigned => "mulhu",
                };
                write!(f, "{name} {rd}, {rs1}, {rs2}")
            }
            Operation::MultiplyWord => write!(f, "mulw {rd}, {rs1}, {rs2}"),
            Operation::Divide(divide) => {
                let (name, unsigned) = division(divide);
                write!(f, "{name}{unsigned} {rd}, {rs1}, {rs2}")
            }
            Operation::DivideWord(divide) => {
                let (name, unsigned) = division(divide);
                write!(f, "{name}{unsigned}w {rd}, {rs1}, {rs2}")
            }
            Operation::Fence => f.write_str("fence"),
            Operation::FenceI => f.write_str("fence.i"),
            Operation::Ecall => f.write_str("ecall"),
            Operation::Ebreak => f.write_str("ebreak"),
            Operation::TrapReturn => f.write_str("mret"),
            Operation::WaitForInterrupt => f.write_str("wfi"),
            Operation::Csr(access) => {
                write!(f, "csr{} {rd}, {immediate:#x}, {rs1}", csr(access))
            }
            Operation::CsrImmediate(access) => {
                let constant = rs1.number();
                write!(f, "csr{}i {rd}, {immediate:#x}, {constant}", csr(access))
            }
            Operation::LoadReserved(width) => write!(f, "lr.{} {rd}, ({rs1})", suffix(width)),
            Operation::StoreConditional(width) => {
                write!(f, "sc.{} {rd}, {rs2}, ({rs1})", suffix(width))
            }
            Operation::Atomic(atomic, width) => {
                let (name, width) = (atomic_name(atomic), suffix(width));
                write!(f, "amo{name}.{width} {rd}, {rs2}, ({rs1})")
            }
            Operation::LoadFloat(precision) => {
                write!(
                    f,
                    "fl{} {rd}, {immediate}({rs1})",
                    suffix(precision.width())
                )
            }
            Operation::StoreFloat(precision) => {
                write!(
                    f,
                    "fs{} {rs2}, {immediate}({rs1})",
                    suffix(precision.width())
                )
            }
            Operation::Float(float, precision) => {
                let operands = [rd, rs1, rs2, rs3];
                float_operation(f, float, precision, operands)
            }
        }
    }
}

fn jump_register(
    f: &mut fmt::Formatter<'_>,
    rd: Register,
    rs1: Register,
    immediate: i32,
) -> fmt::Result {
    match (rd, rs1, immediate) {
        (Register::ZERO, Register::RA, 0) => f.write_str("ret"),
        (Register::ZERO, _, 0) => write!(f, "jr {rs1}"),
        (Register::ZERO, _, _) => write!(f, "jr {immediate}({rs1})"),
        (Register::RA, _, 0) => write!(f, "jalr {rs1}"),
        (Register::RA, _, _) => write!(f, "jalr {immediate}({rs1})"),
        (_, _, 0) => write!(f, "jalr {rd}, {rs1}"),
        _ => write!(f, "jalr {rd}, {immediate}({rs1})"),
    }
}

fn branch(
    f: &mut fmt::Formatter<'_>,
    condition: Condition,
    rs1: Register,
    rs2: Register,
    target: Address,
) -> fmt::Result {
    let zero = Register::ZERO;
    match (condition, rs1 == zero, rs2 == zero) {
        (Condition::Equal, _, true) => write!(f, "beqz {rs1}, {target}"),
        (Condition::NotEqual, _, true) => write!(f, "bnez {rs1}, {target}"),
        (Condition::GreaterOrEqual, true, _) => write!(f, "blez {rs2}, {target}"),
        (Condition::GreaterOrEqual, _, true) => write!(f, "bgez {rs1}, {target}"),
        (Condition::Less, _, true) => write!(f, "bltz {rs1}, {target}"),
        (Condition::Less, true, _) => write!(f, "bgtz {rs2}, {target}"),
        _ => {
            let name = match condition {
                Condition::Equal => "beq",
                Condition::NotEqual => "bne",
                Condition::Less => "blt",
                Condition::GreaterOrEqual => "bge",
                Condition::LessUnsigned => "bltu",
                Condition::GreaterOrEqualUnsigned => "bgeu",
            };
            write!(f, "{name} {rs1}, {rs2}, {target}")
        }
    }
}

fn immediate_operation(
    f: &mut fmt::Formatter<'_>,
    alu: Alu,
    rd: Register,
    rs1: Register,
    immediate: i32,
) -> fmt::Result {
    match (alu, rs1, immediate) {
        (Alu::Add, Register::ZERO, 0) if rd == Register::ZERO => f.write_str("nop"),
        (Alu::Add, Register::ZERO, _) => write!(f, "li {rd}, {immediate}"),
        (Alu::Add, _, 0) => write!(f, "mv {rd}, {rs1}"),
        (Alu::Xor, _, -1) => write!(f, "not {rd}, {rs1}"),
        (Alu::And, _, 255) => write!(f, "zext.b {rd}, {rs1}"),
        (Alu::Sltu, _, 1) => write!(f, "seqz {rd}, {rs1}"),
        // The assembler takes `slt` with a constant for `slti`, but the disassembler does not print it.
        (Alu::Slt | Alu::Sltu, ..) => {
            let unsigned = match alu {
                Alu::Sltu => "u",
                _ => "",
            };
            write!(f, "slti{unsigned} {rd}, {rs1}, {immediate}")
        }
        _ if is_shift(alu) => write!(f, "{} {rd}, {rs1}, {immediate:#x}", name(alu)),
        _ => write!(f, "{} {rd}, {rs1}, {immediate}", name(alu)),
    }
}

fn register_operation(
    f: &mut fmt::Formatter<'_>,
    alu: Alu,
    rd: Register,
    rs1: Register,
    rs2: Register,
) -> fmt::Result {
    let zero = Register::ZERO;
    match (alu, rs1 == zero, rs2 == zero) {
        // What `c.mv` stands for.
        (Alu::Add, true, false) => write!(f, "mv {rd}, {rs2}"),
        (Alu::Sub, true, _) => write!(f, "neg {rd}, {rs2}"),
        (Alu::Slt, _, true) => write!(f, "sltz {rd}, {rs1}"),
        (Alu::Slt, true, _) => write!(f, "sgtz {rd}, {rs2}"),
        (Alu::Sltu, true, _) => write!(f, "snez {rd}, {rs2}"),
        _ => write!(f, "{} {rd}, {rs1}, {rs2}", name(alu)),
    }
}

fn float_operation(
    f: &mut fmt::Formatter<'_>,
    float: Float,
    precision: Precision,
    [rd, rs1, rs2, rs3]: [Register; 4],
) -> fmt::Result {
    let format = format(precision);
    let name = match float {
        Float::Add => "fadd",
        Float::Subtract => "fsub",
        Float::Multiply => "fmul",
        Float::Divide => "fdiv",
        Float::Minimum => "fmin",
        Float::Maximum => "fmax",
        Float::Equal => "feq",
        Float::Less => "flt",
        Float::LessOrEqual => "fle",
        Float::Sign if rs1 == rs2 => return write!(f, "fmv.{format} {rd}, {rs1}"),
        Float::SignNegated if rs1 == rs2 => return write!(f, "fneg.{format} {rd}, {rs1}"),
        Float::SignXor if rs1 == rs2 => return write!(f, "fabs.{format} {rd}, {rs1}"),
        Float::Sign => "fsgnj",
        Float::SignNegated => "fsgnjn",
        Float::SignXor => "fsgnjx",
        Float::MultiplyAdd => return fused(f, "fmadd", format, [rd, rs1, rs2, rs3]),
        Float::MultiplySubtract => return fused(f, "fmsub", format, [rd, rs1, rs2, rs3]),
        Float::NegatedMultiplySubtract => return fused(f, "fnmsub", format, [rd, rs1, rs2, rs3]),
        Float::NegatedMultiplyAdd => return fused(f, "fnmadd", format, [rd, rs1, rs2, rs3]),
        Float::SquareRoot => return write!(f, "fsqrt.{format} {rd}, {rs1}"),
        Float::Classify => return write!(f, "fclass.{format} {rd}, {rs1}"),
        Float::ToInteger(integer) => {
            let integer = integer_name(integer);
            return write!(f, "fcvt.{integer}.{format} {rd}, {rs1}");
        }
        Float::FromInteger(integer) => {
            let integer = integer_name(integer);
            return write!(f, "fcvt.{format}.{integer} {rd}, {rs1}");
        }
        Float::BitsToInteger => {
            return write!(f, "fmv.x.{} {rd}, {rs1}", suffix(precision.width()));
        }
        Float::BitsFromInteger => {
            return write!(f, "fmv.{}.x {rd}, {rs1}", suffix(precision.width()));
        }
        Float::Convert(from) => {
            let from = self::format(from);
            return write!(f, "fcvt.{format}.{from} {rd}, {rs1}");
        }
    };
    write!(f, "{name}.{format} {rd}, {rs1}, {rs2}")
}

fn fused(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    format: &str,
    [rd, rs1, rs2, rs3]: [Register; 4],
) -> fmt::Result {
    write!(f, "{name}.{format} {rd}, {rs1}, {rs2}, {rs3}")
}

const fn is_shift(alu: Alu) -> bool {
    matches!(alu, Alu::Sll | Alu::Srl | Alu::Sra)
}

const fn name(alu: Alu) -> &'static str {
    match alu {
        Alu::Add => "add",
        Alu::Sub => "sub",
        Alu::Sll => "sll",
        Alu::Slt => "slt",
        Alu::Sltu => "sltu",
        Alu::Xor => "xor",
        Alu::Srl => "srl",
        Alu::Sra => "sra",
        Alu::Or => "or",
        Alu::And => "and",
    }
}

const fn division(divide: Divide) -> (&'static str, &'static str) {
    match divide {
        Divide::Quotient => ("div", ""),
        Divide::QuotientUnsigned => ("div", "u"),
        Divide::Remainder => ("rem", ""),
        Divide::RemainderUnsigned => ("rem", "u"),
    }
}

const fn suffix(width: Width) -> &'static str {
    match width {
        Width::Byte => "b",
        Width::Half => "h",
        Width::Word => "w",
        Width::Double => "d",
    }
}

const fn format(precision: Precision) -> &'static str {
    match precision {
        Precision::Single => "s",
        Precision::Double => "d",
    }
}

const fn integer_name(integer: Integer) -> &'static str {
    match integer {
        Integer::Word => "w",
        Integer::WordUnsigned => "wu",
        Integer::Double => "l",
        Integer::DoubleUnsigned => "lu",
    }
}

const fn csr(access: CsrAccess) -> &'static str {
    match access {
        CsrAccess::Write => "rw",
        CsrAccess::Set => "rs",
        CsrAccess::Clear => "rc",
    }
}

const fn atomic_name(atomic: Atomic) -> &'static str {
    match atomic {
        Atomic::Swap => "swap",
        Atomic::Add => "add",
        Atomic::Xor => "xor",
        Atomic::And => "and",
        Atomic::Or => "or",
        Atomic::Minimum => "min",
        Atomic::Maximum => "max",
        Atomic::MinimumUnsigned => "minu",
        Atomic::MaximumUnsigned => "maxu",
    }
}

#[cfg(test)]
mod tests;
