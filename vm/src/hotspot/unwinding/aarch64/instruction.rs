//! What does an AArch64 instruction do to the stack pointer, the frame pointer and the link register, and where does it go?

use crate::hotspot::unwinding::state::CodeAt;
use varid_instructions::{Base, Decoder, Effect, Flow, Place, Register, Source};

/// Size of an instruction in bytes.
pub(super) const SIZE: usize = 4;
/// The frame pointer.
pub(super) const FP: Register = Register(29);
/// The link register.
pub(super) const LINK: Register = Register(30);
/// The stack pointer as a base and in sums, zero elsewhere.
pub(super) const SP: Register = Register(31);

/// An instruction, as far as frames are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// A load or a store at the stack pointer.
    Access(Access),
    /// `to` = `from` + `constant`.
    Add {
        to: Register,
        from: Register,
        constant: i64,
    },
    /// The stack pointer is set by a calculation that is none of a register and a constant.
    SetSp,
    /// `to` = `value`.
    Set {
        to: Register,
        value: u64,
    },
    /// Some bits of `to` = those of `value`, whose other bits are 0.
    Insert {
        to: Register,
        value: u64,
    },
    /// A load of the word at an address.
    Literal(u64),
    /// A call of an address.
    Call(u64),
    /// A call of the address in a register.
    CallRegister(Register),
    /// What follows is reached by a jump only.
    Jump,
    Return,
    Other,
}

/// A load or a store at the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) is_load: bool,
    /// The pair of 64-bit registers. None: other registers.
    pub(super) pair: Option<(Register, Register)>,
    /// Where the first one is: bytes from the stack pointer before the instruction.
    pub(super) offset: i64,
    /// Bytes that are added to the stack pointer.
    pub(super) moved: i64,
}

impl Access {
    /// Returns true if it stores the frame pointer and the return address.
    pub(super) fn saves_link(self) -> bool {
        !self.is_load && self.pair == Some((FP, LINK))
    }

    /// Returns true if it loads the frame pointer and the return address.
    pub(super) fn restores_link(self) -> bool {
        self.is_load && self.pair == Some((FP, LINK))
    }
}

impl Instruction {
    /// Decodes the instruction at an offset in some code, as if the code began at address 0. None outside of it.
    pub(super) fn at(code: &[u8], at: usize) -> Option<Self> {
        Self::decode(code, at, 0)
    }

    /// Decodes the instruction at an offset in code at its address. None outside of it.
    pub(super) fn of(code: CodeAt<'_>, at: usize) -> Option<Self> {
        Self::decode(code.bytes, at, code.start.get())
    }

    fn decode(code: &[u8], at: usize, start: u64) -> Option<Self> {
        let bytes = code.get(at..)?.first_chunk::<SIZE>()?;
        let decoded = Decoder::Aarch64.decode(bytes, start.wrapping_add(at as u64));
        Some(decoded.map_or(Self::Other, |decoded| match decoded.flow {
            Flow::Call(target) => Self::Call(target),
            Flow::CallRegister(register) => Self::CallRegister(register),
            Flow::Jump(_) | Flow::JumpIndirect => Self::Jump,
            Flow::Return => Self::Return,
            Flow::Next | Flow::Branch(_) | Flow::Trap => Self::with(&decoded.effects),
        }))
    }

    /// Returns true if control does not come from the instruction to the next one, or through other code only.
    pub(super) fn leaves(self) -> bool {
        matches!(
            self,
            Self::Call(_) | Self::CallRegister(_) | Self::Jump | Self::Return
        )
    }

    /// Returns the instruction with some effects.
    fn with(effects: &[Effect]) -> Self {
        match *effects {
            [Effect::Move { to, from, add }] => Self::Add {
                to,
                from,
                constant: add,
            },
            [Effect::Set { to, value }] => Self::Set { to, value },
            [Effect::Insert { to, value, .. }] => Self::Insert { to, value },
            [
                Effect::Load {
                    from:
                        Place {
                            base: Base::Absolute(address),
                            ..
                        },
                    ..
                },
            ] => Self::Literal(address),
            _ => match access(effects) {
                Some(access) => Self::Access(access),
                None if effects.iter().any(|it| it.changed() == Some(SP)) => Self::SetSp,
                None => Self::Other,
            },
        }
    }
}

/// Returns the load or the store at the stack pointer that has some effects. None if they are others.
fn access(effects: &[Effect]) -> Option<Access> {
    let (accesses, moved) = match effects {
        [
            accesses @ ..,
            Effect::Move {
                to: SP,
                from: SP,
                add,
            },
        ] => (accesses, *add),
        accesses => (accesses, 0),
    };
    let (first, rest) = accesses.split_first()?;
    let (is_load, place) = match *first {
        Effect::Load { from, .. } => (true, from),
        Effect::Store { to, .. } => (false, to),
        _ => return None,
    };
    (place.base == Base::Register(SP)).then_some(())?;
    let pair = match rest {
        [second] => word_register(first).zip(word_register(second)),
        _ => None,
    };
    Some(Access {
        is_load,
        pair,
        offset: place.offset,
        moved,
    })
}

/// Returns the 64-bit register that is loaded or stored.
fn word_register(effect: &Effect) -> Option<Register> {
    match *effect {
        Effect::Load { to, size: 8, .. } => to,
        Effect::Store { from, size: 8, .. } => match from {
            Source::Register(register) => Some(register),
            Source::Constant(_) => Some(SP),
            Source::Other => None,
        },
        _ => None,
    }
}
