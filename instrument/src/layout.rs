//! Where does each instruction lie when others are inserted, and how is the code written?
//!
//! ```text
//! entry | trampolines, before 0, instruction 0 | trampolines, before 1, instruction 1 | ... | trampolines, tail
//! ```
//!
//! A `goto` or `jsr` whose target is more than 32,767 bytes away takes its wide form. A conditional branch, which has none, leads to a trampoline:
//! a `goto_w` that stands after an instruction which the next one does not follow. Splitting the branch in two would need a stack map frame
//! between them, for which the types are not known.

use crate::Plain;
use crate::class::instruction::padding;
use crate::class::{Index, Instruction, Instructions, Kind, opcode};

/// The longest code of a method in bytes.
const LONGEST: usize = 65_535;
/// A trampoline is put at most this far from its branch, so that it stays in reach when others are added.
const REACH: usize = 30_000;

/// What is inserted into a method's code.
#[derive(Debug, Default)]
pub(crate) struct Inserted {
    /// All inserted bytes but those of [`tail`](Self::tail).
    pub(crate) bytes: Vec<u8>,
    /// Length of what precedes all instructions.
    pub(crate) entry: usize,
    /// What precedes each instruction, in their order.
    pub(crate) before: Vec<Before>,
    /// What follows all instructions.
    pub(crate) tail: Vec<u8>,
}

/// What is inserted before an instruction, as offsets in [`Inserted::bytes`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    /// What is executed after the instruction before.
    pub(crate) start: usize,
    /// What is executed when an exception leads here.
    pub(crate) handler: usize,
    /// What is executed when a branch leads here. It follows what is executed for an exception.
    pub(crate) branch: usize,
    /// Its end.
    pub(crate) end: usize,
}

/// A `goto_w` that conditional branches lead to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trampoline {
    /// It precedes what is inserted before this instruction.
    pub(crate) before: Index,
    /// Where it leads.
    pub(crate) target: Index,
    /// Its offset.
    pub(crate) offset: u16,
}

/// Length of a `goto_w`.
const TRAMPOLINE: usize = 5;

/// The offsets of instructions in the new code.
#[derive(Debug)]
pub(crate) struct Layout {
    /// For each instruction, and for the end.
    places: Vec<Place>,
    /// Which branches have their wide form, or lead to a trampoline.
    far: Vec<bool>,
    /// The trampolines, in the order of the code.
    pub(crate) trampolines: Vec<Trampoline>,
    /// Length of the new code.
    length: usize,
}

/// The offsets of the parts of [`Before`], and of the instruction itself.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: usize,
    handler: usize,
    branch: usize,
    instruction: usize,
}

impl Layout {
    /// Finds the offsets. `open(before, target)` says whether a trampoline to `target` may be put
    /// before an instruction.
    pub(crate) fn new(
        instructions: &Instructions<'_>,
        inserted: &Inserted,
        open: impl Fn(Index, Index) -> bool,
    ) -> Result<Self, Plain> {
        let count = instructions.list.len();
        let mut layout = Self {
            places: vec![Place::default(); count.saturating_add(1)],
            far: vec![false; count],
            trampolines: Vec::new(),
            length: 0,
        };
        // Each round but the last makes a branch far, so it ends.
        loop {
            layout.place(instructions, inserted)?;
            let far = layout.branches_out_of_reach(instructions);
            if far.is_empty() {
                break;
            }
            for (index, target) in far {
                layout.make_far(instructions, index, target, &open)?;
            }
        }
        Ok(layout)
    }

    /// Sets all offsets.
    fn place(&mut self, instructions: &Instructions<'_>, inserted: &Inserted) -> Result<(), Plain> {
        let mut offset = inserted.entry;
        let mut trampolines = self.trampolines.iter_mut().peekable();
        let ends = self.places.len().saturating_sub(1);
        for (index, place) in self.places.iter_mut().enumerate() {
            while let Some(trampoline) = trampolines.next_if(|it| usize::from(it.before) == index) {
                trampoline.offset = u16::try_from(offset).map_err(|_| Plain::TooLarge)?;
                offset = offset.saturating_add(TRAMPOLINE);
            }
            let before = inserted.before.get(index).copied().unwrap_or_default();
            let after = |part: usize| offset.saturating_add(part.saturating_sub(before.start));
            let instruction = after(before.end);
            *place = Place {
                start: offset,
                handler: after(before.handler),
                branch: after(before.branch),
                instruction,
            };
            offset = instruction;
            if index < ends
                && let (Some(it), Some(far)) = (instructions.list.get(index), self.far.get(index))
            {
                offset = offset.saturating_add(length(it, *far, instruction));
            }
        }
        self.length = offset.saturating_add(inserted.tail.len());
        if self.length > LONGEST {
            return Err(Plain::TooLarge);
        }
        Ok(())
    }

    /// Returns the branches that need another form, with their targets.
    fn branches_out_of_reach(&self, instructions: &Instructions<'_>) -> Vec<(usize, Index)> {
        let mut found = Vec::new();
        for (index, instruction) in instructions.list.iter().enumerate() {
            if let Kind::Branch(target) = instruction.kind
                && self.far.get(index) == Some(&false)
                && !reaches(self.instruction(index), self.place_of(target).branch)
            {
                found.push((index, target));
            }
        }
        found
    }

    fn make_far(
        &mut self,
        instructions: &Instructions<'_>,
        index: usize,
        target: Index,
        open: impl Fn(Index, Index) -> bool,
    ) -> Result<(), Plain> {
        if let Some(far) = self.far.get_mut(index) {
            *far = true;
        }
        if instructions
            .list
            .get(index)
            .is_none_or(|it| !has_no_wide_form(it))
        {
            return Ok(());
        }
        let from = self.instruction(index);
        let near = |offset: usize| from.abs_diff(offset) <= REACH;
        let known = self
            .trampolines
            .iter()
            .any(|it| it.target == target && near(usize::from(it.offset)));
        if known {
            return Ok(());
        }
        let place = self
            .places
            .iter()
            .zip(0..=Index::MAX)
            .filter(|(place, before)| near(place.start) && open(*before, target))
            .min_by_key(|(place, _)| from.abs_diff(place.start));
        let (place, before) = place.ok_or(Plain::BranchTooFar)?;
        let trampoline = Trampoline {
            before,
            target,
            offset: u16::try_from(place.start).map_err(|_| Plain::TooLarge)?,
        };
        let at = self.trampolines.partition_point(|it| it.before <= before);
        self.trampolines.insert(at, trampoline);
        Ok(())
    }

    fn place_of(&self, index: Index) -> Place {
        self.places
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

    fn instruction(&self, index: usize) -> usize {
        self.places
            .get(index)
            .copied()
            .unwrap_or_default()
            .instruction
    }

    /// The place of what precedes an instruction, or of the end.
    pub(crate) fn start(&self, index: Index) -> u16 {
        u16::try_from(self.place_of(index).start).unwrap_or(u16::MAX)
    }

    /// Where an exception leads whose handler is this instruction.
    pub(crate) fn handler(&self, index: Index) -> u16 {
        u16::try_from(self.place_of(index).handler).unwrap_or(u16::MAX)
    }

    /// Where a branch to this instruction leads.
    pub(crate) fn branch(&self, index: Index) -> u16 {
        u16::try_from(self.place_of(index).branch).unwrap_or(u16::MAX)
    }

    /// The offset of the instruction itself.
    pub(crate) fn itself(&self, index: Index) -> u16 {
        u16::try_from(self.place_of(index).instruction).unwrap_or(u16::MAX)
    }

    /// Returns the new code.
    pub(crate) fn write(
        &self,
        instructions: &Instructions<'_>,
        inserted: &Inserted,
    ) -> Result<Vec<u8>, Plain> {
        let mut code = Vec::with_capacity(self.length);
        code.extend(inserted.bytes.get(..inserted.entry).ok_or(Plain::Invalid)?);
        let mut trampolines = self.trampolines.iter().peekable();
        for (instruction, index) in instructions.list.iter().zip(0..=Index::MAX) {
            while let Some(it) = trampolines.next_if(|it| it.before == index) {
                self.write_trampoline(it, &mut code);
            }
            let before = inserted
                .before
                .get(usize::from(index))
                .ok_or(Plain::Invalid)?;
            let bytes = inserted.bytes.get(before.start..before.end);
            code.extend(bytes.ok_or(Plain::Invalid)?);
            self.write_instruction(index, instruction, &mut code)?;
        }
        for it in trampolines {
            self.write_trampoline(it, &mut code);
        }
        code.extend(&inserted.tail);
        if code.len() == self.length {
            Ok(code)
        } else {
            Err(Plain::Invalid)
        }
    }

    fn write_trampoline(&self, trampoline: &Trampoline, code: &mut Vec<u8>) {
        code.push(opcode::GOTO_W);
        let from = usize::from(trampoline.offset);
        code.extend(wide_offset(from, self.place_of(trampoline.target).branch));
    }

    fn write_instruction(
        &self,
        index: Index,
        instruction: &Instruction<'_>,
        code: &mut Vec<u8>,
    ) -> Result<(), Plain> {
        let from = code.len();
        let wide = |target: Index| wide_offset(from, self.place_of(target).branch);
        match &instruction.kind {
            Kind::Straight => code.extend(instruction.bytes),
            Kind::Branch(target) => {
                let far = self.far.get(usize::from(index)) == Some(&true);
                let mut to = self.place_of(*target).branch;
                if far && !has_no_wide_form(instruction) {
                    code.push(wide_form(instruction.opcode));
                    code.extend(wide(*target));
                    return Ok(());
                }
                if far {
                    let trampoline = self
                        .trampolines
                        .iter()
                        .find(|it| it.target == *target && reaches(from, usize::from(it.offset)));
                    to = usize::from(trampoline.ok_or(Plain::BranchTooFar)?.offset);
                }
                code.push(narrow_form(instruction.opcode));
                code.extend(near_offset(from, to).ok_or(Plain::BranchTooFar)?);
            }
            Kind::Table(default, low, targets) => {
                code.push(instruction.opcode);
                code.extend(std::iter::repeat_n(0, padding(from)));
                code.extend(wide(*default));
                code.extend(low.to_be_bytes());
                let above = i32::try_from(targets.len()).map_err(|_| Plain::Invalid)?;
                code.extend(low.wrapping_add(above).wrapping_sub(1).to_be_bytes());
                code.extend(targets.iter().flat_map(|target| wide(*target)));
            }
            Kind::Lookup(default, pairs) => {
                code.push(instruction.opcode);
                code.extend(std::iter::repeat_n(0, padding(from)));
                code.extend(wide(*default));
                let count = u32::try_from(pairs.len()).map_err(|_| Plain::Invalid)?;
                code.extend(count.to_be_bytes());
                for (value, target) in pairs {
                    code.extend(value.to_be_bytes());
                    code.extend(wide(*target));
                }
            }
        }
        Ok(())
    }
}

/// Returns the length of an instruction at an offset.
fn length(instruction: &Instruction<'_>, far: bool, offset: usize) -> usize {
    let switch = |fixed: usize, each: usize, count: usize| {
        let operands = count.saturating_mul(each).saturating_add(fixed);
        operands.saturating_add(padding(offset)).saturating_add(1)
    };
    match &instruction.kind {
        Kind::Straight => instruction.bytes.len(),
        Kind::Branch(_) if far && !has_no_wide_form(instruction) => 5,
        Kind::Branch(_) => 3,
        Kind::Table(_, _, targets) => switch(12, 4, targets.len()),
        Kind::Lookup(_, pairs) => switch(8, 8, pairs.len()),
    }
}

/// Returns true for a conditional branch.
const fn has_no_wide_form(instruction: &Instruction<'_>) -> bool {
    !matches!(
        instruction.opcode,
        opcode::GOTO | opcode::JSR | opcode::GOTO_W | opcode::JSR_W
    )
}

const fn wide_form(opcode: u8) -> u8 {
    match opcode {
        opcode::GOTO => opcode::GOTO_W,
        opcode::JSR => opcode::JSR_W,
        _ => opcode,
    }
}

const fn narrow_form(opcode: u8) -> u8 {
    match opcode {
        opcode::GOTO_W => opcode::GOTO,
        opcode::JSR_W => opcode::JSR,
        _ => opcode,
    }
}

fn reaches(from: usize, to: usize) -> bool {
    near_offset(from, to).is_some()
}

fn near_offset(from: usize, to: usize) -> Option<[u8; 2]> {
    let offset = i64::try_from(to)
        .ok()?
        .checked_sub(i64::try_from(from).ok()?)?;
    i16::try_from(offset).ok().map(i16::to_be_bytes)
}

/// Both are offsets in code, which is shorter than 2^31 bytes.
fn wide_offset(from: usize, to: usize) -> [u8; 4] {
    let signed = |offset: usize| i32::try_from(offset).unwrap_or(i32::MAX);
    signed(to).wrapping_sub(signed(from)).to_be_bytes()
}
