//! Lays out instructions: branches get the size that their distance needs, tables follow the code.

use super::instruction::opcode;

/// A place in the code to which branches and handlers lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Label(usize);

/// Where exceptions of an instruction lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Cover {
    /// The index of the handlers of the original code.
    pub(crate) handlers: Option<usize>,
    /// Whether what they do not catch leads to the stub that leaves the method.
    pub(crate) exit: bool,
}

impl Cover {
    /// Exceptions leave the method.
    pub(crate) const NONE: Self = Self {
        handlers: None,
        exit: false,
    };
}

/// An instruction that is laid out.
#[derive(Debug)]
enum Item {
    /// Code units that do not depend on the layout.
    Fixed(Vec<u16>),
    /// A branch that is not conditional.
    Goto { target: Label, reach: Reach },
    /// A conditional branch: its first code unit.
    If {
        first: u16,
        target: Label,
        is_far: bool,
    },
    /// An instruction with a table: its first code unit, what the table has before the targets, and the targets.
    Table {
        first: u16,
        head: Vec<u16>,
        targets: Vec<Label>,
    },
}

/// The size of a goto.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Bits8,
    Bits16,
    Bits32,
}

/// Instructions in their order.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    items: Vec<Item>,
    /// The cover of each item. None: it does not throw.
    covers: Vec<Option<Cover>>,
    /// The index of the item at each label.
    labels: Vec<Option<usize>>,
}

/// The code units of a method, and where its parts are.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) units: Vec<u16>,
    /// The ranges of code units with handlers: start, end, cover.
    pub(crate) tries: Vec<(u32, u32, Cover)>,
    /// The code unit of each label.
    labels: Vec<u32>,
}

impl Assembled {
    /// Returns the code unit of a label.
    pub(crate) fn place(&self, label: Label) -> u32 {
        self.labels.get(label.0).copied().unwrap_or(0)
    }
}

impl Assembler {
    /// Makes a label, which is placed later.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len().saturating_sub(1))
    }

    /// Places a label before the next item.
    pub(crate) fn place(&mut self, label: Label) {
        let here = self.items.len();
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(here);
        }
    }

    fn add(&mut self, item: Item, cover: Option<Cover>) {
        self.items.push(item);
        self.covers.push(cover);
    }

    /// Adds code units. `cover` is None if they do not throw.
    pub(crate) fn units(&mut self, units: Vec<u16>, cover: Option<Cover>) {
        self.add(Item::Fixed(units), cover);
    }

    /// Adds a branch.
    pub(crate) fn goto(&mut self, target: Label) {
        let reach = Reach::Bits8;
        self.add(Item::Goto { target, reach }, None);
    }

    /// Adds a conditional branch, by its first code unit.
    pub(crate) fn branch(&mut self, first: u16, target: Label) {
        let is_far = false;
        self.add(
            Item::If {
                first,
                target,
                is_far,
            },
            None,
        );
    }

    /// Adds an instruction with a table.
    pub(crate) fn table(
        &mut self,
        first: u16,
        head: Vec<u16>,
        targets: Vec<Label>,
        cover: Option<Cover>,
    ) {
        self.add(
            Item::Table {
                first,
                head,
                targets,
            },
            cover,
        );
    }

    /// Lays the instructions out.
    pub(crate) fn finish(mut self) -> Assembled {
        let places = loop {
            let places = self.places();
            if !self.grow(&places) {
                break places;
            }
        };
        let labels = self.label_places(&places);
        let units = self.encode(&places, &labels);
        Assembled {
            tries: self.tries(&places),
            units,
            labels,
        }
    }

    /// Returns the code unit of each item, and of the end.
    fn places(&self) -> Vec<u32> {
        let mut at = 0_u32;
        let mut places = Vec::with_capacity(self.items.len());
        for item in &self.items {
            places.push(at);
            at = at.saturating_add(item.size());
        }
        places.push(at);
        places
    }

    fn label_places(&self, places: &[u32]) -> Vec<u32> {
        let labels = self.labels.iter();
        let place = |item: &Option<usize>| places.get((*item)?).copied();
        labels.map(|item| place(item).unwrap_or(0)).collect()
    }

    /// Makes branches larger that do not reach their targets. Returns false if all do.
    fn grow(&mut self, places: &[u32]) -> bool {
        let labels = self.label_places(places);
        let mut has_grown = false;
        for (item, at) in self.items.iter_mut().zip(places) {
            let distance = |target: &Label| {
                let target = labels.get(target.0).copied().unwrap_or(0);
                target.wrapping_sub(*at).cast_signed()
            };
            match item {
                Item::Goto { target, reach } => {
                    let distance = distance(target);
                    let needed = match distance {
                        // A goto to itself has a form of its own.
                        0 => Reach::Bits32,
                        _ if i8::try_from(distance).is_ok() => Reach::Bits8,
                        _ if i16::try_from(distance).is_ok() => Reach::Bits16,
                        _ => Reach::Bits32,
                    };
                    if needed > *reach {
                        *reach = needed;
                        has_grown = true;
                    }
                }
                Item::If { target, is_far, .. } => {
                    if !*is_far && i16::try_from(distance(target)).is_err() {
                        *is_far = true;
                        has_grown = true;
                    }
                }
                Item::Fixed(_) | Item::Table { .. } => {}
            }
        }
        has_grown
    }

    fn encode(&self, places: &[u32], labels: &[u32]) -> Vec<u16> {
        let mut units: Vec<u16> = Vec::new();
        // The tables, and the instructions that need them.
        let mut tables = Vec::new();
        for (item, at) in self.items.iter().zip(places) {
            let distance = |target: &Label| {
                let target = labels.get(target.0).copied().unwrap_or(0);
                target.wrapping_sub(*at)
            };
            match item {
                Item::Fixed(fixed) => units.extend_from_slice(fixed),
                Item::Goto { target, reach } => {
                    let [low, high] = halves(distance(target));
                    let [byte, _] = low.to_le_bytes();
                    match reach {
                        Reach::Bits8 => units.push(u16::from_le_bytes([opcode::GOTO, byte])),
                        Reach::Bits16 => units.extend([opcode::GOTO_16.into(), low]),
                        Reach::Bits32 => units.extend([opcode::GOTO_32.into(), low, high]),
                    }
                }
                Item::If {
                    first,
                    target,
                    is_far: false,
                } => {
                    let [low, _] = halves(distance(target));
                    units.extend([*first, low]);
                }
                Item::If {
                    first,
                    target,
                    is_far: true,
                } => {
                    // The opposite condition has the other lowest bit. It skips the goto.
                    const SKIP: u16 = 5;
                    let [low, high] = halves(distance(target).wrapping_sub(2));
                    units.extend([first ^ 1, SKIP, opcode::GOTO_32.into(), low, high]);
                }
                Item::Table {
                    first,
                    head,
                    targets,
                } => {
                    let targets = targets.iter().map(distance);
                    tables.push((units.len(), head, targets.collect::<Vec<_>>()));
                    units.extend([*first, 0, 0]);
                }
            }
        }
        for (instruction, head, targets) in tables {
            if !units.len().is_multiple_of(2) {
                units.push(opcode::NOP.into());
            }
            let distance = units.len().saturating_sub(instruction);
            let distance = halves(u32::try_from(distance).unwrap_or(u32::MAX));
            let start = instruction.saturating_add(1);
            if let Some(place) = units.get_mut(start..start.saturating_add(2)) {
                place.copy_from_slice(&distance);
            }
            units.extend_from_slice(head);
            units.extend(targets.into_iter().flat_map(halves));
        }
        units
    }

    /// Returns the ranges of consecutive items with the same cover. Items that do not throw extend a range only if one follows that does.
    fn tries(&self, places: &[u32]) -> Vec<(u32, u32, Cover)> {
        let mut tries: Vec<(u32, u32, Cover)> = Vec::new();
        // Whether the last range may be extended.
        let mut is_open = false;
        for (index, cover) in self.covers.iter().enumerate() {
            let Some(cover) = cover else {
                continue;
            };
            let place = |index: usize| places.get(index).copied().unwrap_or(0);
            let (start, end) = (place(index), place(index.saturating_add(1)));
            if *cover == Cover::NONE {
                is_open = false;
                continue;
            }
            match tries.last_mut() {
                // A range has at most 65,535 code units.
                Some((first, last, known))
                    if is_open
                        && known == cover
                        && end.saturating_sub(*first) <= u16::MAX.into() =>
                {
                    *last = end;
                }
                _ => tries.push((start, end, *cover)),
            }
            is_open = true;
        }
        tries
    }
}

impl Item {
    /// Size in code units, without the table.
    fn size(&self) -> u32 {
        match self {
            Self::Fixed(units) => u32::try_from(units.len()).unwrap_or(u32::MAX),
            Self::Goto { reach, .. } => match reach {
                Reach::Bits8 => 1,
                Reach::Bits16 => 2,
                Reach::Bits32 => 3,
            },
            Self::If { is_far: false, .. } => 2,
            Self::If { is_far: true, .. } => 5,
            Self::Table { .. } => 3,
        }
    }
}

/// Returns the code units of a number of 32 bits.
pub(crate) fn halves(value: u32) -> [u16; 2] {
    let [a, b, c, d] = value.to_le_bytes();
    [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nops(count: usize) -> Vec<u16> {
        vec![0; count]
    }

    #[test]
    fn branches_are_as_large_as_their_distance_needs() {
        for (distance, size) in [(1, 1), (126, 1), (127, 2), (32_765, 2), (32_766, 3)] {
            let mut code = Assembler::default();
            let end = code.label();
            code.goto(end);
            code.units(nops(distance), None);
            code.place(end);
            code.units(nops(1), None);
            let found = code.finish();
            assert_eq!(found.place(end) as usize, distance + size, "{distance}");
        }
    }

    #[test]
    fn a_far_condition_skips_a_goto() {
        let mut code = Assembler::default();
        let end = code.label();
        // if-eqz v0
        code.branch(0x38, end);
        code.units(nops(40_000), None);
        code.place(end);
        code.units(nops(1), None);
        let found = code.finish();
        assert_eq!(found.units[..5], [0x39, 5, 0x2a, 40_003, 0]);
    }

    #[test]
    fn a_goto_to_itself_has_32_bits_and_tables_are_aligned() {
        let mut code = Assembler::default();
        let here = code.label();
        code.place(here);
        code.goto(here);
        code.table(0x2b, vec![0x0100, 1, 0, 0], vec![here], None);
        code.units(nops(1), None);
        let found = code.finish();
        assert_eq!(
            found.units,
            [
                0x2a, 0, 0, 0x2b, 5, 0, 0, 0, 0x0100, 1, 0, 0, 0xfffd, 0xffff
            ]
        );
    }

    #[test]
    fn ranges_join_instructions_that_do_not_throw() {
        let (one, other) = (
            Cover {
                handlers: Some(0),
                exit: true,
            },
            Cover {
                handlers: None,
                exit: true,
            },
        );
        let mut code = Assembler::default();
        for cover in [
            Some(one),
            None,
            Some(one),
            None,
            Some(other),
            Some(Cover::NONE),
            Some(other),
        ] {
            code.units(nops(1), cover);
        }
        assert_eq!(
            code.finish().tries,
            [(0, 3, one), (4, 5, other), (6, 7, other)]
        );
    }
}
