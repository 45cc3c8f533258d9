//! How is a `StackMapTable` extended by local variables?
//!
//! Every frame of the original table gets the added variables above those that the method had; the gap is filled with `Top`. Section 4.7.4 of the
//! specification has the format, 4.10.1 the rules.

use crate::Plain;
use crate::class::{Constants, Index, Instructions, Reader, access};
use crate::layout::Layout;

/// Verification types: section 4.7.4.
const TOP: u8 = 0;
const INTEGER: u8 = 1;
const FLOAT: u8 = 2;
const DOUBLE: u8 = 3;
const LONG: u8 = 4;
const UNINITIALIZED_THIS: u8 = 6;
const OBJECT: u8 = 7;
const UNINITIALIZED: u8 = 8;

/// Verification types as a class file has them, but that `Uninitialized` names an instruction by its index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Types {
    bytes: Vec<u8>,
    /// The number of types.
    count: u16,
    /// The number of words that they take.
    words: u16,
    /// Where each type starts in the bytes.
    starts: Vec<u32>,
}

impl Types {
    fn push(&mut self, kind: u8, operand: Option<u16>) -> Option<()> {
        self.starts.push(u32::try_from(self.bytes.len()).ok()?);
        self.bytes.push(kind);
        self.bytes
            .extend(operand.into_iter().flat_map(u16::to_be_bytes));
        self.count = self.count.checked_add(1)?;
        let words = if matches!(kind, LONG | DOUBLE) { 2 } else { 1 };
        self.words = self.words.checked_add(words)?;
        Some(())
    }

    fn pop(&mut self) -> Option<()> {
        let start = usize::try_from(self.starts.pop()?).ok()?;
        let kind = *self.bytes.get(start)?;
        self.bytes.truncate(start);
        self.count = self.count.checked_sub(1)?;
        let words = if matches!(kind, LONG | DOUBLE) { 2 } else { 1 };
        self.words = self.words.checked_sub(words)?;
        Some(())
    }

    /// Reads one type.
    fn read(&mut self, reader: &mut Reader<'_>, instructions: &Instructions<'_>) -> Option<()> {
        let kind = reader.u8("verification_type_info").ok()?;
        let operand = match kind {
            OBJECT => Some(reader.u16("cpool_index").ok()?),
            UNINITIALIZED => {
                let bci = reader.u16("offset").ok()?;
                Some(instructions.at(usize::from(bci))?)
            }
            TOP..=UNINITIALIZED_THIS => None,
            _ => return None,
        };
        self.push(kind, operand)
    }

    /// Calls `visit` for each type, with its operand if it has one.
    fn each(&self, mut visit: impl FnMut(u8, Option<u16>)) {
        let mut rest = self.bytes.as_slice();
        loop {
            rest = match rest {
                [] => return,
                [kind @ (OBJECT | UNINITIALIZED), high, low, after @ ..] => {
                    visit(*kind, Some(u16::from_be_bytes([*high, *low])));
                    after
                }
                [kind, after @ ..] => {
                    visit(*kind, None);
                    after
                }
            };
        }
    }

    /// Returns for each word whether it is an uninitialised `this`.
    fn words_of_this(&self) -> impl Iterator<Item = bool> {
        let mut words = Vec::with_capacity(self.words.into());
        self.each(|kind, _| {
            words.push(kind == UNINITIALIZED_THIS);
            if matches!(kind, LONG | DOUBLE) {
                words.push(false);
            }
        });
        words.into_iter()
    }

    /// Appends the types as a class file has them.
    fn write(&self, layout: &Layout, to: &mut Vec<u8>) {
        self.each(|kind, operand| {
            to.push(kind);
            match operand {
                Some(index) if kind == UNINITIALIZED => {
                    to.extend(layout.itself(index).to_be_bytes());
                }
                Some(class) => to.extend(class.to_be_bytes()),
                None => {}
            }
        });
    }
}

/// A local variable that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// An object of the class with this constant.
    Object(u16),
    /// A `long`.
    Long,
    /// An `int`.
    Int,
}

/// A frame: the types at an instruction.
#[derive(Debug)]
struct Frame {
    at: Index,
    /// The index of its local variables in [`Frames::locals`].
    locals: usize,
    stack: Types,
}

/// Where `this` is that is not initialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThisPlaces {
    /// The local variables with it.
    pub(crate) locals: Vec<u16>,
    /// For each word of the operand stack, the lowest first, whether it is there.
    pub(crate) stack: Vec<bool>,
}

/// A handler that is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddedHandler {
    /// Its offset in the new code.
    pub(crate) offset: u16,
    /// `this` is not initialised in the code that it covers.
    pub(crate) uninitialised_this: bool,
}

/// The frames of a method.
#[derive(Debug)]
pub(crate) struct Frames {
    /// All lists of local variables that occur, extended by those that are added.
    locals: Vec<Types>,
    /// In the order of the code.
    list: Vec<Frame>,
    /// The bytes that all of this may still take.
    budget: usize,
}

/// What the frames of a method start from.
#[derive(Debug)]
pub(crate) struct Initial<'m> {
    /// Its access flags.
    pub(crate) access: u16,
    /// Its name.
    pub(crate) name: &'m [u8],
    /// Its descriptor.
    pub(crate) descriptor: &'m [u8],
    /// Its class's name.
    pub(crate) class: &'m [u8],
    /// The number of its local variables.
    pub(crate) max_locals: u16,
}

impl Frames {
    /// Reads a method's `StackMapTable`, if it has one, and extends its frames. All frames together may take `budget` bytes.
    pub(crate) fn read(
        table: Option<Reader<'_>>,
        initial: &Initial<'_>,
        added: &[Added],
        instructions: &Instructions<'_>,
        constants: &mut Constants<'_>,
        budget: usize,
    ) -> Result<Self, Plain> {
        let mut frames = Self {
            locals: Vec::new(),
            list: Vec::new(),
            budget,
        };
        // What the added handlers see of the original variables: nothing, or an uninitialised `this`.
        frames.extend(&Types::default(), initial.max_locals, added)?;
        if initial.name == b"<init>" {
            let mut this = Types::default();
            this.push(UNINITIALIZED_THIS, None).ok_or(Plain::Invalid)?;
            frames.extend(&this, initial.max_locals, added)?;
        }
        if let Some(reader) = table {
            let locals = initial_locals(initial, constants).ok_or(Plain::Invalid)?;
            frames.read_table(reader, locals, initial.max_locals, added, instructions)?;
        }
        Ok(frames)
    }

    /// Adds a list of local variables, extended by the added ones.
    fn extend(&mut self, locals: &Types, max_locals: u16, added: &[Added]) -> Result<(), Plain> {
        let gap = max_locals.checked_sub(locals.words).ok_or(Plain::Invalid)?;
        self.spend(locals.bytes.len().saturating_add(usize::from(gap)))?;
        // Where each type starts matters only while the original table is read.
        let mut extended = Types {
            bytes: locals.bytes.clone(),
            count: locals.count,
            words: locals.words,
            starts: Vec::new(),
        };
        for _ in 0..gap {
            extended.push(TOP, None).ok_or(Plain::TooManyLocals)?;
        }
        for variable in added {
            let pushed = match variable {
                Added::Object(class) => extended.push(OBJECT, Some(*class)),
                Added::Long => extended.push(LONG, None),
                Added::Int => extended.push(INTEGER, None),
            };
            pushed.ok_or(Plain::TooManyLocals)?;
        }
        extended.starts = Vec::new();
        self.locals.push(extended);
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Plain> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Plain::TooLarge)?;
        Ok(())
    }

    fn read_table(
        &mut self,
        mut reader: Reader<'_>,
        mut locals: Types,
        max_locals: u16,
        added: &[Added],
        instructions: &Instructions<'_>,
    ) -> Result<(), Plain> {
        let count = reader
            .u16("number_of_entries")
            .map_err(|_| Plain::Invalid)?;
        let mut next_bci = 0_usize;
        let mut known = false;
        for _ in 0..count {
            let (delta, stack, changed) =
                read_frame(&mut reader, &mut locals, instructions).ok_or(Plain::Invalid)?;
            if changed || !known {
                self.extend(&locals, max_locals, added)?;
                known = true;
            }
            let bci = next_bci.saturating_add(usize::from(delta));
            next_bci = bci.saturating_add(1);
            let at = instructions
                .at(bci)
                .filter(|at| *at != instructions.end())
                .ok_or(Plain::Invalid)?;
            self.list.push(Frame {
                at,
                locals: self.locals.len().saturating_sub(1),
                stack,
            });
        }
        if reader.is_empty() {
            Ok(())
        } else {
            Err(Plain::Invalid)
        }
    }

    /// Returns where the frame at an instruction has an uninitialised `this`; the inner None: nowhere. None: there is no frame.
    pub(crate) fn this_places(&self, index: Index) -> Option<Option<ThisPlaces>> {
        let frame = self.at(index)?;
        let locals = self.locals.get(frame.locals)?.words_of_this();
        let locals = locals.zip(0..).filter(|(is_this, _)| *is_this);
        let places = ThisPlaces {
            locals: locals.map(|(_, local)| local).collect(),
            stack: frame.stack.words_of_this().collect(),
        };
        let is_anywhere = !places.locals.is_empty() || places.stack.contains(&true);
        Some(is_anywhere.then_some(places))
    }

    fn at(&self, index: Index) -> Option<&Frame> {
        let found = self.list.binary_search_by_key(&index, |frame| frame.at);
        self.list.get(found.ok()?)
    }

    /// Returns the contents of the new table. `throwable` is the constant of the class that is on the stack of the added handlers.
    pub(crate) fn write(
        &self,
        layout: &Layout,
        handlers: &[AddedHandler],
        throwable: u16,
    ) -> Result<Vec<u8>, Plain> {
        let mut places: Vec<(u16, usize, &Types)> = Vec::new();
        for frame in &self.list {
            // Where an exception leads is another place than where a branch does, if something is executed for exceptions only.
            for place in [layout.handler(frame.at), layout.branch(frame.at)] {
                places.push((place, frame.locals, &frame.stack));
            }
        }
        for trampoline in &layout.trampolines {
            // A class without this frame is verified by inference, which needs none.
            if let Some(frame) = self.at(trampoline.target) {
                places.push((trampoline.offset, frame.locals, &frame.stack));
            }
        }
        let mut stack = Types::default();
        stack.push(OBJECT, Some(throwable)).ok_or(Plain::Invalid)?;
        for handler in handlers {
            places.push((
                handler.offset,
                usize::from(handler.uninitialised_this),
                &stack,
            ));
        }
        places.sort_by_key(|(place, _, _)| *place);
        places.dedup_by_key(|(place, _, _)| *place);

        let count = u16::try_from(places.len()).map_err(|_| Plain::TooLarge)?;
        let mut table = count.to_be_bytes().to_vec();
        let mut next = 0_u16;
        let mut before = None;
        let mut budget = self.budget;
        for (place, locals, stack) in places {
            let delta = place.checked_sub(next).ok_or(Plain::Invalid)?;
            next = place.saturating_add(1);
            let start = table.len();
            match (before == Some(locals), stack.count) {
                (true, 0) => {
                    table.push(SAME_EXTENDED);
                    table.extend(delta.to_be_bytes());
                }
                (true, 1) => {
                    table.push(SAME_ONE_STACK_EXTENDED);
                    table.extend(delta.to_be_bytes());
                    stack.write(layout, &mut table);
                }
                _ => {
                    let locals = self.locals.get(locals).ok_or(Plain::Invalid)?;
                    table.push(FULL);
                    table.extend(delta.to_be_bytes());
                    table.extend(locals.count.to_be_bytes());
                    locals.write(layout, &mut table);
                    table.extend(stack.count.to_be_bytes());
                    stack.write(layout, &mut table);
                }
            }
            before = Some(locals);
            budget = budget
                .checked_sub(table.len().saturating_sub(start))
                .ok_or(Plain::TooLarge)?;
        }
        Ok(table)
    }
}

/// Frame types: section 4.7.4.
const SAME_ONE_STACK_EXTENDED: u8 = 247;
const SAME_EXTENDED: u8 = 251;
const FULL: u8 = 255;

/// Reads one frame: changes the local variables, and returns the difference of bcis, the stack, and whether the variables have changed.
fn read_frame(
    reader: &mut Reader<'_>,
    locals: &mut Types,
    instructions: &Instructions<'_>,
) -> Option<(u16, Types, bool)> {
    let kind = reader.u8("frame_type").ok()?;
    let mut stack = Types::default();
    let delta = match kind {
        0..=127 => u16::from(kind & 63),
        SAME_ONE_STACK_EXTENDED..=FULL => reader.u16("offset_delta").ok()?,
        _ => return None,
    };
    let mut changed = false;
    match kind {
        64..=127 | SAME_ONE_STACK_EXTENDED => stack.read(reader, instructions)?,
        248..=250 => {
            for _ in kind..SAME_EXTENDED {
                locals.pop()?;
            }
            changed = true;
        }
        252..=254 => {
            for _ in SAME_EXTENDED..kind {
                locals.read(reader, instructions)?;
            }
            changed = true;
        }
        FULL => {
            *locals = Types::default();
            for _ in 0..reader.u16("number_of_locals").ok()? {
                locals.read(reader, instructions)?;
            }
            for _ in 0..reader.u16("number_of_stack_items").ok()? {
                stack.read(reader, instructions)?;
            }
            changed = true;
        }
        _ => {}
    }
    Some((delta, stack, changed))
}

/// Returns the types of the arguments, which the first frame may refer to.
fn initial_locals(initial: &Initial<'_>, constants: &mut Constants<'_>) -> Option<Types> {
    let mut locals = Types::default();
    if initial.access & access::STATIC == 0 {
        if initial.name == b"<init>" {
            locals.push(UNINITIALIZED_THIS, None)?;
        } else {
            locals.push(OBJECT, Some(constants.add_class(initial.class).ok()?))?;
        }
    }
    let mut rest = initial.descriptor.strip_prefix(b"(")?;
    loop {
        let (first, after) = rest.split_first()?;
        let mut end = rest;
        match first {
            b')' => return Some(locals),
            b'J' => locals.push(LONG, None)?,
            b'D' => locals.push(DOUBLE, None)?,
            b'F' => locals.push(FLOAT, None)?,
            b'B' | b'C' | b'I' | b'S' | b'Z' => locals.push(INTEGER, None)?,
            b'L' => {
                let length = after.iter().position(|byte| *byte == b';')?;
                let class = constants.add_class(after.get(..length)?).ok()?;
                locals.push(OBJECT, Some(class))?;
                end = after.get(length..)?;
            }
            b'[' => {
                while let Some(element) = end.strip_prefix(b"[") {
                    end = element;
                }
                if end.first() == Some(&b'L') {
                    let length = end.iter().position(|byte| *byte == b';')?;
                    end = end.get(length..)?;
                }
                let length = rest.len().checked_sub(end.len())?.checked_add(1)?;
                let class = constants.add_class(rest.get(..length)?).ok()?;
                locals.push(OBJECT, Some(class))?;
            }
            _ => return None,
        }
        rest = end.get(1..)?;
    }
}
