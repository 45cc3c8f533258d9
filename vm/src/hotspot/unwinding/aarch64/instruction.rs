//! What does an AArch64 instruction do to the stack pointer, the frame pointer and the link register, and where does it go?
//!
//! Source: the Arm Architecture Reference Manual, chapter C4.

/// Size of an instruction in bytes.
pub(super) const SIZE: usize = 4;
/// Bytes of a page, as `adrp` counts them.
const PAGE: i64 = 1 << 12;
/// The frame pointer.
pub(super) const FP: u32 = 29;
/// The link register.
pub(super) const LINK: u32 = 30;
/// The stack pointer as a base and in sums, zero elsewhere.
pub(super) const SP: u32 = 31;

/// An instruction, as far as frames are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// A load or a store at the stack pointer.
    Access(Access),
    /// `to` = `from` + `constant`.
    Add {
        to: u32,
        from: u32,
        constant: i64,
    },
    /// The stack pointer is set by a calculation that is none of a register and a constant.
    SetSp,
    /// `to` = the page of the instruction + so many bytes.
    Page {
        to: u32,
        distance: i64,
    },
    /// `to` = `constant`. `keep`: the bits of the register that are unchanged.
    Set {
        to: u32,
        constant: u64,
        keep: u64,
    },
    /// `to` = the word so many bytes behind the instruction.
    Literal {
        to: u32,
        distance: i64,
    },
    /// A call of what is so many bytes behind the instruction.
    Call {
        distance: i64,
    },
    /// A call of the address in a register.
    CallRegister(u32),
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
    pub(super) pair: Option<(u32, u32)>,
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
    /// Decodes the instruction at an offset in some code. None outside of it.
    pub(super) fn at(code: &[u8], at: usize) -> Option<Self> {
        let bytes = code.get(at..)?.first_chunk()?;
        Some(Self::decode(u32::from_le_bytes(*bytes)))
    }

    /// Returns true if control does not come from the instruction to the next one, or through other code only.
    pub(super) fn leaves(self) -> bool {
        matches!(
            self,
            Self::Call { .. } | Self::CallRegister(_) | Self::Jump | Self::Return
        )
    }

    fn decode(word: u32) -> Self {
        let (to, from) = (bits(word, 0, 5), bits(word, 5, 5));
        match word {
            _ if word & 0xbf80_0000 == 0x9100_0000 => {
                let constant =
                    i64::from(bits(word, 10, 12)).wrapping_shl(bits(word, 22, 1).wrapping_mul(12));
                let constant = match bits(word, 30, 1) {
                    0 => constant,
                    _ => constant.wrapping_neg(),
                };
                Self::Add { to, from, constant }
            }
            // A sum with an extended register; `and`, `orr` and `eor` with a constant; vectors behind the stack pointer, which is moved.
            _ if word & 0xbfe0_001f == 0x8b20_001f
                || word & 0x9f80_001f == 0x9200_001f && bits(word, 29, 2) != 3
                || word & 0xbe80_03e0 == 0x0c80_03e0 =>
            {
                Self::SetSp
            }
            _ if word & 0x9f00_0000 == 0x9000_0000 => {
                let pages = signed(word, 5, 19) << 2 | i64::from(bits(word, 29, 2));
                let distance = pages.wrapping_mul(PAGE);
                Self::Page { to, distance }
            }
            _ if word & 0xdf80_0000 == 0xd280_0000 => {
                // movz, movk.
                let part = |value: u64| value.wrapping_shl(bits(word, 21, 2).wrapping_mul(16));
                let constant = part(bits(word, 5, 16).into());
                let keep = match bits(word, 29, 1) {
                    0 => 0,
                    _ => !part(0xffff),
                };
                Self::Set { to, constant, keep }
            }
            _ if word & 0xff00_0000 == 0x5800_0000 => {
                let distance = signed(word, 5, 19) << 2;
                Self::Literal { to, distance }
            }
            _ if word & 0xfc00_0000 == 0x9400_0000 => {
                let distance = signed(word, 0, 26) << 2;
                Self::Call { distance }
            }
            _ if word & 0xffff_fc1f == 0xd63f_0000 => Self::CallRegister(from),
            _ if word & 0xffff_fc1f == 0xd65f_0000 => Self::Return,
            // b, br.
            _ if word & 0xfc00_0000 == 0x1400_0000 || word & 0xffff_fc1f == 0xd61f_0000 => {
                Self::Jump
            }
            _ => access(word).map_or(Self::Other, Self::Access),
        }
    }
}

/// Returns bits of an instruction.
const fn bits(word: u32, first: u32, count: u32) -> u32 {
    word.wrapping_shr(first) & !u32::MAX.wrapping_shl(count)
}

/// Returns bits of an instruction as a signed number.
const fn signed(word: u32, first: u32, count: u32) -> i64 {
    let rest = u32::BITS.wrapping_sub(count);
    let high = word.wrapping_shl(rest.wrapping_sub(first)).cast_signed();
    high.wrapping_shr(rest) as i64
}

/// Decodes a load or a store at the stack pointer. None if it is something else.
fn access(word: u32) -> Option<Access> {
    if bits(word, 5, 5) != SP {
        return None;
    }
    let is_vector = bits(word, 26, 1) == 1;
    let placed = |offset: i64, mode: u32| match mode {
        // The stack pointer is moved after the access, before it, or not at all.
        1 => (0, offset),
        3 => (offset, offset),
        _ => (offset, 0),
    };
    if word & 0x3a00_0000 == 0x2800_0000 {
        let size = bits(word, 30, 2);
        let scale = match is_vector {
            true => 4_i64.wrapping_shl(size),
            false => 4_i64.wrapping_shl(size >> 1),
        };
        let (offset, moved) = placed(signed(word, 15, 7).wrapping_mul(scale), bits(word, 23, 2));
        let pair = (bits(word, 0, 5), bits(word, 10, 5));
        return Some(Access {
            is_load: bits(word, 22, 1) == 1,
            pair: (size == 2 && !is_vector).then_some(pair),
            offset,
            moved,
        });
    }
    // One register, with writeback.
    if word & 0x3b20_0400 == 0x3800_0400 {
        let (offset, moved) = placed(signed(word, 12, 9), bits(word, 10, 2));
        return Some(Access {
            is_load: bits(word, 22, 2) != 0,
            pair: None,
            offset,
            moved,
        });
    }
    None
}
