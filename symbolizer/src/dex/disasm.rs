//! Disassembles the instructions of a method.

mod flow;

use std::fmt;

use super::file::DexFile;
use super::names::class_name;
use super::opcodes::{Dialect, Format, Index, Opcode};
use super::printf::general;
use super::read::{bad, u16_at, u32_at};
use crate::Result;
use crate::bytecode::MethodCode;

/// The no-ops that begin a table: their high byte is not zero.
const PACKED_SWITCH: u16 = 0x0100;
const SPARSE_SWITCH: u16 = 0x0200;
const ARRAY_DATA: u16 = 0x0300;

/// An instruction, or one of the tables between the instructions. Displays as in dexdump:
/// `invoke-virtual {v0, v1}, Lorg/example/Balls;.draw:(I)V // method@0011`.
///
/// Branch targets are in code units from the method's first instruction. Broken names are shown as `<method?>`, and line breaks in strings
/// are escaped.
#[derive(Debug, Clone, Copy)]
pub struct Instruction<'d> {
    dex: &'d DexFile<'d>,
    opcode: &'static Opcode,
    /// Offset in the method, in code units.
    pc: u32,
    /// File offset.
    pub offset: u32,
    /// Size in code units, of two bytes each.
    pub units: u32,
}

/// The instructions of a method: see [`DexFile::disassemble`].
#[derive(Debug, Clone)]
pub struct Instructions<'d> {
    dex: &'d DexFile<'d>,
    dialect: Dialect,
    start: u32,
    next: u32,
    end: u32,
}

impl DexFile<'_> {
    /// Returns the instructions of `method` in order. An instruction that reaches beyond the method's end is an error, and the last item.
    #[must_use]
    pub fn disassemble(&self, method: &MethodCode) -> Instructions<'_> {
        self.disassemble_as(method, Dialect::Art)
    }

    /// Like [`DexFile::disassemble`], with the opcodes of another VM.
    #[must_use]
    pub fn disassemble_as(&self, method: &MethodCode, dialect: Dialect) -> Instructions<'_> {
        Instructions {
            dex: self,
            dialect,
            start: method.code.start,
            next: method.code.start,
            end: method.code.end,
        }
    }
}

impl<'d> Iterator for Instructions<'d> {
    type Item = Result<Instruction<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let instruction = self.read(self.next);
        self.next = match &instruction {
            Ok(instruction) => instruction
                .units
                .saturating_mul(2)
                .saturating_add(self.next),
            Err(_) => self.end,
        };
        Some(instruction)
    }
}

impl<'d> Instructions<'d> {
    fn read(&self, offset: u32) -> Result<Instruction<'d>> {
        let data = self.dex.bytes();
        let at = offset as usize;
        let unit = u16_at(data, at, "instruction")?;
        let count = || u16_at(data, at.saturating_add(2), "payload size").map(u32::from);
        let [low, _] = unit.to_le_bytes();
        let opcode = self.dialect.opcode(low);
        let units = match unit {
            PACKED_SWITCH => count()?.saturating_mul(2).saturating_add(4),
            SPARSE_SWITCH => count()?.saturating_mul(4).saturating_add(2),
            ARRAY_DATA => {
                let elements = u32_at(data, at.saturating_add(4), "payload size")?;
                let bytes = u64::from(count()?).saturating_mul(elements.into());
                let units = bytes.div_ceil(2).saturating_add(4);
                u32::try_from(units).unwrap_or(u32::MAX)
            }
            _ => opcode.format.units(),
        };
        let left = self.end.saturating_sub(offset);
        if units.saturating_mul(2) > left {
            return Err(bad(
                "instruction",
                at,
                "reaches beyond the end of its method",
            ));
        }
        Ok(Instruction {
            dex: self.dex,
            opcode,
            pc: offset.saturating_sub(self.start) / 2,
            offset,
            units,
        })
    }
}

impl Instruction<'_> {
    /// Code unit `index` of the instruction. Zero beyond the file.
    fn unit(&self, index: usize) -> u16 {
        let at = (self.offset as usize).saturating_add(index.saturating_mul(2));
        u16_at(self.dex.bytes(), at, "instruction").unwrap_or(0)
    }

    /// The high byte of the first code unit.
    fn aa(&self) -> u8 {
        let [_, high] = self.unit(0).to_le_bytes();
        high
    }

    /// The lower half of that byte.
    fn a(&self) -> u8 {
        self.aa() & 0xf
    }

    /// The upper half of that byte.
    fn b(&self) -> u8 {
        self.aa() >> 4
    }

    /// The 32 bits at code unit `index`.
    fn wide(&self, index: usize) -> u32 {
        let high = self.unit(index.saturating_add(1));
        u32::from(high) << 16 | u32::from(self.unit(index))
    }

    /// The branch target `distance` code units from here.
    fn target(&self, distance: i32) -> Target {
        Target {
            place: self.pc.wrapping_add_signed(distance),
            distance,
        }
    }
}

/// The target of a branch.
struct Target {
    place: u32,
    distance: i32,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.distance < 0 { '-' } else { '+' };
        let distance = self.distance.unsigned_abs();
        write!(f, "{:04x} // {sign}{distance:04x}", self.place)
    }
}

impl fmt::Display for Instruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit(0) {
            PACKED_SWITCH => return write!(f, "packed-switch-data ({} units)", self.units),
            SPARSE_SWITCH => return write!(f, "sparse-switch-data ({} units)", self.units),
            ARRAY_DATA => return write!(f, "array-data ({} units)", self.units),
            nop if nop & 0xff == 0 => return f.write_str("nop // spacer"),
            _ => f.write_str(self.opcode.name)?,
        }
        self.write_operands(f)
    }
}

impl Instruction<'_> {
    /// Writes the operands, each with a space in front.
    fn write_operands(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, aa) = (self.a(), self.b(), self.aa());
        let unit = self.unit(1);
        let signed = unit.cast_signed();
        let [low, high] = unit.to_le_bytes();
        match self.opcode.format {
            Format::F10x => Ok(()),
            Format::F12x => write!(f, " v{a}, v{b}"),
            Format::F11n => {
                let value = b.cast_signed() << 4 >> 4;
                write!(f, " v{a}, #int {value} // #{value:x}")
            }
            Format::F11x => write!(f, " v{aa}"),
            Format::F10t => write!(f, " {}", self.target(aa.cast_signed().into())),
            Format::F20t => write!(f, " {}", self.target(signed.into())),
            Format::F20bc => write!(f, " #{aa}, {}", self.reference(unit.into())),
            Format::F22x => write!(f, " v{aa}, v{unit}"),
            Format::F21t => write!(f, " v{aa}, {}", self.target(signed.into())),
            Format::F21s => write!(f, " v{aa}, #int {signed} // #{unit:x}"),
            Format::F21h => {
                write!(f, " v{aa}, #int {} // #{unit:x}", i32::from(signed) << 16)
            }
            Format::F21hw => {
                write!(f, " v{aa}, #long {} // #{unit:x}", i64::from(signed) << 48)
            }
            Format::F21c => write!(f, " v{aa}, {}", self.reference(unit.into())),
            Format::F31c => write!(f, " v{aa}, {}", self.reference(self.wide(1))),
            Format::F23x => write!(f, " v{aa}, v{low}, v{high}"),
            Format::F22b => {
                let value = high.cast_signed();
                write!(f, " v{aa}, v{low}, #int {value} // #{high:02x}")
            }
            Format::F22t => write!(f, " v{a}, v{b}, {}", self.target(signed.into())),
            Format::F22s => write!(f, " v{a}, v{b}, #int {signed} // #{unit:04x}"),
            Format::F22c => write!(f, " v{a}, v{b}, {}", self.reference(unit.into())),
            Format::F30t => write!(f, " #{:08x}", self.wide(1)),
            Format::F31i => self.write_float(f),
            Format::F31t => self.write_payload_offset(f),
            Format::F32x => write!(f, " v{unit}, v{}", self.unit(2)),
            Format::F35c | Format::F45cc => {
                self.write_listed_registers(f)?;
                write!(f, ", {}", self.reference(unit.into()))
            }
            Format::F3rc | Format::F4rcc => {
                let first = u32::from(self.unit(2));
                self.list(f, first..first.saturating_add(aa.into()))?;
                write!(f, ", {}", self.reference(unit.into()))
            }
            Format::F51l => self.write_double(f),
        }
    }

    fn write_float(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.wide(1);
        let number = general(f32::from_bits(bits).into());
        write!(f, " v{}, #float {number} // #{bits:08x}", self.aa())
    }

    fn write_double(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u64::from(self.wide(3)) << 32 | u64::from(self.wide(1));
        let number = general(f64::from_bits(bits));
        write!(f, " v{}, #double {number} // #{bits:016x}", self.aa())
    }

    /// Writes where the table of a switch or of an array's data is.
    fn write_payload_offset(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distance = self.wide(1);
        let place = self.pc.wrapping_add(distance);
        write!(f, " v{}, {place:08x} // +{distance:08x}", self.aa())
    }

    /// Writes up to five registers of four bits each.
    fn write_listed_registers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.unit(2);
        let registers = [
            rest & 0xf,
            rest >> 4 & 0xf,
            rest >> 8 & 0xf,
            rest >> 12,
            self.a().into(),
        ];
        let count = usize::from(self.b());
        self.list(f, registers.into_iter().take(count))
    }
}

impl<'d> Instruction<'d> {
    /// Writes registers in braces.
    fn list<N: fmt::Display>(
        &self,
        f: &mut fmt::Formatter<'_>,
        registers: impl Iterator<Item = N>,
    ) -> fmt::Result {
        f.write_str(" {")?;
        for (place, register) in registers.enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}v{register}")?;
        }
        f.write_str("}")
    }

    /// Returns the method that a call names, as Java writes it: `org.example.Balls.draw`.
    #[must_use]
    pub fn called_method(&self) -> Option<String> {
        if self.opcode.index != Index::DexMethod {
            return None;
        }
        let method = self.dex.method_item(self.unit(1).into()).ok()?;
        let class = self.dex.type_descriptor(method.class.into()).ok()?;
        let name = self.dex.string(method.name).ok()?;
        Some(format!("{}.{name}", class_name(&class)))
    }

    /// What the operand `index` refers to.
    fn reference(&self, index: u32) -> Reference<'d> {
        Reference {
            dex: self.dex,
            kind: self.opcode.index,
            index,
            proto: match self.opcode.index {
                Index::MethodAndProto => self.unit(3),
                _ => 0,
            },
            width: match self.opcode.format {
                Format::F31c => 8,
                _ => 4,
            },
        }
    }
}

/// An index, and the kind of its table.
struct Reference<'d> {
    dex: &'d DexFile<'d>,
    kind: Index,
    index: u32,
    /// The prototype that a polymorphic call has in addition.
    proto: u16,
    /// Number of digits of the index.
    width: usize,
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dex, index, width) = (self.dex, self.index, self.width);
        let or = |name: Result<String>, placeholder: &str| {
            name.unwrap_or_else(|_| placeholder.to_owned())
        };
        let method = || or(dex.method_reference(index), "<method?>");
        match self.kind {
            Index::No => Ok(()),
            Index::String => match dex.string(index) {
                Ok(text) => write!(f, "\"{}\" // string@{index:0width$x}", Escaped(&text)),
                Err(_) => write!(f, "<string?> // string@{index:0width$x}"),
            },
            Index::Type => {
                let name = or(dex.type_descriptor(index), "<type?>");
                write!(f, "{name} // type@{index:0width$x}")
            }
            Index::Field => {
                let name = or(dex.field_reference(index), "<field?>");
                write!(f, "{name} // field@{index:0width$x}")
            }
            Index::DexMethod => write!(f, "{} // method@{index:0width$x}", method()),
            Index::MethodAndProto => {
                let proto = or(dex.prototype(self.proto.into()), "<proto?>");
                let number = self.proto;
                write!(
                    f,
                    "{}, {proto} // method@{index:04x}, proto@{number:04x}",
                    method()
                )
            }
            Index::Proto => {
                let name = or(dex.prototype(index), "<?>");
                write!(f, "{name} // proto@{index:0width$x}")
            }
            Index::CallSite => write!(f, "call_site@{index:0width$x}"),
            Index::MethodHandle => write!(f, "method_handle@{index:0width$x}"),
            Index::FieldOffset => write!(f, "[obj+{index:0width$x}]"),
            Index::Vtable => write!(f, "[{index:0width$x}] // vtable #{index:0width$x}"),
            Index::Inline => write!(f, "[{index:0width$x}] // inline #{index:0width$x}"),
            Index::Any => write!(f, "thing@{index:0width$x}"),
        }
    }
}

/// A string, escaped so that it stays on one line.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' | '\u{2028}' | '\u{2029}' => write!(f, "{}", letter.escape_default())?,
                letter if letter.is_control() => write!(f, "{}", letter.escape_default())?,
                letter => fmt::Write::write_char(f, letter)?,
            }
        }
        Ok(())
    }
}
