//! Follows how code changes its frame: by pushes and pops, by stores and loads with base writeback, and by adding to the stack pointer.
//!
//! On arm64, a prologue makes the whole frame at once and then saves registers in ascending order, the link register last. Until then, the
//! return address is in that register. On x86-64, the return address is on the stack before the first instruction.
//!
//! ```text
//! str x0, [sp, #-64]!     or  stp x0, x22, [sp, #-64]!  or  sub sp, sp, #64      push %rbx
//! stp x22, x30, [sp, #48]                                                        sub  $48, %rsp
//! ...                                                                            mov  %rdi, (%rsp)
//! ldp x22, x30, [sp, #48]                                                        add  $48, %rsp
//! add sp, sp, #64         or  ldp xzr, x22, [sp], #64                            pop  %rbx
//! ret                                                                            ret
//! ```
//!
//! Sources: GenerateFrameEntry in compiler/optimizing/code_generator_{arm64,x86_64}.cc and BuildFrame in
//! compiler/utils/{arm64,x86_64}/jni_macro_assembler_*.cc of ART 11.

use super::FrameRow;
use varid_instructions::{Base, Decoder, Effect, OPERAND, Register, Source};
use varid_model::Machine;
use varid_unwind::{FixedFrame, SavedRegister};

/// Size of a register on the stack in bytes.
const WORD: u8 = 8;

/// How compiled methods of a machine use its stack and its registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Convention {
    machine: Machine,
    pub(super) decoder: Decoder,
    /// Bytes that a call pushes.
    pub(super) return_address: i64,
    /// The register that a call leaves the return address in. None: it pushes it.
    link: Option<Register>,
    /// The register in which a method is passed.
    method: Register,
}

impl Convention {
    /// Returns the convention of a machine. None if frames of compiled code are not followed there.
    pub(super) fn of(machine: Machine) -> Option<Self> {
        let decoder = Decoder::of(machine)?;
        match machine {
            Machine::Aarch64 => Some(Self {
                machine,
                decoder,
                return_address: 0,
                link: Some(Register(30)),
                method: Register(0),
            }),
            Machine::X86_64 => Some(Self {
                machine,
                decoder,
                return_address: WORD.into(),
                link: None,
                method: Register(5),
            }),
            Machine::X86 | Machine::Arm => None,
        }
    }

    /// Returns true if a prologue may save a register.
    fn is_saved(self, register: Register) -> bool {
        let is_sp = register == self.decoder.stack_pointer();
        let is_kept = register != OPERAND && !self.decoder.is_lost_in_calls(register);
        Some(register) == self.link || is_kept && !is_sp
    }
}

/// A register that is stored, and the distance of its place below the caller's stack pointer.
pub(super) type Stored = (Register, i64);

/// The state of a frame at an instruction.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    convention: Convention,
    /// Bytes from the stack pointer to the caller's.
    pub(super) size: i64,
    /// The saved registers, and where.
    saved: Vec<Stored>,
    /// A register other than the stack pointer, and its value.
    known: Option<(Register, Value)>,
}

/// The value of a register.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// An address in the frame: its distance below the caller's stack pointer.
    Below(i64),
    Constant(u64),
}

impl Frame {
    /// The frame at the first instruction.
    pub(super) const fn at_entry(convention: Convention) -> Self {
        Self {
            convention,
            size: convention.return_address,
            saved: Vec::new(),
            known: None,
        }
    }

    pub(super) fn row(&self, start: u32, whole: i64) -> FrameRow {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let saved = self.saved.iter().filter_map(|(register, below)| {
            Some(SavedRegister {
                dwarf: register.0.into(),
                offset: u32::try_from(self.size.checked_sub(*below)?).ok()?,
            })
        });
        let saved: Vec<_> = saved.collect();
        let make = match self.is_linked() {
            true => FixedFrame::new,
            false => FixedFrame::unlinked,
        };
        let excess = self.size.checked_sub(whole);
        FrameRow {
            start,
            frame: make(self.convention.machine, size, &saved),
            excess: excess.and_then(|excess| u32::try_from(excess).ok()),
        }
    }

    /// Returns what tells apart how frames are unwound: the size, and the number of saved registers.
    pub(super) fn shape(&self) -> (i64, usize) {
        (self.size, self.saved.len())
    }

    /// Returns true if the return address is on the stack, in the frame's last word.
    pub(super) fn is_linked(&self) -> bool {
        let link = self.convention.link;
        link.is_none_or(|link| self.saved.contains(&(link, WORD.into())))
    }

    /// Applies the effects of an instruction. Returns the registers that it stores in the frame.
    pub(super) fn execute(&mut self, effects: &[Effect]) -> Vec<Stored> {
        let stores = effects
            .iter()
            .filter_map(|effect| self.apply(effect))
            .collect();
        self.size = self.size.max(self.convention.return_address);
        self.saved.retain(|(_, below)| *below <= self.size);
        stores
    }

    /// Applies an effect. Returns the register that it stores in the frame.
    fn apply(&mut self, effect: &Effect) -> Option<Stored> {
        let sp = self.convention.decoder.stack_pointer();
        match *effect {
            Effect::Store {
                to,
                from: Source::Register(register),
                size: WORD,
            } => {
                let (Base::Register(base), None) = (to.base, to.index) else {
                    return None;
                };
                let below = self.below(base)?.saturating_sub(to.offset);
                return Some((register, below));
            }
            Effect::Move { to, from, add } => {
                let below = self.below(from).map(|below| below.saturating_sub(add));
                match below {
                    Some(below) if to == sp => self.size = below,
                    Some(below) => self.known = Some((to, Value::Below(below))),
                    None => self.forget(to),
                }
            }
            Effect::Add { to, left, right } if (to, left) == (sp, sp) => {
                self.size = self.size.saturating_sub(self.constant(right)?);
            }
            Effect::Subtract { to, left, right } if (to, left) == (sp, sp) => {
                self.size = self.size.saturating_add(self.constant(right)?);
            }
            Effect::Set { to, value } => self.known = Some((to, Value::Constant(value))),
            Effect::Insert { to, value, mask } => match self.known {
                Some((known, Value::Constant(constant))) if known == to => {
                    self.known = Some((to, Value::Constant(constant & !mask | value)));
                }
                _ => self.forget(to),
            },
            ref effect => {
                if let Some(changed) = effect.changed() {
                    self.forget(changed);
                }
            }
        }
        None
    }

    /// Returns the distance of a register's address below the caller's stack pointer.
    fn below(&self, register: Register) -> Option<i64> {
        match self.known {
            _ if register == self.convention.decoder.stack_pointer() => Some(self.size),
            Some((known, Value::Below(below))) if known == register => Some(below),
            _ => None,
        }
    }

    fn constant(&self, register: Register) -> Option<i64> {
        match self.known {
            Some((known, Value::Constant(constant))) if known == register => {
                Some(constant.cast_signed())
            }
            _ => None,
        }
    }

    fn forget(&mut self, register: Register) {
        self.known = self.known.filter(|(known, _)| *known != register);
    }

    /// Notes the registers of the caller that an instruction of the prologue has stored.
    pub(super) fn save(&mut self, stores: &[Stored]) {
        for (register, below) in stores {
            let is_new = self.saved.iter().all(|(saved, _)| saved != register);
            if is_new && self.convention.is_saved(*register) {
                self.saved.push((*register, *below));
            }
        }
    }

    /// Returns true if one of these stores has put the method at the stack pointer.
    pub(super) fn is_method_at_sp(&self, stores: &[Stored]) -> bool {
        stores.contains(&(self.convention.method, self.size))
    }
}
