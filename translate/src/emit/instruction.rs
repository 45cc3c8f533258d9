//! What instructions do to registers and memory.

use std::mem::offset_of;

use cranelift_codegen::ir::{
    AliasRegion, InstBuilder, MemFlags, Type, Value, condcodes::IntCC, types,
};
use varid_processor::{Steps, Variation};
use varid_riscv::{Alu, Condition, Divide, Extension, Instruction, Multiply, Operation, Width};

use super::{
    accesses::Span,
    function::{FunctionEmitter, Place, constant},
    values::Accessed,
};
use crate::{
    memory::{Alignment, log2},
    plan::Extra,
    state::State,
};

/// Memory of the guest, which may be accessed at any address in it.
fn guest() -> MemFlags {
    MemFlags::new()
        .with_notrap()
        .with_alias_region(Some(AliasRegion::Heap))
}

impl FunctionEmitter<'_> {
    /// Emits an instruction that is no jump.
    pub fn instruction(
        &mut self,
        instruction: &Instruction,
        pc: u32,
        place: Place,
        accessed: Option<Accessed>,
        extra: Option<&Extra>,
    ) {
        let Instruction {
            operation,
            rd,
            rs1,
            rs2,
            immediate,
            ..
        } = *instruction;
        let number = immediate.cast_unsigned();
        let value = match operation {
            Operation::Lui => self.constant(number),
            Operation::Auipc => self.constant(pc.wrapping_add(number)),
            Operation::AluImmediate(alu) => {
                let (left, right) = (self.get(rs1), self.constant(number));
                self.alu(alu, left, right)
            }
            Operation::Alu(alu) => {
                let (left, right) = (self.get(rs1), self.get(rs2));
                self.alu(alu, left, right)
            }
            Operation::Multiply(multiply) => {
                let (left, right) = (self.get(rs1), self.get(rs2));
                self.multiply(multiply, left, right)
            }
            Operation::Divide(divide) => {
                let (left, right) = (self.get(rs1), self.get(rs2));
                self.divide(divide, left, right, place)
            }
            Operation::Load(width, extension) => match accessed {
                Some(at) => self.load(at, width, extension),
                None => return,
            },
            Operation::Store(width) => {
                let value = self.get(rs2);
                if let Some(at) = accessed {
                    self.store(at, width, value);
                }
                return;
            }
            // The others are not planned, or do nothing.
            _ => return,
        };
        // Behind the last check, and before an operand changes.
        if let Some(extra) = extra {
            self.extra(extra, instruction);
        }
        self.set(rd, value);
    }

    fn alu(&mut self, alu: Alu, left: Value, right: Value) -> Value {
        let ins = self.builder.ins();
        match alu {
            Alu::Add => ins.iadd(left, right),
            Alu::Sub => ins.isub(left, right),
            // Cranelift's shifts take the lowest five bits of the amount, too.
            Alu::Sll => ins.ishl(left, right),
            Alu::Srl => ins.ushr(left, right),
            Alu::Sra => ins.sshr(left, right),
            Alu::Xor => ins.bxor(left, right),
            Alu::Or => ins.bor(left, right),
            Alu::And => ins.band(left, right),
            Alu::Slt => self.less(IntCC::SignedLessThan, left, right),
            Alu::Sltu => self.less(IntCC::UnsignedLessThan, left, right),
        }
    }

    fn less(&mut self, condition: IntCC, left: Value, right: Value) -> Value {
        let is_less = self.builder.ins().icmp(condition, left, right);
        self.builder.ins().uextend(types::I32, is_less)
    }

    fn multiply(&mut self, multiply: Multiply, left: Value, right: Value) -> Value {
        let ins = self.builder.ins();
        match multiply {
            Multiply::Low => ins.imul(left, right),
            Multiply::High => ins.smulhi(left, right),
            Multiply::HighUnsigned => ins.umulhi(left, right),
            Multiply::HighSignedUnsigned => {
                let left = self.builder.ins().sextend(types::I64, left);
                let right = self.builder.ins().uextend(types::I64, right);
                let product = self.builder.ins().imul(left, right);
                let high = self.builder.ins().ushr_imm(product, 32);
                self.builder.ins().ireduce(types::I32, high)
            }
        }
    }

    /// Divides what this machine can divide. Divisors of zero and the quotient that overflows are left to the interpreter.
    fn divide(&mut self, divide: Divide, left: Value, right: Value, place: Place) -> Value {
        let zero = self.constant(0);
        let mut is_possible = self.builder.ins().icmp(IntCC::NotEqual, right, zero);
        if divide.is_signed() {
            let (smallest, minus_one) = (self.constant(1 << 31), self.constant(u32::MAX));
            let is_larger = self.builder.ins().icmp(IntCC::NotEqual, left, smallest);
            let is_other = self.builder.ins().icmp(IntCC::NotEqual, right, minus_one);
            let fits = self.builder.ins().bor(is_larger, is_other);
            is_possible = self.builder.ins().band(is_possible, fits);
        }
        self.check(is_possible, place);
        let ins = self.builder.ins();
        match divide {
            Divide::Quotient => ins.sdiv(left, right),
            Divide::QuotientUnsigned => ins.udiv(left, right),
            Divide::Remainder => ins.srem(left, right),
            Divide::RemainderUnsigned => ins.urem(left, right),
        }
    }

    fn load(&mut self, accessed: Accessed, width: Width, extension: Extension) -> Value {
        let (at, offset) = self.host_address(accessed);
        let ins = self.builder.ins();
        match (width, extension) {
            (Width::Byte, Extension::Zero) => ins.uload8(types::I32, guest(), at, offset),
            (Width::Byte, Extension::Sign) => ins.sload8(types::I32, guest(), at, offset),
            (Width::Half, Extension::Zero) => ins.uload16(types::I32, guest(), at, offset),
            (Width::Half, Extension::Sign) => ins.sload16(types::I32, guest(), at, offset),
            (Width::Word | Width::Double, _) => ins.load(types::I32, guest(), at, offset),
        }
    }

    fn store(&mut self, accessed: Accessed, width: Width, value: Value) {
        let (at, offset) = self.host_address(accessed);
        let ins = self.builder.ins();
        match width {
            Width::Byte => ins.istore8(guest(), value, at, offset),
            Width::Half => ins.istore16(guest(), value, at, offset),
            Width::Word | Width::Double => ins.store(guest(), value, at, offset),
        };
    }

    fn load_constant(&mut self, kind: Type, offset: i32) -> Value {
        let state = self.values.state;
        self.builder.ins().load(kind, constant(), state, offset)
    }

    /// Leaves the accesses of a span, of which this instruction is the first, to the interpreter unless all are within the region, and
    /// aligned if they have to be. Returns how far behind the region's beginning the lowest one is.
    pub fn check_accesses(&mut self, first: &Instruction, span: Span, place: Place) -> Value {
        let memory = self.target.memory;
        let (width, is_store) = match first.operation {
            Operation::Load(width, _) => (width, false),
            Operation::Store(width) => (width, true),
            _ => (Width::Word, false),
        };
        let base = self.get(first.rs1);
        let offset = span.lowest.cast_unsigned().wrapping_sub(memory.start);
        let offset = self.constant(offset);
        let distance = self.builder.ins().iadd(base, offset);
        let more = span.highest.abs_diff(span.lowest);
        let below = IntCC::UnsignedLessThan;
        let is_within = match is_store {
            false => {
                let limit = self.constant(memory.limit(width).saturating_sub(more));
                self.builder.ins().icmp(below, distance, limit)
            }
            true => {
                let start = offset_of!(State, store_start) as i32;
                let start = self.load_constant(types::I32, start);
                let limit = State::store_limit(log2(width).unwrap_or_default().into());
                let limit = self.load_constant(types::I64, limit);
                let distance = self.builder.ins().isub(distance, start);
                // Wider, so that the sum does not wrap.
                let mut distance = self.builder.ins().uextend(types::I64, distance);
                if more > 0 {
                    distance = self.builder.ins().iadd_imm(distance, i64::from(more));
                }
                self.builder.ins().icmp(below, distance, limit)
            }
        };
        self.check(is_within, place);
        if self.target.alignment == Alignment::Natural && width != Width::Byte {
            // The region begins at a whole word.
            let mask = self.constant(width.bytes().wrapping_sub(1));
            let odd = self.builder.ins().band(distance, mask);
            let zero = self.constant(0);
            let is_aligned = self.builder.ins().icmp(IntCC::Equal, odd, zero);
            self.check(is_aligned, place);
        }
        distance
    }

    /// The host's address of an access that was checked, and the offset from there.
    fn host_address(&mut self, accessed: Accessed) -> (Value, i32) {
        let distance = self.builder.ins().uextend(types::I64, accessed.distance);
        let at = self.builder.ins().iadd(self.values.memory, distance);
        (at, accessed.offset)
    }

    /// Returns a value that is not 0 if a branch is taken.
    pub fn condition(&mut self, instruction: &Instruction) -> Value {
        let (left, right) = (self.get(instruction.rs1), self.get(instruction.rs2));
        let condition = match instruction.operation {
            Operation::Branch(condition) => condition,
            _ => Condition::Equal,
        };
        let condition = match condition {
            Condition::Equal => IntCC::Equal,
            Condition::NotEqual => IntCC::NotEqual,
            Condition::Less => IntCC::SignedLessThan,
            Condition::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
            Condition::LessUnsigned => IntCC::UnsignedLessThan,
            Condition::GreaterOrEqualUnsigned => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.builder.ins().icmp(condition, left, right)
    }

    /// Counts the cycles that depend on operands, as `Duration::of` has them, beyond the fewest.
    fn extra(&mut self, extra: &Extra, instruction: &Instruction) {
        let operand = self.get(instruction.rs2);
        let cycles = match extra.duration.varies {
            Variation::None | Variation::ZeroDivisor(_) => return,
            Variation::DivisorZeros(each) => {
                let is_signed = matches!(
                    instruction.operation,
                    Operation::Divide(divide) if divide.is_signed()
                );
                let zeros = self.skipped_bits(operand, is_signed);
                self.builder.ins().imul_imm(zeros, i64::from(each))
            }
            Variation::MultiplierBits { each, least } => {
                let zeros = self.builder.ins().clz(operand);
                let all = self.constant(u32::BITS);
                let bits = self.builder.ins().isub(all, zeros);
                let cycles = self.builder.ins().imul_imm(bits, i64::from(each));
                let fixed = self.constant(extra.duration.cycles);
                let cycles = self.builder.ins().iadd(cycles, fixed);
                let least = self.constant(least.max(extra.duration.cycles));
                let cycles = self.builder.ins().umax(cycles, least);
                self.builder.ins().isub(cycles, least)
            }
            Variation::ShiftSteps(steps) => {
                let mask = self.constant(31);
                let amount = self.builder.ins().band(operand, mask);
                match steps {
                    Steps::Ones => amount,
                    Steps::FoursThenOnes => {
                        let fours = self.builder.ins().ushr_imm(amount, 2);
                        let mask = self.constant(3);
                        let ones = self.builder.ins().band(amount, mask);
                        self.builder.ins().iadd(fours, ones)
                    }
                }
            }
        };
        let cycles = self.builder.ins().uextend(types::I64, cycles);
        self.add(extra.counter, cycles);
    }

    /// The leading zeros of a divisor, or the leading ones but the first of a negative one.
    fn skipped_bits(&mut self, divisor: Value, is_signed: bool) -> Value {
        if !is_signed {
            return self.builder.ins().clz(divisor);
        }
        let sign = self.builder.ins().sshr_imm(divisor, 31);
        let positive = self.builder.ins().bxor(divisor, sign);
        let zeros = self.builder.ins().clz(positive);
        // The sign is 0 or -1.
        self.builder.ins().iadd(zeros, sign)
    }
}
