//! Decodes instructions of x86, 64-bit and 32-bit, by iced-x86. Only an x86-64 build of varid has this decoder.

use crate::{Base, Effect, Flow, Instruction, OPERAND, Place, Register, Source};
use iced_x86::Register as Name;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};
use std::cell::RefCell;

/// rdi, rsi, rdx, rcx, r8, r9.
pub(crate) const ARGUMENTS: &[Register] = &[
    Register(5),
    Register(4),
    Register(1),
    Register(2),
    Register(8),
    Register(9),
];

/// The width of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Bits32,
    Bits64,
}

impl Width {
    const fn bits(self) -> u32 {
        match self {
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }

    /// Returns an address cut to the width.
    const fn cut(self, address: u64) -> u64 {
        match self {
            Self::Bits32 => address & 0xffff_ffff,
            Self::Bits64 => address,
        }
    }

    /// Returns a number of this width as a signed one.
    const fn signed(self, number: u64) -> i64 {
        match self {
            Self::Bits32 => (number as u32).cast_signed() as i64,
            Self::Bits64 => number.cast_signed(),
        }
    }

    /// The general registers in the order of their DWARF numbers (System V ABI, figures 3.36 and 2.14).
    const fn registers(self) -> &'static [Name] {
        use Name::*;
        match self {
            Self::Bits32 => &[RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI],
            Self::Bits64 => &[
                RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15,
            ],
        }
    }

    /// Returns the general register that contains a register.
    fn register(self, name: Name) -> Option<Register> {
        let full = name.full_register();
        let at = self.registers().iter().position(|known| *known == full)?;
        u8::try_from(at).ok().map(Register)
    }

    const fn sp(self) -> Register {
        match self {
            Self::Bits32 => Register(4),
            Self::Bits64 => Register(7),
        }
    }

    const fn fp(self) -> Register {
        match self {
            Self::Bits32 => Register(5),
            Self::Bits64 => Register(6),
        }
    }
}

thread_local! {
    static USED: RefCell<InstructionInfoFactory> = RefCell::new(InstructionInfoFactory::new());
}

/// Decodes the first instruction of some code.
pub(crate) fn decode(code: &[u8], address: u64, width: Width) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(width.bits(), code, address, DecoderOptions::NONE);
    let found = Found {
        instruction: decoder.decode(),
        width,
    };
    if found.instruction.is_invalid() {
        return None;
    }
    let mut effects = Vec::new();
    if !found.understood(&mut effects) {
        found.other(&mut effects);
    }
    Some(Instruction {
        size: u8::try_from(found.instruction.len()).ok()?,
        flow: found.flow(&mut effects),
        effects,
    })
}

/// The kinds of the first two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Both are general registers.
    Registers(Register, Register),
    /// The second is a constant.
    Constant(Register, i64),
    /// The second is in memory.
    FromMemory(Register),
    /// The first is in memory.
    ToMemory(Source),
    Other,
}

/// Moves the sum of a register and a constant into a register.
const fn moved(to: Register, from: Register, add: i64) -> Effect {
    Effect::Move { to, from, add }
}

/// An instruction, and the width of the code that it is in.
struct Found {
    instruction: iced_x86::Instruction,
    width: Width,
}

impl Found {
    /// Returns the address of a memory operand.
    fn place(&self) -> Place {
        let found = &self.instruction;
        let register = |name| self.width.register(name);
        let offset = self.width.signed(found.memory_displacement64());
        let index = register(found.memory_index());
        let base = match (found.segment_prefix(), found.memory_base()) {
            _ if found.is_ip_rel_memory_operand() => {
                return Place {
                    base: Base::Absolute(found.ip_rel_memory_address()),
                    offset: 0,
                    index,
                };
            }
            (Name::FS, Name::None) => Base::ThreadPointer,
            (Name::GS, Name::None) => Base::Gs,
            // With a further register, nothing is known about the address.
            (Name::FS | Name::GS, base) => {
                return Place {
                    base: Base::Absolute(0),
                    offset,
                    index: register(base).or(index),
                };
            }
            (_, Name::None) => Base::Absolute(0),
            (_, base) => register(base).map_or(Base::Absolute(0), Base::Register),
        };
        Place {
            base,
            offset,
            index,
        }
    }

    /// Returns the size of the memory operand in bytes.
    fn size(&self) -> u8 {
        u8::try_from(self.instruction.memory_size().size()).unwrap_or(u8::MAX)
    }

    /// Returns an operand, if it is a general register.
    fn register(&self, operand: u32) -> Option<Register> {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.width.register(self.instruction.op_register(operand)),
            _ => None,
        }
    }

    fn operands(&self) -> Operands {
        let found = &self.instruction;
        let constant = |operand: u32| found.try_immediate(operand).ok();
        if found.op_count() < 2 {
            return Operands::Other;
        }
        match (found.op0_kind(), found.op1_kind()) {
            (OpKind::Memory, OpKind::Register) => {
                Operands::ToMemory(self.register(1).map_or(Source::Other, Source::Register))
            }
            (OpKind::Memory, _) => match constant(1) {
                Some(value) => Operands::ToMemory(Source::Constant(value)),
                None => Operands::Other,
            },
            (OpKind::Register, OpKind::Memory) => self
                .register(0)
                .map_or(Operands::Other, Operands::FromMemory),
            (OpKind::Register, OpKind::Register) => match (self.register(0), self.register(1)) {
                (Some(to), Some(from)) => Operands::Registers(to, from),
                _ => Operands::Other,
            },
            (OpKind::Register, _) => match (self.register(0), constant(1)) {
                (Some(to), Some(value)) => Operands::Constant(to, value.cast_signed()),
                _ => Operands::Other,
            },
            _ => Operands::Other,
        }
    }

    /// Adds the effects of the instructions that are followed. Returns false for other instructions.
    fn understood(&self, effects: &mut Vec<Effect>) -> bool {
        let operands = self.operands();
        match self.instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                let found = self.data_move(operands);
                effects.extend(found);
                found.is_some()
            }
            Mnemonic::Lea => {
                let found = self.address(operands);
                effects.extend(found);
                found.is_some()
            }
            Mnemonic::Add => self.add(operands, effects),
            Mnemonic::Sub => self.subtract(operands, effects),
            Mnemonic::Cmp => self.compare(operands, effects),
            Mnemonic::Test => self.test(operands, effects),
            Mnemonic::Xor => match operands {
                Operands::Registers(to, from) if to == from => {
                    effects.push(Effect::Set { to, value: 0 });
                    true
                }
                _ => false,
            },
            Mnemonic::Push => {
                self.push(effects);
                true
            }
            Mnemonic::Pop => {
                self.pop(effects);
                true
            }
            Mnemonic::Leave => {
                let (sp, fp) = (self.width.sp(), self.width.fp());
                effects.push(moved(sp, fp, 0));
                self.pop_to(Some(fp), self.width.bits() as u8 / 8, effects);
                true
            }
            _ => false,
        }
    }

    /// Loads the operand in memory into a register.
    fn load(&self, to: Register) -> Effect {
        Effect::Load {
            to: Some(to),
            from: self.place(),
            size: self.size(),
        }
    }

    /// Returns the effect of moving data between registers and memory. None: the operands are not followed.
    fn data_move(&self, operands: Operands) -> Option<Effect> {
        match operands {
            Operands::FromMemory(to) if self.is_thread_pointer() => {
                Some(Effect::ThreadPointer { to })
            }
            Operands::FromMemory(to) => Some(self.load(to)),
            Operands::ToMemory(from) => Some(Effect::Store {
                to: self.place(),
                from,
                size: self.size(),
            }),
            Operands::Registers(to, from) => Some(moved(to, from, 0)),
            Operands::Constant(to, value) => Some(Effect::Set {
                to,
                value: value.cast_unsigned(),
            }),
            Operands::Other => None,
        }
    }

    /// Returns true if the operand in memory is the word at the thread pointer. It is the thread pointer itself (System V ABI,
    /// thread-local storage): code loads it from there.
    fn is_thread_pointer(&self) -> bool {
        let from = self.place();
        let is_first = (from.offset, from.index) == (0, None);
        self.size() == 8 && from.base == Base::ThreadPointer && is_first
    }

    /// Returns the effect of computing the address of the operand in memory.
    fn address(&self, operands: Operands) -> Option<Effect> {
        let Operands::FromMemory(to) = operands else {
            return None;
        };
        let place = self.place();
        Some(match (place.base, place.index) {
            (Base::Register(from), None) => moved(to, from, place.offset),
            (Base::Register(left), Some(_)) => Effect::AddScaled { to, left },
            (Base::Absolute(value), None) => Effect::Set { to, value },
            _ => Effect::Overwrite(to),
        })
    }

    fn add(&self, operands: Operands, effects: &mut Vec<Effect>) -> bool {
        match operands {
            Operands::Constant(to, value) => effects.push(moved(to, to, value)),
            Operands::Registers(to, right) => effects.push(Effect::Add {
                to,
                left: to,
                right,
            }),
            Operands::FromMemory(to) => effects.extend([
                self.load(OPERAND),
                Effect::Add {
                    to,
                    left: to,
                    right: OPERAND,
                },
            ]),
            Operands::ToMemory(_) | Operands::Other => return false,
        }
        true
    }

    fn subtract(&self, operands: Operands, effects: &mut Vec<Effect>) -> bool {
        match operands {
            Operands::Constant(to, value) => effects.push(moved(to, to, value.wrapping_neg())),
            Operands::Registers(to, right) => effects.push(Effect::Subtract {
                to,
                left: to,
                right,
            }),
            Operands::FromMemory(to) => effects.extend([
                self.load(OPERAND),
                Effect::Subtract {
                    to,
                    left: to,
                    right: OPERAND,
                },
            ]),
            Operands::ToMemory(_) | Operands::Other => return false,
        }
        true
    }

    fn compare(&self, operands: Operands, effects: &mut Vec<Effect>) -> bool {
        let (left, right) = match operands {
            Operands::Registers(left, right) => (left, right),
            Operands::FromMemory(left) => {
                effects.push(self.load(OPERAND));
                (left, OPERAND)
            }
            Operands::ToMemory(Source::Register(right)) => {
                effects.push(self.load(OPERAND));
                (OPERAND, right)
            }
            Operands::ToMemory(_) | Operands::Constant(..) | Operands::Other => return false,
        };
        effects.push(Effect::Subtract {
            to: OPERAND,
            left,
            right,
        });
        true
    }

    fn test(&self, operands: Operands, effects: &mut Vec<Effect>) -> bool {
        match operands {
            Operands::Constant(register, mask) => effects.push(Effect::Test {
                register,
                mask: mask.cast_unsigned(),
            }),
            Operands::ToMemory(Source::Constant(mask)) => effects.extend([
                self.load(OPERAND),
                Effect::Test {
                    register: OPERAND,
                    mask,
                },
            ]),
            _ => return false,
        }
        true
    }

    /// Returns the bytes that a push or a pop moves.
    fn pushed_size(&self) -> u8 {
        let moved = self.instruction.stack_pointer_increment().unsigned_abs();
        u8::try_from(moved).unwrap_or(u8::MAX)
    }

    fn push(&self, effects: &mut Vec<Effect>) {
        let (sp, size) = (self.width.sp(), self.pushed_size());
        let from = match self.instruction.op0_kind() {
            OpKind::Memory => {
                effects.push(self.load(OPERAND));
                Some(OPERAND)
            }
            _ => self.register(0),
        };
        effects.push(moved(sp, sp, i64::from(size).wrapping_neg()));
        effects.push(Effect::Store {
            to: Place::at(sp, 0),
            from: from.map_or(Source::Other, Source::Register),
            size,
        });
    }

    fn pop(&self, effects: &mut Vec<Effect>) {
        self.pop_to(self.register(0), self.pushed_size(), effects);
    }

    fn pop_to(&self, to: Option<Register>, size: u8, effects: &mut Vec<Effect>) {
        let sp = self.width.sp();
        effects.push(Effect::Load {
            to,
            from: Place::at(sp, 0),
            size,
        });
        effects.push(moved(sp, sp, size.into()));
    }

    /// Adds the effects of any instruction: memory that it reads or writes, and registers that it overwrites.
    fn other(&self, effects: &mut Vec<Effect>) {
        let found = &self.instruction;
        // `flow` covers them.
        if found.mnemonic() == Mnemonic::Call || found.flow_control() == FlowControl::Return {
            return;
        }
        let sp = self.width.sp();
        let pushed = found.stack_pointer_increment();
        USED.with_borrow_mut(|used| {
            let info = used.info(found);
            let reads = |access| {
                matches!(
                    access,
                    OpAccess::Read
                        | OpAccess::CondRead
                        | OpAccess::ReadWrite
                        | OpAccess::ReadCondWrite
                )
            };
            let has_memory =
                (0..found.op_count()).any(|operand| found.op_kind(operand) == OpKind::Memory);
            for memory in info.used_memory().iter().filter(|_| has_memory) {
                effects.push(match reads(memory.access()) {
                    true => Effect::Load {
                        to: None,
                        from: self.place(),
                        size: self.size(),
                    },
                    false => Effect::Store {
                        to: self.place(),
                        from: Source::Other,
                        size: self.size(),
                    },
                });
            }
            for register in info.used_registers() {
                let is_written = matches!(
                    register.access(),
                    OpAccess::Write
                        | OpAccess::CondWrite
                        | OpAccess::ReadWrite
                        | OpAccess::ReadCondWrite
                );
                let to = self.width.register(register.register());
                let is_pushed = pushed != 0 && to == Some(sp);
                if let Some(to) = to.filter(|_| is_written && !is_pushed) {
                    effects.push(Effect::Overwrite(to));
                }
            }
        });
        if pushed != 0 {
            effects.push(moved(sp, sp, pushed.into()));
        }
    }

    fn flow(&self, effects: &mut Vec<Effect>) -> Flow {
        let found = &self.instruction;
        let target = self.width.cut(found.near_branch_target());
        match found.flow_control() {
            FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt => {
                Flow::Next
            }
            FlowControl::UnconditionalBranch => Flow::Jump(target),
            FlowControl::ConditionalBranch => Flow::Branch(target),
            FlowControl::Call if found.mnemonic() == Mnemonic::Call => Flow::Call(target),
            // Of the kernel.
            FlowControl::Call => Flow::Next,
            FlowControl::IndirectCall => match found.op0_kind() {
                OpKind::Register => Flow::CallRegister(self.register(0).unwrap_or(OPERAND)),
                _ => {
                    effects.push(self.load(OPERAND));
                    Flow::CallRegister(OPERAND)
                }
            },
            FlowControl::IndirectBranch => Flow::JumpIndirect,
            FlowControl::Return => {
                // It may take arguments from the stack.
                if let Ok(bytes) = found.try_immediate(0) {
                    let sp = self.width.sp();
                    effects.push(moved(sp, sp, bytes.cast_signed()));
                }
                Flow::Return
            }
            FlowControl::Exception => Flow::Trap,
        }
    }
}
