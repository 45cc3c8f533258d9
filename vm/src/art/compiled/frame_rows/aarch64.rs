//! Follows how arm64 code changes its frame: by stores and loads with base writeback, and by adding to the stack pointer.
//!
//! A prologue makes the whole frame at once and then saves registers in ascending order, the link register last. Until then, the return
//! address is in that register. After that, no store saves a register of the caller.
//!
//! ```text
//! str x0, [sp, #-64]!     or  stp x0, x22, [sp, #-64]!  or  sub sp, sp, #64
//! stp x22, x30, [sp, #48]
//! ...
//! ldp x22, x30, [sp, #48]
//! add sp, sp, #64         or  ldp xzr, x22, [sp], #64
//! ret
//! ```
//!
//! Sources: GenerateFrameEntry in compiler/optimizing/code_generator_arm64.cc and BuildFrame in
//! compiler/utils/arm64/jni_macro_assembler_arm64.cc of ART 11; the Arm Architecture Reference Manual, chapter C4.

use super::{FrameRow, FrameRows, MAX_ROWS};
use varid_model::Machine;
use varid_unwind::{FixedFrame, SavedRegister};

/// Size of an instruction in bytes.
const INSTRUCTION: u32 = 4;
/// Size of a register on the stack in bytes.
const WORD: i64 = 8;
/// The stack pointer, as a base and in sums.
const SP: u32 = 31;
/// The link register.
const LINK: u32 = 30;
/// The register in which a method is passed.
const METHOD: u32 = 0;
/// The first callee-saved register.
const FIRST_SAVED: u32 = 19;

/// The state of a frame at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    /// Bytes from the stack pointer to the caller's.
    size: i64,
    /// Numbers of the saved registers, which are DWARF's, and the distance of each below the caller's stack pointer.
    saved: Vec<(u32, i64)>,
    /// A register other than the stack pointer, and its value.
    known: Option<(u32, Value)>,
}

/// The value of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// An address in the frame: its distance below the caller's stack pointer.
    Below(i64),
    Constant(i64),
}

/// The effect of an instruction on frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// `to` = `from` + a constant.
    Add {
        to: u32,
        from: u32,
        constant: i64,
    },
    /// The stack pointer += or -= a register.
    AddRegister {
        register: u32,
        sign: i64,
    },
    /// A register = a constant. `keep`: the bits of the register that are unchanged.
    Set {
        to: u32,
        constant: i64,
        keep: i64,
    },
    /// Accesses memory at base + offset.
    Access(Access),
    Return,
    Other,
}

/// A load or a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    base: u32,
    offset: i64,
    /// What is added to the base: before the access if `is_before`, otherwise after it.
    written_back: i64,
    is_before: bool,
    /// The 64-bit registers that are stored, each one word above the previous one. None for a load.
    stored: [Option<u32>; 2],
}

impl Frame {
    fn row(&self, start: u32, whole: u32) -> FrameRow {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let saved = self.saved.iter().filter_map(|(register, below)| {
            Some(SavedRegister {
                dwarf: u16::try_from(*register).ok()?,
                offset: u32::try_from(self.size.checked_sub(*below)?).ok()?,
            })
        });
        let saved: Vec<_> = saved.collect();
        let make = match self.is_linked() {
            true => FixedFrame::new,
            false => FixedFrame::unlinked,
        };
        FrameRow {
            start,
            frame: make(Machine::Aarch64, size, &saved),
            excess: size.checked_sub(whole),
        }
    }

    /// Returns true if the return address is saved, in the frame's last word.
    fn is_linked(&self) -> bool {
        self.saved.contains(&(LINK, WORD))
    }

    /// Applies an instruction. Returns true if the frame is unwound in another way after it.
    fn execute(&mut self, effect: Effect) -> bool {
        let before = (self.size, self.saved.len());
        match effect {
            Effect::Add { to, from, constant } => {
                let sum = self.below(from).map(|below| below.saturating_sub(constant));
                match sum {
                    Some(below) if to == SP => self.size = below,
                    Some(below) => self.known = Some((to, Value::Below(below))),
                    None => self.forget(to),
                }
            }
            Effect::AddRegister { register, sign } => {
                if let Some((known, Value::Constant(constant))) = self.known
                    && known == register
                {
                    self.size = self.size.saturating_sub(constant.saturating_mul(sign));
                }
            }
            Effect::Set { to, constant, keep } => {
                let kept = match self.known {
                    Some((known, Value::Constant(before))) if known == to => before & keep,
                    _ => 0,
                };
                self.known = Some((to, Value::Constant(kept | constant)));
            }
            Effect::Access(access) => self.access(access),
            Effect::Return | Effect::Other => {}
        }
        self.size = self.size.max(0);
        self.saved.retain(|(_, below)| *below <= self.size);
        before != (self.size, self.saved.len())
    }

    /// Returns the distance of a register's address below the caller's stack pointer.
    fn below(&self, register: u32) -> Option<i64> {
        match (register, self.known) {
            (SP, _) => Some(self.size),
            (_, Some((known, Value::Below(below)))) if known == register => Some(below),
            _ => None,
        }
    }

    fn forget(&mut self, register: u32) {
        self.known = self.known.filter(|(known, _)| *known != register);
    }

    fn access(&mut self, access: Access) {
        let Some(base) = self.below(access.base) else {
            return;
        };
        let moved = base.saturating_sub(access.written_back);
        if access.base == SP {
            self.size = moved;
        } else if access.written_back != 0 {
            self.forget(access.base);
        }
        let first = match access.is_before {
            true => moved,
            false => base,
        };
        let first = first.saturating_sub(access.offset);
        let places = [first, first.saturating_sub(WORD)];
        // After the prologue, nothing is saved.
        let is_prologue = !self.is_linked();
        for (register, below) in access.stored.into_iter().zip(places) {
            let register = register.filter(|register| (FIRST_SAVED..=LINK).contains(register));
            let Some(register) = register.filter(|_| is_prologue) else {
                continue;
            };
            if self.saved.iter().all(|(saved, _)| *saved != register) {
                self.saved.push((register, below));
            }
        }
    }

    /// Returns true if an access stores the method at the stack pointer that is in effect after it.
    fn stores_method(&self, access: Access) -> bool {
        let is_at_sp = access.offset == 0 && (access.is_before || access.written_back == 0);
        access.base == SP && is_at_sp && access.stored.first() == Some(&Some(METHOD))
    }
}

/// Computes the frames of a method with this code, whose frame has `whole` bytes after the prologue.
pub(super) fn rows(code: &[u8], whole: u32) -> FrameRows {
    let mut frame = Frame {
        size: 0,
        saved: Vec::new(),
        known: None,
    };
    let mut rows = vec![frame.row(0, whole)];
    // The frame of the code that follows an epilogue.
    let mut body = (whole == 0).then(|| frame.clone());
    let mut stored = None;
    let mut next: u32 = 0;
    for instruction in code.as_chunks().0 {
        next = next.saturating_add(INSTRUCTION);
        let effect = effect(u32::from_le_bytes(*instruction));
        let changes = match (effect, &body) {
            (Effect::Return, Some(body)) => {
                let changes = frame != *body;
                frame.clone_from(body);
                changes
            }
            _ => frame.execute(effect),
        };
        let is_whole = frame.size == i64::from(whole);
        if body.is_none() && is_whole && frame.is_linked() {
            body = Some(frame.clone());
        }
        if let Effect::Access(access) = effect
            && stored.is_none()
            && is_whole
            && frame.stores_method(access)
        {
            stored = Some(next);
        }
        if changes {
            rows.push(frame.row(next, whole));
        }
        if rows.len() > MAX_ROWS {
            return FrameRows::unknown();
        }
    }
    match body {
        Some(_) => FrameRows { rows, stored },
        // An instruction that makes the frame was not understood. The rows after it would lead to a wrong caller.
        None => FrameRows::unknown(),
    }
}

/// Returns bits of an instruction.
const fn bits(word: u32, first: u32, count: u32) -> u32 {
    (word >> first) & ((1 << count) - 1)
}

/// Returns bits of an instruction as a signed number.
const fn signed(word: u32, first: u32, count: u32) -> i64 {
    let value = bits(word, first, count) as i64;
    match bits(word, first + count - 1, 1) {
        0 => value,
        _ => value - (1 << count),
    }
}

/// Returns the effect of an instruction.
fn effect(word: u32) -> Effect {
    let (low, base) = (bits(word, 0, 5), bits(word, 5, 5));
    if word & 0xbf80_0000 == 0x9100_0000 {
        // add, sub: 64-bit registers and a constant, optionally times 4096.
        let constant = i64::from(bits(word, 10, 12)) << (12 * bits(word, 22, 1));
        let constant = match bits(word, 30, 1) {
            0 => constant,
            _ => -constant,
        };
        return Effect::Add {
            to: low,
            from: base,
            constant,
        };
    }
    if word & 0xbfe0_ffff == 0x8b20_63ff {
        let sign = if bits(word, 30, 1) == 0 { 1 } else { -1 };
        return Effect::AddRegister {
            register: bits(word, 16, 5),
            sign,
        };
    }
    if word & 0xdf80_0000 == 0xd280_0000 {
        // movz, movk.
        let shift = 16 * bits(word, 21, 2);
        let keep = match bits(word, 29, 1) {
            0 => 0,
            _ => !(0xffff_i64 << shift),
        };
        return Effect::Set {
            to: low,
            constant: i64::from(bits(word, 5, 16)) << shift,
            keep,
        };
    }
    if word & 0xffff_fc1f == 0xd65f_0000 {
        return Effect::Return;
    }
    access(word).map_or(Effect::Other, Effect::Access)
}

/// Decodes a memory access by base and constant.
fn access(word: u32) -> Option<Access> {
    let (low, base) = (bits(word, 0, 5), bits(word, 5, 5));
    let is_vector = bits(word, 26, 1) == 1;
    if word & 0x3a00_0000 == 0x2800_0000 {
        // Pairs: with post-index writeback, none, or pre-index writeback. 0 is a hint, without writeback.
        let (size, mode) = (bits(word, 30, 2), bits(word, 23, 2));
        let scale = match (is_vector, size) {
            (true, _) => 4 << size,
            (false, 2) => 8,
            (false, _) => 4,
        };
        let constant = signed(word, 15, 7) * scale;
        let is_store = bits(word, 22, 1) == 0 && !is_vector && size == 2;
        let is_written_back = matches!(mode, 1 | 3);
        return Some(Access {
            base,
            offset: if is_written_back { 0 } else { constant },
            written_back: if is_written_back { constant } else { 0 },
            is_before: mode == 3,
            stored: match is_store {
                true => [Some(low), Some(bits(word, 10, 5))],
                false => [None, None],
            },
        });
    }
    // str of a 64-bit register: the bits that all its forms have in common.
    let is_store = word & 0xfec0_0000 == 0xf800_0000 && !is_vector;
    let stored = [is_store.then_some(low), None];
    if word & 0x3b00_0000 == 0x3900_0000 {
        // A scaled constant.
        let scale = bits(word, 30, 2);
        return Some(Access {
            base,
            offset: i64::from(bits(word, 10, 12)) << scale,
            written_back: 0,
            is_before: false,
            stored,
        });
    }
    if word & 0x3b20_0000 == 0x3800_0000 {
        let constant = signed(word, 12, 9);
        let (offset, written_back, is_before) = match bits(word, 10, 2) {
            0 => (constant, 0, false),
            1 => (0, constant, false),
            3 => (0, constant, true),
            _ => return None,
        };
        return Some(Access {
            base,
            offset,
            written_back,
            is_before,
            stored,
        });
    }
    None
}

#[cfg(test)]
mod tests;
