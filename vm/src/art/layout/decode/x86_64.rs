//! Decodes instructions of x86-64. Only an x86-64 build of varid has this decoder.

use super::{Base, Effect, Flow, Instruction, OPERAND, Place, Register, Source};
use iced_x86::Register as Name;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};
use std::cell::RefCell;

/// rdi, rsi, rdx, rcx, r8, r9.
pub(super) const ARGUMENTS: &[Register] = &[
    Register(5),
    Register(4),
    Register(1),
    Register(2),
    Register(8),
    Register(9),
];
const SP: Register = Register(7);

/// Returns true if a function may overwrite a register of its caller (System V ABI, figure 3.4).
pub(super) fn is_lost_in_calls(register: Register) -> bool {
    matches!(register.0, 0 | 1 | 2 | 4 | 5 | 8..=11)
}

/// Returns the DWARF number of the general register that contains a register (System V ABI, figure 3.36).
fn number(name: Name) -> Option<Register> {
    use Name::*;
    const ORDER: [Name; 16] = [
        RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15,
    ];
    let full = name.full_register();
    let at = ORDER.iter().position(|known| *known == full)?;
    u8::try_from(at).ok().map(Register)
}

thread_local! {
    static USED: RefCell<InstructionInfoFactory> = RefCell::new(InstructionInfoFactory::new());
}

/// Decodes the first instruction of some code.
pub(super) fn decode(code: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let found = decoder.decode();
    if found.is_invalid() {
        return None;
    }
    let mut effects = Vec::new();
    if !understood(&found, &mut effects) {
        other(&found, &mut effects);
    }
    Some(Instruction {
        size: u8::try_from(found.len()).ok()?,
        flow: flow(&found, &mut effects),
        effects,
    })
}

/// Returns the address of a memory operand.
fn place(found: &iced_x86::Instruction) -> Place {
    let offset = found.memory_displacement64().cast_signed();
    let index = number(found.memory_index());
    let base = match (found.segment_prefix(), found.memory_base()) {
        _ if found.is_ip_rel_memory_operand() => {
            return Place {
                base: Base::Absolute(found.ip_rel_memory_address()),
                offset: 0,
                index,
            };
        }
        (Name::FS, Name::None) => Base::ThreadPointer,
        (Name::GS, Name::None) => Base::Thread,
        // With a further register, nothing is known about the address.
        (Name::FS | Name::GS, base) => {
            return Place {
                base: Base::Absolute(0),
                offset,
                index: number(base).or(index),
            };
        }
        (_, Name::None) => Base::Absolute(0),
        (_, base) => number(base).map_or(Base::Absolute(0), Base::Register),
    };
    Place {
        base,
        offset,
        index,
    }
}

fn size(found: &iced_x86::Instruction) -> u8 {
    u8::try_from(found.memory_size().size()).unwrap_or(u8::MAX)
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

fn operands(found: &iced_x86::Instruction) -> Operands {
    let is_constant = |operand: u32| found.try_immediate(operand).ok();
    let general = |operand: u32| match found.op_kind(operand) {
        OpKind::Register => number(found.op_register(operand)),
        _ => None,
    };
    if found.op_count() < 2 {
        return Operands::Other;
    }
    match (found.op0_kind(), found.op1_kind()) {
        (OpKind::Memory, OpKind::Register) => {
            Operands::ToMemory(general(1).map_or(Source::Other, Source::Register))
        }
        (OpKind::Memory, _) => match is_constant(1) {
            Some(value) => Operands::ToMemory(Source::Constant(value)),
            None => Operands::Other,
        },
        (OpKind::Register, OpKind::Memory) => {
            general(0).map_or(Operands::Other, Operands::FromMemory)
        }
        (OpKind::Register, OpKind::Register) => match (general(0), general(1)) {
            (Some(to), Some(from)) => Operands::Registers(to, from),
            _ => Operands::Other,
        },
        (OpKind::Register, _) => match (general(0), is_constant(1)) {
            (Some(to), Some(value)) => Operands::Constant(to, value.cast_signed()),
            _ => Operands::Other,
        },
        _ => Operands::Other,
    }
}

/// Adds the effects of the instructions that are followed. Returns false for other instructions.
fn understood(found: &iced_x86::Instruction, effects: &mut Vec<Effect>) -> bool {
    match (found.mnemonic(), operands(found)) {
        (Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd, operands) => {
            match data_move(found, operands) {
                Some(effect) => effects.push(effect),
                None => return false,
            }
        }
        (Mnemonic::Lea, Operands::FromMemory(to)) => {
            let place = place(found);
            effects.push(match (place.base, place.index) {
                (Base::Register(from), None) => moved(to, from, place.offset),
                (Base::Absolute(value), None) => Effect::Set { to, value },
                _ => Effect::Overwrite(to),
            });
        }
        (Mnemonic::Add, Operands::Constant(to, value)) => effects.push(moved(to, to, value)),
        (Mnemonic::Sub, Operands::Constant(to, value)) => {
            effects.push(moved(to, to, value.wrapping_neg()));
        }
        (Mnemonic::Add, Operands::Registers(to, right)) => effects.push(Effect::Add {
            to,
            left: to,
            right,
        }),
        (Mnemonic::Sub, Operands::Registers(to, right)) => effects.push(Effect::Subtract {
            to,
            left: to,
            right,
        }),
        (Mnemonic::Sub, Operands::FromMemory(to)) => {
            effects.push(load(found, OPERAND));
            effects.push(Effect::Subtract {
                to,
                left: to,
                right: OPERAND,
            });
        }
        (Mnemonic::Xor, Operands::Registers(to, from)) if to == from => {
            effects.push(Effect::Set { to, value: 0 });
        }
        (Mnemonic::Test, Operands::Constant(register, mask)) => effects.push(Effect::Test {
            register,
            mask: mask.cast_unsigned(),
        }),
        (Mnemonic::Test, Operands::ToMemory(Source::Constant(mask))) => {
            effects.push(load(found, OPERAND));
            effects.push(Effect::Test {
                register: OPERAND,
                mask,
            });
        }
        (Mnemonic::Push, _) => push(found, effects),
        (Mnemonic::Pop, _) => pop(found, effects),
        _ => return false,
    }
    true
}

/// Loads the operand in memory into a register.
fn load(found: &iced_x86::Instruction, to: Register) -> Effect {
    Effect::Load {
        to: Some(to),
        from: place(found),
        size: size(found),
    }
}

/// Moves the sum of a register and a constant into a register.
const fn moved(to: Register, from: Register, add: i64) -> Effect {
    Effect::Move { to, from, add }
}

/// Returns the effect of moving data between registers and memory. None: the operands are not followed.
fn data_move(found: &iced_x86::Instruction, operands: Operands) -> Option<Effect> {
    match operands {
        Operands::FromMemory(to) if is_thread_pointer(found) => Some(Effect::ThreadPointer { to }),
        Operands::FromMemory(to) => Some(load(found, to)),
        Operands::ToMemory(from) => Some(Effect::Store {
            to: place(found),
            from,
            size: size(found),
        }),
        Operands::Registers(to, from) => Some(moved(to, from, 0)),
        Operands::Constant(to, value) => Some(Effect::Set {
            to,
            value: value.cast_unsigned(),
        }),
        Operands::Other => None,
    }
}

/// Returns true if the operand in memory is the word at the thread pointer. It is the thread pointer itself (System V ABI, thread-local
/// storage): code loads it from there.
fn is_thread_pointer(found: &iced_x86::Instruction) -> bool {
    let from = place(found);
    size(found) == 8 && from.base == Base::ThreadPointer && (from.offset, from.index) == (0, None)
}

fn push(found: &iced_x86::Instruction, effects: &mut Vec<Effect>) {
    let from = match found.op0_kind() {
        OpKind::Register => number(found.op0_register()),
        OpKind::Memory => Some(OPERAND),
        _ => None,
    };
    if found.op0_kind() == OpKind::Memory {
        effects.push(Effect::Load {
            to: Some(OPERAND),
            from: place(found),
            size: 8,
        });
    }
    effects.push(moved(SP, SP, -8));
    effects.push(Effect::Store {
        to: Place::at(SP, 0),
        from: from.map_or(Source::Other, Source::Register),
        size: 8,
    });
}

fn pop(found: &iced_x86::Instruction, effects: &mut Vec<Effect>) {
    let to = number(found.op0_register());
    effects.push(Effect::Load {
        to: to.filter(|_| found.op0_kind() == OpKind::Register),
        from: Place::at(SP, 0),
        size: 8,
    });
    effects.push(moved(SP, SP, 8));
}

/// Adds the effects of any instruction: memory that it reads or writes, and registers that it overwrites.
fn other(found: &iced_x86::Instruction, effects: &mut Vec<Effect>) {
    // `flow` covers calls.
    if matches!(
        found.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
    ) {
        return;
    }
    USED.with_borrow_mut(|used| {
        let info = used.info(found);
        let reads = |access| {
            matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let has_memory =
            (0..found.op_count()).any(|operand| found.op_kind(operand) == OpKind::Memory);
        for memory in info.used_memory() {
            if !has_memory {
                continue;
            }
            let from = place(found);
            effects.push(match reads(memory.access()) {
                true => Effect::Load {
                    to: None,
                    from,
                    size: size(found),
                },
                false => Effect::Store {
                    to: from,
                    from: Source::Other,
                    size: size(found),
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
            if let Some(to) = number(register.register()).filter(|_| is_written) {
                effects.push(Effect::Overwrite(to));
            }
        }
    });
}

fn flow(found: &iced_x86::Instruction, effects: &mut Vec<Effect>) -> Flow {
    let target = found.near_branch_target();
    match found.flow_control() {
        FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(target),
        FlowControl::ConditionalBranch => Flow::Branch(target),
        FlowControl::Call => Flow::Call(target),
        FlowControl::IndirectCall => match found.op0_kind() {
            OpKind::Register => Flow::CallRegister(number(found.op0_register()).unwrap_or(OPERAND)),
            _ => {
                effects.push(Effect::Load {
                    to: Some(OPERAND),
                    from: place(found),
                    size: size(found),
                });
                Flow::CallRegister(OPERAND)
            }
        },
        FlowControl::IndirectBranch => Flow::JumpIndirect,
        FlowControl::Return | FlowControl::Exception => Flow::Return,
    }
}
