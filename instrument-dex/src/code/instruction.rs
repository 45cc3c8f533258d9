//! Decodes the instructions of a method.

use std::ops::Range;

use varid_symbolizer::dex::{Dialect, Format, Index, Opcode};

/// Opcodes that the rewriter treats specially or inserts.
pub(crate) mod opcode {
    pub(crate) const NOP: u8 = 0x00;
    pub(crate) const MOVE_FROM16: u8 = 0x02;
    pub(crate) const MOVE_WIDE_FROM16: u8 = 0x05;
    pub(crate) const MOVE_OBJECT_FROM16: u8 = 0x08;
    pub(crate) const MOVE_RESULT: u8 = 0x0a;
    pub(crate) const MOVE_RESULT_OBJECT: u8 = 0x0c;
    pub(crate) const MOVE_EXCEPTION: u8 = 0x0d;
    pub(crate) const CONST_4: u8 = 0x12;
    pub(crate) const CONST_16: u8 = 0x13;
    pub(crate) const CONST: u8 = 0x14;
    pub(crate) const CONST_WIDE_16: u8 = 0x16;
    pub(crate) const CONST_WIDE_32: u8 = 0x17;
    pub(crate) const CONST_STRING: u8 = 0x1a;
    pub(crate) const CONST_STRING_JUMBO: u8 = 0x1b;
    pub(crate) const MONITOR_ENTER: u8 = 0x1d;
    pub(crate) const MONITOR_EXIT: u8 = 0x1e;
    pub(crate) const FILL_ARRAY_DATA: u8 = 0x26;
    pub(crate) const THROW: u8 = 0x27;
    pub(crate) const GOTO: u8 = 0x28;
    pub(crate) const GOTO_16: u8 = 0x29;
    pub(crate) const GOTO_32: u8 = 0x2a;
    pub(crate) const PACKED_SWITCH: u8 = 0x2b;
    pub(crate) const IF_NE: u8 = 0x33;
    pub(crate) const IF_LTZ: u8 = 0x3a;
    pub(crate) const AGET_WIDE: u8 = 0x45;
    pub(crate) const APUT_WIDE: u8 = 0x4c;
    pub(crate) const SGET_OBJECT: u8 = 0x62;
    pub(crate) const INVOKE_STATIC: u8 = 0x71;
    pub(crate) const INVOKE_STATIC_RANGE: u8 = 0x77;
    pub(crate) const INT_TO_LONG: u8 = 0x81;
    pub(crate) const LONG_TO_INT: u8 = 0x84;
    pub(crate) const ADD_INT: u8 = 0x90;
    pub(crate) const ADD_LONG: u8 = 0x9b;
    pub(crate) const ADD_INT_2ADDR: u8 = 0xb0;
    pub(crate) const ADD_LONG_2ADDR: u8 = 0xbb;
    pub(crate) const USHR_LONG_2ADDR: u8 = 0xc5;
    pub(crate) const ADD_INT_LIT8: u8 = 0xd8;
}

/// The no-ops that begin a table: their high byte is not zero.
mod table {
    pub(super) const PACKED_SWITCH: u16 = 0x0100;
    pub(super) const SPARSE_SWITCH: u16 = 0x0200;
    pub(super) const ARRAY_DATA: u16 = 0x0300;
}

/// The most code units of all tables of a method: several instructions may share one, and get one each.
const MAX_TABLES: usize = 1 << 20;

/// An instruction.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    /// Its first code unit in the method.
    pub(crate) pc: u32,
    /// The low byte of the first code unit.
    pub(crate) code: u8,
    pub(crate) opcode: &'static Opcode,
    pub(crate) units: Vec<u16>,
    pub(crate) operand: Operand,
}

/// Where else an instruction leads, or what else it needs. Targets are indices of instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    None,
    /// A branch, conditional or not.
    Branch(usize),
    /// A switch: what its table has before the targets, and the targets.
    Switch {
        head: Vec<u16>,
        targets: Vec<usize>,
    },
    /// The table of fill-array-data.
    Data(Vec<u16>),
}

/// What is wrong with instructions: where, in code units, and what.
pub(crate) type Wrong = (u32, &'static str);

impl Instruction {
    /// Returns true if execution may go on with the next instruction.
    pub(crate) const fn falls_through(&self) -> bool {
        !matches!(self.code, 0x0e..=0x11 | opcode::THROW..=opcode::GOTO_32)
    }

    /// Returns true if it calls a method.
    pub(crate) const fn is_invoke(&self) -> bool {
        matches!(self.code, 0x6e..=0x72 | 0x74..=0x78 | 0xfa..=0xfd)
    }

    /// Returns true if it returns from the method.
    pub(crate) const fn is_return(&self) -> bool {
        matches!(self.code, 0x0e..=0x11)
    }

    /// Returns true if it may throw an exception, as the verifier of ART has it.
    pub(crate) const fn throws(&self) -> bool {
        matches!(
            self.code,
            // const-string to instance-of, array-length to throw.
            0x1a..=0x27
            // Elements of arrays, fields of instances and of classes, calls.
            | 0x44..=0x72 | 0x74..=0x78
            // Divisions and remainders of int and long.
            | 0x93 | 0x94 | 0x9e | 0x9f | 0xb3 | 0xb4 | 0xbe | 0xbf | 0xd3 | 0xd4 | 0xdb | 0xdc
            | 0xfa..=0xff
        )
    }

    /// Returns true if the VM may execute methods for it, to load or to initialize a class, other than the one that it calls.
    pub(crate) const fn may_load(&self) -> bool {
        // const-class, check-cast, instance-of, new-instance to filled-new-array/range, static fields, method handles and types.
        matches!(self.code, 0x1c | 0x1f | 0x20 | 0x22..=0x25 | 0x60..=0x6d | 0xfe | 0xff)
    }

    /// Returns true if it begins a handler by taking the exception.
    pub(crate) const fn is_move_exception(&self) -> bool {
        self.code == opcode::MOVE_EXCEPTION
    }

    /// Returns the code units.
    pub(crate) fn unit(&self, index: usize) -> u16 {
        self.units.get(index).copied().unwrap_or(0)
    }

    /// Returns the index among the operands, if there is one.
    pub(crate) fn index(&self) -> Option<u32> {
        match (self.opcode.index, self.opcode.format) {
            (Index::No, _) => None,
            (_, Format::F31c) => Some(self.wide(1)),
            _ => Some(self.unit(1).into()),
        }
    }

    fn wide(&self, index: usize) -> u32 {
        let high = self.unit(index.saturating_add(1));
        u32::from(high) << 16 | u32::from(self.unit(index))
    }

    /// Returns the distance to a target or a table, in code units.
    fn distance(&self) -> Option<i32> {
        let [_, high] = self.unit(0).to_le_bytes();
        match self.opcode.format {
            Format::F10t => Some(high.cast_signed().into()),
            Format::F20t | Format::F21t | Format::F22t => Some(self.unit(1).cast_signed().into()),
            Format::F30t | Format::F31t => Some(self.wide(1).cast_signed()),
            _ => None,
        }
    }
}

/// Decodes the code units of a method.
///
/// # Errors
///
/// They are not instructions of the dex format.
pub(crate) fn decode(units: &[u16]) -> Result<Vec<Instruction>, Wrong> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = units.get(at) {
        let pc = u32::try_from(at).unwrap_or(u32::MAX);
        let size = match *first {
            table::PACKED_SWITCH | table::SPARSE_SWITCH | table::ARRAY_DATA => {
                table_range(units, at)
                    .ok_or((pc, "the table is cut"))?
                    .len()
            }
            _ => {
                let [code, _] = first.to_le_bytes();
                let opcode = Dialect::Art.opcode(code);
                if is_unknown(code, opcode) {
                    return Err((pc, "an opcode that is not in the dex format"));
                }
                let size = opcode.format.units() as usize;
                let end = at.saturating_add(size);
                let units = units.get(at..end).ok_or((pc, "the instruction is cut"))?;
                all.push(Instruction {
                    pc,
                    code,
                    opcode,
                    units: units.to_vec(),
                    operand: Operand::None,
                });
                size
            }
        };
        at = at.saturating_add(size);
    }
    let pcs: Vec<u32> = all.iter().map(|one| one.pc).collect();
    let mut tables = 0;
    for instruction in &mut all {
        if let Some(distance) = instruction.distance() {
            instruction.operand = operand(units, &pcs, instruction, distance)?;
            tables = instruction.operand.table_units().saturating_add(tables);
            if tables > MAX_TABLES {
                return Err((instruction.pc, "too many tables"));
            }
        }
    }
    Ok(all)
}

impl Operand {
    /// Returns the code units of the table that the instruction needs.
    fn table_units(&self) -> usize {
        match self {
            Self::None | Self::Branch(_) => 0,
            Self::Switch { head, targets } => {
                targets.len().saturating_mul(2).saturating_add(head.len())
            }
            Self::Data(units) => units.len(),
        }
    }
}

/// Opcodes of VMs' own, and unused ones.
fn is_unknown(code: u8, opcode: &Opcode) -> bool {
    opcode.name.starts_with("unused") || matches!(code, 0x73 | 0xe3..=0xf9)
}

/// Returns the code units of the table at `at`.
fn table_range(units: &[u16], at: usize) -> Option<Range<usize>> {
    let unit = |index: usize| units.get(at.saturating_add(index)).copied();
    let count = usize::from(unit(1)?);
    let size = match unit(0)? {
        table::PACKED_SWITCH => count.saturating_mul(2).saturating_add(4),
        table::SPARSE_SWITCH => count.saturating_mul(4).saturating_add(2),
        table::ARRAY_DATA => {
            let elements = usize::from(unit(3)?) << 16 | usize::from(unit(2)?);
            let bytes = count.saturating_mul(elements);
            bytes.div_ceil(2).saturating_add(4)
        }
        _ => return None,
    };
    let end = at.checked_add(size)?;
    (end <= units.len()).then_some(at..end)
}

/// Finds what an instruction leads to.
fn operand(
    units: &[u16],
    pcs: &[u32],
    instruction: &Instruction,
    distance: i32,
) -> Result<Operand, Wrong> {
    let pc = instruction.pc;
    let target = |distance: i32| {
        let place = pc.checked_add_signed(distance);
        let found = place.and_then(|place| pcs.binary_search(&place).ok());
        found.ok_or((pc, "a branch that leads to no instruction"))
    };
    if instruction.opcode.format != Format::F31t {
        return target(distance).map(Operand::Branch);
    }
    let at = pc.checked_add_signed(distance);
    let range = at.and_then(|at| table_range(units, at as usize));
    let table = range.and_then(|range| units.get(range));
    let table = table.ok_or((pc, "the instruction has no table"))?;
    let kind = table.first().copied().unwrap_or(0);
    let count = table.get(1).copied().map_or(0, usize::from);
    let head = match (instruction.code, kind) {
        (opcode::FILL_ARRAY_DATA, table::ARRAY_DATA) => return Ok(Operand::Data(table.to_vec())),
        (opcode::PACKED_SWITCH, table::PACKED_SWITCH) => 4,
        (opcode::FILL_ARRAY_DATA | opcode::PACKED_SWITCH, _) => {
            return Err((pc, "the table is of another instruction"));
        }
        (_, table::SPARSE_SWITCH) => count.saturating_mul(2).saturating_add(2),
        _ => return Err((pc, "the table is of another instruction")),
    };
    let (head, rest) = table.split_at_checked(head).unwrap_or_default();
    let targets = rest.as_chunks::<2>().0.iter();
    let targets = targets.map(|[low, high]| {
        let distance = u32::from(*high) << 16 | u32::from(*low);
        target(distance.cast_signed())
    });
    Ok(Operand::Switch {
        head: head.to_vec(),
        targets: targets.collect::<Result<_, _>>()?,
    })
}
