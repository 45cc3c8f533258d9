//! The operations of instructions.
//!
//! Names and semantics are those of the RISC-V unprivileged specification, version 20191213. A compressed instruction has the operation that
//! it stands for.

/// What an instruction computes. Registers and constants are in [`crate::Instruction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `lui`: rd = immediate, which is shifted already.
    Lui,
    /// `auipc`: rd = address of the instruction + immediate, which is shifted already.
    Auipc,
    /// `jal`: rd = address of the next instruction; continue at the address of the instruction + immediate.
    Jal,
    /// `jalr`: rd = address of the next instruction; continue at rs1 + immediate, with the lowest bit cleared.
    Jalr,
    /// `beq` and so on: if rs1 and rs2 meet the condition, continue at the address of the instruction + immediate.
    Branch(Condition),
    /// `lb` and so on: rd = memory at rs1 + immediate.
    Load(Width, Extension),
    /// `sb` and so on: memory at rs1 + immediate = rs2.
    Store(Width),
    /// `addi` and so on: rd = rs1 op immediate. There is no subtraction.
    AluImmediate(Alu),
    /// `add` and so on: rd = rs1 op rs2.
    Alu(Alu),
    /// RV64, `addiw` and so on: the lower 32 bits of rs1 op immediate, sign-extended.
    AluImmediateWord(Alu),
    /// RV64, `addw` and so on: the lower 32 bits of rs1 op rs2, sign-extended.
    AluWord(Alu),
    /// `mul` and so on: rd = a half of the product of rs1 and rs2.
    Multiply(Multiply),
    /// RV64, `mulw`: the lower 32 bits of the product, sign-extended.
    MultiplyWord,
    /// `div` and so on: rd = rs1 / rs2 or the remainder.
    Divide(Divide),
    /// RV64, `divw` and so on: the same of the lower 32 bits, sign-extended.
    DivideWord(Divide),
    /// `fence`, `fence.tso` and `pause`.
    Fence,
    /// `fence.i`.
    FenceI,
    /// `ecall`.
    Ecall,
    /// `ebreak`.
    Ebreak,
    /// `mret`, `sret`.
    TrapReturn,
    /// `wfi`.
    WaitForInterrupt,
    /// `csrrw` and so on: the control and status register with the number `immediate` takes part, with rs1.
    Csr(CsrAccess),
    /// `csrrwi` and so on: the same, with the number of rs1 as the constant.
    CsrImmediate(CsrAccess),
    /// `lr`: rd = memory at rs1, which is reserved.
    LoadReserved(Width),
    /// `sc`: memory at rs1 = rs2 if it is still reserved; rd = 0 or 1 for failure.
    StoreConditional(Width),
    /// `amoadd` and so on: rd = memory at rs1; memory at rs1 = rd op rs2.
    Atomic(Atomic, Width),
    /// `flw`, `fld`: floating-point register rd = memory at rs1 + immediate.
    LoadFloat(Precision),
    /// `fsw`, `fsd`: memory at rs1 + immediate = floating-point register rs2.
    StoreFloat(Precision),
    /// An operation of floating-point registers. `immediate` is the rounding mode's number.
    Float(Float, Precision),
}

/// A branch's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `beq`: rs1 = rs2.
    Equal,
    /// `bne`: rs1 ≠ rs2.
    NotEqual,
    /// `blt`: rs1 < rs2, signed.
    Less,
    /// `bge`: rs1 ≥ rs2, signed.
    GreaterOrEqual,
    /// `bltu`: rs1 < rs2, unsigned.
    LessUnsigned,
    /// `bgeu`: rs1 ≥ rs2, unsigned.
    GreaterOrEqualUnsigned,
}

/// The width of a value in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Half,
    /// 4 bytes.
    Word,
    /// 8 bytes.
    Double,
}

impl Width {
    /// Its number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// How a loaded value fills a wider register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    /// By copies of its sign.
    Sign,
    /// By zeros.
    Zero,
}

/// An integer operation. Shifts take the lowest five bits of the amount, six in RV64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alu {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Shift left.
    Sll,
    /// 1 if the first is less, signed.
    Slt,
    /// 1 if the first is less, unsigned.
    Sltu,
    /// Exclusive or.
    Xor,
    /// Shift right, filled with zeros.
    Srl,
    /// Shift right, filled with the sign.
    Sra,
    /// Or.
    Or,
    /// And.
    And,
}

/// Which half of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Multiply {
    /// `mul`: the lower half.
    Low,
    /// `mulh`: the upper half, both signed.
    High,
    /// `mulhsu`: the upper half, rs1 signed, rs2 unsigned.
    HighSignedUnsigned,
    /// `mulhu`: the upper half, both unsigned.
    HighUnsigned,
}

/// A division. By zero: all bits set, or the dividend as remainder. The smallest number by -1: itself, remainder 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Divide {
    /// `div`.
    Quotient,
    /// `divu`.
    QuotientUnsigned,
    /// `rem`.
    Remainder,
    /// `remu`.
    RemainderUnsigned,
}

impl Divide {
    /// Returns true if the operands are signed.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Quotient | Self::Remainder)
    }
}

/// What happens to a control and status register. rd = its value before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CsrAccess {
    /// It gets the operand.
    Write,
    /// The bits of the operand are set. It is only read if the operand is register `zero` or the constant 0.
    Set,
    /// The bits of the operand are cleared. It is only read if the operand is register `zero` or the constant 0.
    Clear,
}

/// An atomic operation on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// The operand replaces the value.
    Swap,
    /// Sum.
    Add,
    /// Exclusive or.
    Xor,
    /// And.
    And,
    /// Or.
    Or,
    /// The smaller one, signed.
    Minimum,
    /// The larger one, signed.
    Maximum,
    /// The smaller one, unsigned.
    MinimumUnsigned,
    /// The larger one, unsigned.
    MaximumUnsigned,
}

/// A floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32 bits, extension F.
    Single,
    /// 64 bits, extension D.
    Double,
}

impl Precision {
    /// Its width in memory.
    #[must_use]
    pub const fn width(self) -> Width {
        match self {
            Self::Single => Width::Word,
            Self::Double => Width::Double,
        }
    }
}

/// An integer that is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integer {
    /// `w`: 32 bits, signed.
    Word,
    /// `wu`: 32 bits, unsigned.
    WordUnsigned,
    /// RV64, `l`: 64 bits, signed.
    Double,
    /// RV64, `lu`: 64 bits, unsigned.
    DoubleUnsigned,
}

/// A floating-point operation. Its registers are floating-point registers unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float {
    /// rs1 + rs2.
    Add,
    /// rs1 - rs2.
    Subtract,
    /// rs1 rs2.
    Multiply,
    /// rs1 / rs2.
    Divide,
    /// The square root of rs1.
    SquareRoot,
    /// `fmadd`: rs1 rs2 + rs3.
    MultiplyAdd,
    /// `fmsub`: rs1 rs2 - rs3.
    MultiplySubtract,
    /// `fnmsub`: -(rs1 rs2) + rs3.
    NegatedMultiplySubtract,
    /// `fnmadd`: -(rs1 rs2) - rs3.
    NegatedMultiplyAdd,
    /// `fsgnj`: rs1 with the sign of rs2.
    Sign,
    /// `fsgnjn`: rs1 with the opposite of the sign of rs2.
    SignNegated,
    /// `fsgnjx`: rs1 with the exclusive or of both signs.
    SignXor,
    /// The smaller one.
    Minimum,
    /// The larger one.
    Maximum,
    /// `feq`: integer register rd = 1 if rs1 = rs2.
    Equal,
    /// `flt`: integer register rd = 1 if rs1 < rs2.
    Less,
    /// `fle`: integer register rd = 1 if rs1 ≤ rs2.
    LessOrEqual,
    /// `fclass`: integer register rd = the class of rs1.
    Classify,
    /// `fcvt.w.s` and so on: integer register rd = rs1.
    ToInteger(Integer),
    /// `fcvt.s.w` and so on: rd = integer register rs1.
    FromInteger(Integer),
    /// `fmv.x.w`, `fmv.x.d`: integer register rd = the bits of rs1.
    BitsToInteger,
    /// `fmv.w.x`, `fmv.d.x`: rd = the bits of integer register rs1.
    BitsFromInteger,
    /// `fcvt.s.d`, `fcvt.d.s`: rd = rs1, which has this precision.
    Convert(Precision),
}
