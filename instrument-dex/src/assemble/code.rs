//! What does a method execute?

use crate::code::{Assembler, Label, halves};
use crate::error::{NotRewritten, Result};
use crate::file::Order;

/// What an instruction refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference(Item);

/// An item of a table, by its index before the table is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    String(u32),
    Type(u32),
    Field(u32),
    Method(u32),
}

/// A part of a method's code.
#[derive(Debug, Clone)]
enum Part {
    Units(Vec<u16>),
    /// Its second code unit becomes the index.
    Indexed(Vec<u16>, Reference),
    Place(Label),
    Goto(Label),
    Branch(u16, Label),
    Table(u16, Vec<u16>, Vec<Label>),
}

/// The code of a method.
#[derive(Debug)]
pub struct Code {
    registers: u16,
    outs: u16,
    parts: Vec<Part>,
    assembler: Assembler,
}

impl Code {
    /// Starts code with so many registers, of which the last ones are those of the arguments, and at most so many registers of arguments of a
    /// call.
    #[must_use]
    pub fn new(registers: u16, outs: u16) -> Self {
        Self {
            registers,
            outs,
            parts: Vec::new(),
            assembler: Assembler::default(),
        }
    }

    /// Makes a label, which is placed later.
    pub fn label(&mut self) -> Label {
        self.assembler.label()
    }

    /// Places a label before the next instruction.
    pub fn place(&mut self, label: Label) {
        self.parts.push(Part::Place(label));
    }

    /// Appends an instruction without an index. Branches in it are relative to it.
    pub fn units(&mut self, units: &[u16]) {
        self.parts.push(Part::Units(units.to_vec()));
    }

    /// Appends an instruction whose second code unit, or the second and the third one of const-string/jumbo, is the index of `reference`.
    pub fn indexed(&mut self, units: &[u16], reference: Reference) {
        self.parts.push(Part::Indexed(units.to_vec(), reference));
    }

    /// Appends a goto.
    pub fn goto(&mut self, target: Label) {
        self.parts.push(Part::Goto(target));
    }

    /// Appends a conditional branch, by its first code unit.
    pub fn branch(&mut self, first: u16, target: Label) {
        self.parts.push(Part::Branch(first, target));
    }

    /// Appends an instruction with a table behind the code: its first code unit, what the table has before the targets, and the targets. The
    /// table of fill-array-data has none.
    pub fn table(&mut self, first: u16, head: &[u16], targets: &[Label]) {
        let (head, targets) = (head.to_vec(), targets.to_vec());
        self.parts.push(Part::Table(first, head, targets));
    }

    /// Returns the code_item of a method whose arguments take so many registers.
    pub(super) fn encode(mut self, arguments: u16, order: &Order) -> Result<Vec<u8>> {
        /// The format of const-string/jumbo: an index of 32 bits.
        const JUMBO: u16 = 0x1b;
        for part in self.parts {
            match part {
                Part::Units(units) => self.assembler.units(units, None),
                Part::Indexed(mut units, reference) => {
                    let index = reference.index(order)?;
                    let is_wide = units.first().is_some_and(|first| first & 0xff == JUMBO);
                    let halves = halves(index);
                    let [low, high] = halves;
                    let index = if is_wide { &halves[..] } else { &[low] };
                    if !is_wide && high != 0 {
                        return Err(NotRewritten::Full("strings"));
                    }
                    let place = units.get_mut(1..index.len().saturating_add(1));
                    place
                        .ok_or(NotRewritten::Unsupported("an index without a place for it"))?
                        .copy_from_slice(index);
                    self.assembler.units(units, None);
                }
                Part::Place(label) => self.assembler.place(label),
                Part::Goto(target) => self.assembler.goto(target),
                Part::Branch(first, target) => self.assembler.branch(first, target),
                Part::Table(first, head, targets) => {
                    self.assembler.table(first, head, targets, None);
                }
            }
        }
        let units = self.assembler.finish().units;
        let mut item = Vec::new();
        for value in [self.registers, arguments, self.outs, 0, 0, 0] {
            item.extend(value.to_le_bytes());
        }
        let length = u32::try_from(units.len()).unwrap_or(u32::MAX);
        item.extend(length.to_le_bytes());
        item.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        Ok(item)
    }
}

impl Reference {
    pub(super) const fn new(item: Item) -> Self {
        Self(item)
    }

    fn index(self, order: &Order) -> Result<u32> {
        match self.0 {
            Item::String(old) => order.strings.get(old, 0),
            Item::Type(old) => order.types.get(old, 0),
            Item::Field(old) => order.fields.get(old, 0),
            Item::Method(old) => order.methods.get(old, 0),
        }
    }
}
