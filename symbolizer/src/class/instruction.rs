//! The instructions of Java's bytecode.

use std::borrow::Cow;
use std::fmt;

use super::constants::ConstantPool;
use super::opcodes::{Opcode, Operands, array_type, opcode};

/// An instruction, which is written as javap does, in one line: `invokestatic #7 // Method java/lang/Math.sqrt:(D)D`.
#[derive(Debug, Clone)]
pub struct Instruction<'c, 'd> {
    /// Its index in the bytecode.
    pub bci: u32,
    /// Its size in bytes, with its operands.
    pub len: u32,
    pool: &'c ConstantPool<'d>,
    opcode: Opcode,
    /// Whether `wide` is in front of it.
    is_wide: bool,
    /// The bytes of its operands, without the padding of switches.
    operands: &'d [u8],
}

/// The instructions of a method, in order. They end at the first one that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Instructions<'c, 'd> {
    pool: &'c ConstantPool<'d>,
    bytecode: &'d [u8],
    bci: usize,
}

impl<'c, 'd> Instructions<'c, 'd> {
    pub(super) const fn new(pool: &'c ConstantPool<'d>, bytecode: &'d [u8]) -> Self {
        Self {
            pool,
            bytecode,
            bci: 0,
        }
    }
}

impl<'c, 'd> Iterator for Instructions<'c, 'd> {
    type Item = Instruction<'c, 'd>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytecode.get(self.bci..)?;
        let (byte, mut operands) = rest.split_first()?;
        let mut opcode = opcode(*byte)?;
        let mut before = 1;
        let is_wide = opcode.operands == Operands::Wide;
        if is_wide {
            let (byte, wider) = operands.split_first()?;
            opcode = super::opcodes::opcode(*byte)?;
            operands = wider;
            before = 2;
            if !matches!(opcode.operands, Operands::Local | Operands::Increment) {
                return None;
            }
        }
        // The operands of switches are aligned to four bytes from the start of the method.
        if let Operands::TableSwitch | Operands::LookupSwitch = opcode.operands {
            let after = self.bci.checked_add(before)?;
            let padding = after.next_multiple_of(4).checked_sub(after)?;
            operands = operands.get(padding..)?;
            before = before.checked_add(padding)?;
        }
        let size = size(opcode.operands, is_wide, operands)?;
        let operands = operands.get(..size)?;
        let len = before.checked_add(size)?;
        let instruction = Instruction {
            bci: u32::try_from(self.bci).ok()?,
            len: u32::try_from(len).ok()?,
            pool: self.pool,
            opcode,
            is_wide,
            operands,
        };
        self.bci = self.bci.checked_add(len)?;
        Some(instruction)
    }
}

/// Returns the size of operands that start with these bytes.
fn size(operands: Operands, is_wide: bool, bytes: &[u8]) -> Option<usize> {
    Some(match operands {
        Operands::None => 0,
        Operands::Byte | Operands::ShortConstant | Operands::ArrayType => 1,
        Operands::Local if is_wide => 2,
        Operands::Local => 1,
        Operands::Increment if is_wide => 4,
        Operands::Increment | Operands::Short | Operands::Constant | Operands::Branch => 2,
        Operands::MultiArray => 3,
        Operands::DynamicCall | Operands::InterfaceCall | Operands::WideBranch => 4,
        Operands::TableSwitch => {
            let (low, high) = (i32_at(bytes, 4)?, i32_at(bytes, 8)?);
            let last = i64::from(high).checked_sub(i64::from(low))?;
            let count = usize::try_from(last.checked_add(1)?).ok()?;
            count.checked_mul(4)?.checked_add(12)?
        }
        Operands::LookupSwitch => {
            let count = usize::try_from(i32_at(bytes, 4)?).ok()?;
            count.checked_mul(8)?.checked_add(8)?
        }
        Operands::Wide => return None,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*found))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_be_bytes(*found))
}

impl<'d> Instruction<'_, 'd> {
    /// Returns its opcode, without `wide`.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        self.opcode.number
    }

    /// Returns its name, without `wide`: `invokestatic`.
    #[must_use]
    pub const fn mnemonic(&self) -> &'static str {
        self.opcode.name
    }

    /// Returns true if `wide` is in front of it.
    #[must_use]
    pub const fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Returns the descriptor of the field or method that it names, such as `I` or `(I)V`. None if it names neither.
    #[must_use]
    pub fn member_descriptor(&self) -> Option<Cow<'d, str>> {
        match self.opcode.operands {
            Operands::Constant | Operands::InterfaceCall => {
                let descriptor = self.pool.descriptor(self.short(0))?;
                Some(descriptor.decoded())
            }
            _ => None,
        }
    }

    /// Returns the field or method that it names, such as `java.lang.Math.min`. None if it names neither.
    #[must_use]
    pub fn member(&self) -> Option<String> {
        match self.opcode.operands {
            Operands::Constant | Operands::InterfaceCall => self.pool.member(self.short(0)),
            _ => None,
        }
    }

    /// Returns the local variable and the number that `iinc` adds to it. None for other instructions.
    #[must_use]
    pub fn local_and_increment(&self) -> Option<(u16, i16)> {
        match self.opcode.operands {
            Operands::Increment => Some((self.local(), self.increment())),
            _ => None,
        }
    }

    /// Returns the bytecode indices that it may branch to, those of all cases of a switch among them. They may lie outside the code.
    #[must_use]
    pub fn targets(&self) -> Vec<i64> {
        let cases = |start: usize, size: usize| {
            let cases = self.operands.get(start..).unwrap_or_default();
            let distances = cases.chunks_exact(size).map(move |case| {
                let at = size.saturating_sub(4);
                i32_at(case, at).unwrap_or_default()
            });
            std::iter::once(self.int(0)).chain(distances)
        };
        match self.opcode.operands {
            Operands::Branch => vec![self.target(self.short(0).cast_signed().into())],
            Operands::WideBranch => vec![self.target(self.int(0))],
            Operands::TableSwitch => cases(12, 4).map(|case| self.target(case)).collect(),
            Operands::LookupSwitch => cases(8, 8).map(|case| self.target(case)).collect(),
            _ => Vec::new(),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.operands.get(at).copied().unwrap_or_default()
    }

    fn short(&self, at: usize) -> u16 {
        u16_at(self.operands, at).unwrap_or_default()
    }

    fn int(&self, at: usize) -> i32 {
        i32_at(self.operands, at).unwrap_or_default()
    }

    /// The instruction at a distance from this one.
    fn target(&self, distance: i32) -> i64 {
        i64::from(self.bci).saturating_add(distance.into())
    }

    fn default_case(&self) -> i64 {
        self.target(self.int(0))
    }

    fn table_switch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = self.operands.get(12..).unwrap_or_default();
        let (cases, _) = cases.as_chunks();
        for (value, case) in (i64::from(self.int(4))..).zip(cases) {
            let target = self.target(i32::from_be_bytes(*case));
            write!(f, " {value}: {target},")?;
        }
        write!(f, " default: {}", self.default_case())
    }

    fn lookup_switch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = self.operands.get(8..).unwrap_or_default();
        let (cases, _) = cases.as_chunks::<8>();
        for case in cases {
            let value = i32_at(case, 0).unwrap_or_default();
            let target = self.target(i32_at(case, 4).unwrap_or_default());
            write!(f, " {value}: {target},")?;
        }
        write!(f, " default: {}", self.default_case())
    }

    fn local(&self) -> u16 {
        match self.is_wide {
            true => self.short(0),
            false => self.byte(0).into(),
        }
    }

    fn increment(&self) -> i16 {
        match self.is_wide {
            true => self.short(2).cast_signed(),
            false => self.byte(1).cast_signed().into(),
        }
    }
}

impl fmt::Display for Instruction<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.opcode.name)?;
        if self.is_wide {
            f.write_str("_w")?;
        }
        let shown = |index: u16| self.pool.shown(index);
        match self.opcode.operands {
            Operands::None | Operands::Wide => Ok(()),
            Operands::Byte => write!(f, " {}", self.byte(0).cast_signed()),
            Operands::Short => write!(f, " {}", self.short(0).cast_signed()),
            Operands::Local => write!(f, " {}", self.local()),
            Operands::Increment => write!(f, " {}, {}", self.local(), self.increment()),
            Operands::ShortConstant => {
                let index = self.byte(0).into();
                write!(f, " #{index} // {}", shown(index))
            }
            Operands::Constant => {
                let index = self.short(0);
                write!(f, " #{index} // {}", shown(index))
            }
            Operands::InterfaceCall | Operands::DynamicCall | Operands::MultiArray => {
                let (index, count) = (self.short(0), self.byte(2));
                write!(f, " #{index}, {count} // {}", shown(index))
            }
            Operands::ArrayType => write!(f, " {}", array_type(self.byte(0))),
            Operands::Branch => {
                let distance = self.short(0).cast_signed();
                write!(f, " {}", self.target(distance.into()))
            }
            Operands::WideBranch => write!(f, " {}", self.target(self.int(0))),
            Operands::TableSwitch => self.table_switch(f),
            Operands::LookupSwitch => self.lookup_switch(f),
        }
    }
}
