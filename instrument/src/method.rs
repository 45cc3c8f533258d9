//! How is one method's code rewritten?

use crate::assembler::Assembler;
use crate::attributes::{lines, moved};
use crate::blocks::{Reached, range, reached};
use crate::class::{
    Code, Constants, Index, Instruction, Instructions, access, argument_words, opcode, tag,
};
use crate::constructor::{This, states};
use crate::frames::{AddedHandler, Frames, Initial};
use crate::layout::{Before, Inserted, Layout};
use crate::runtime::CLASS;
use crate::sequences::{ENTRY_STACK, Locals, NodeShape, STACK, Sequences};
use crate::{Bci, Block, Counted, Executions, Line, MethodNumber, NotRewritten, Plain, Site};

/// What is done with a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'m> {
    /// The method's number.
    pub(crate) number: MethodNumber,
    /// What is counted in it. None: it is a leaf.
    pub(crate) counted: Option<Counted>,
    /// Recording begins at its first call.
    pub(crate) starts: bool,
    /// Its frames are checked by the type checker: the class has version 50 or above.
    pub(crate) has_frames: bool,
    /// The bytes that its code and frames may take.
    pub(crate) budget: usize,
    /// What its frames start from.
    pub(crate) access: u16,
    pub(crate) name: &'m [u8],
    pub(crate) descriptor: &'m [u8],
    pub(crate) class: &'m [u8],
}

/// A method's new code.
#[derive(Debug)]
pub(crate) struct NewCode {
    /// The contents of the attribute `Code`.
    pub(crate) attribute: Vec<u8>,
    /// Its call sites. Empty for a leaf.
    pub(crate) sites: Vec<Site>,
    /// Its blocks. Empty without block counters.
    pub(crate) blocks: Vec<Block>,
}

/// Why a method has no new code.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It stays as it is.
    Method(Plain),
    /// The whole class does.
    Class(NotRewritten),
}

impl From<Plain> for Failed {
    fn from(plain: Plain) -> Self {
        Self::Method(plain)
    }
}

impl From<NotRewritten> for Failed {
    fn from(error: NotRewritten) -> Self {
        Self::Class(error)
    }
}

/// Returns a method's source lines.
pub(crate) fn source_lines(code: &Code<'_>) -> Vec<Line> {
    lines(&code.attributes)
}

/// Returns true if the code calls methods.
pub(crate) fn calls(code: &Code<'_>) -> Result<bool, Plain> {
    let instructions = Instructions::decode(code.bytes).ok_or(Plain::Invalid)?;
    Ok(instructions
        .list
        .iter()
        .any(|it| opcode::is_call(it.opcode)))
}

/// Rewrites the code of a method.
pub(crate) fn rewrite(
    code: &Code<'_>,
    request: &Request<'_>,
    constants: &mut Constants<'_>,
) -> Result<NewCode, Failed> {
    let instructions = Instructions::decode(code.bytes).ok_or(Plain::Invalid)?;
    let reached = reached(code, &instructions).ok_or(Plain::Invalid)?;
    let arguments = argument_words(request.descriptor).ok_or(Plain::Invalid)?;
    if code.max_locals < arguments {
        return Err(Plain::Invalid.into());
    }
    let leaf = request.counted.is_none();
    let blocks = match request.counted {
        Some(Counted::Blocks) => basic_blocks(&instructions, &reached, code.bytes.len()),
        _ => Vec::new(),
    };
    let sites = if leaf {
        Vec::new()
    } else {
        call_sites(&instructions, constants)?
    };
    let locals =
        Locals::above(code.max_locals, leaf, !blocks.is_empty()).ok_or(Plain::TooManyLocals)?;
    let frames = if request.has_frames {
        Some(read_frames(
            code,
            request,
            locals,
            &instructions,
            constants,
        )?)
    } else {
        None
    };
    let this = match &frames {
        Some(frames) if request.name == b"<init>" => states(&instructions, frames, constants),
        _ => vec![This::Initialised; instructions.list.len()],
    };
    let inserted = Inserter {
        to: Sequences::new(Assembler::new(constants), locals),
        holds_this: request.access & access::STATIC == 0
            && !instructions.list.iter().any(stores_to_0),
        instructions: &instructions,
        reached: &reached,
        request,
        uninitialised_this: this.contains(&This::Uninitialised),
    }
    .insert(&sites, &blocks)?;

    let open = open_places(code, &instructions, &this)?;
    let initialised = |index: Index| this.get(usize::from(index)) == Some(&This::Initialised);
    let is_open = |before: Index, target: Index| {
        open.get(usize::from(before)) == Some(&true) && initialised(target)
    };
    let layout = Layout::new(&instructions, &inserted, is_open)?;
    let new_code = layout.write(&instructions, &inserted)?;
    let attribute = Writer {
        code,
        instructions: &instructions,
        layout: &layout,
        this: &this,
        tail: u16::try_from(inserted.tail.len()).map_err(|_| Plain::TooLarge)?,
    }
    .write(&new_code, locals, frames.as_ref(), constants)?;
    if attribute.len() > request.budget {
        return Err(Plain::TooLarge.into());
    }
    Ok(NewCode {
        attribute,
        sites,
        blocks,
    })
}

fn basic_blocks(instructions: &Instructions<'_>, reached: &[Reached], length: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut counters = 0_u16;
    let end = Bci(u16::try_from(length).unwrap_or(u16::MAX));
    for (instruction, reached) in instructions.list.iter().zip(reached) {
        if !reached.leads {
            continue;
        }
        let start = Bci(instruction.bci);
        let executions = if blocks.is_empty() && !reached.branch && !reached.handler {
            Executions::Calls
        } else {
            counters = counters.saturating_add(1);
            Executions::Counter(counters.saturating_sub(1))
        };
        if let Some(before) = blocks.last_mut() {
            before.end = start;
        }
        blocks.push(Block {
            start,
            end,
            executions,
        });
    }
    blocks
}

/// Returns the number of counters of blocks.
pub(crate) fn counters(blocks: &[Block]) -> u16 {
    let counted = |block: &&Block| matches!(block.executions, Executions::Counter(_));
    u16::try_from(blocks.iter().filter(counted).count()).unwrap_or(u16::MAX)
}

fn call_sites(
    instructions: &Instructions<'_>,
    constants: &Constants<'_>,
) -> Result<Vec<Site>, Plain> {
    let mut sites = Vec::new();
    for instruction in &instructions.list {
        if opcode::is_call(instruction.opcode) {
            sites.push(Site {
                bci: Bci(instruction.bci),
                opcode: instruction.opcode,
                target: constants
                    .call_target(instruction.operand())
                    .ok_or(Plain::Invalid)?,
            });
        }
    }
    Ok(sites)
}

/// Returns for each instruction, and for the end, whether a trampoline may be put before it: the instruction before does not lead there, and no
/// handler covers the place, whose frame the trampoline's would have to match.
fn open_places(
    code: &Code<'_>,
    instructions: &Instructions<'_>,
    this: &[This],
) -> Result<Vec<bool>, Plain> {
    let mut open = vec![false];
    for (instruction, this) in instructions.list.iter().zip(this) {
        let falls = opcode::falls_through(instruction.operation());
        open.push(!falls && *this == This::Initialised);
    }
    // The number of handlers that cover a place, as differences.
    let mut covers = vec![0_i32; open.len().saturating_add(1)];
    for handler in &code.handlers {
        let (start, end) = range(handler.start, handler.end, instructions).ok_or(Plain::Invalid)?;
        if let Some(first) = covers.get_mut(usize::from(start).saturating_add(1)) {
            *first = first.saturating_add(1);
        }
        if let Some(after) = covers.get_mut(usize::from(end).saturating_add(1)) {
            *after = after.saturating_sub(1);
        }
    }
    let mut covering = 0_i32;
    for (open, change) in open.iter_mut().zip(covers) {
        covering = covering.saturating_add(change);
        *open &= covering == 0;
    }
    Ok(open)
}

/// What the thread's slot is while a method is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// Slot 0 of the method's node.
    Implicit,
    /// Perhaps that of a call site.
    Unknown,
}

/// Makes what is inserted into a method's code.
struct Inserter<'a, 'c, 'm> {
    to: Sequences<'a, 'c>,
    instructions: &'m Instructions<'m>,
    reached: &'m [Reached],
    request: &'m Request<'m>,
    /// Local variable 0 is `this` throughout the method.
    holds_this: bool,
    /// A part of the method precedes the initialisation of `this`.
    uninitialised_this: bool,
}

impl Inserter<'_, '_, '_> {
    fn offset(&self) -> usize {
        self.to.to.code.len()
    }

    fn insert(mut self, sites: &[Site], blocks: &[Block]) -> Result<Inserted, NotRewritten> {
        if self.request.starts {
            self.to.begin()?;
        }
        let has_blocks = !blocks.is_empty();
        match self.request.counted {
            None => self.to.leaf_entry()?,
            Some(_) => self.to.entry(NodeShape {
                method: self.request.number,
                sites: u16::try_from(sites.len()).unwrap_or(u16::MAX),
                counters: has_blocks.then(|| counters(blocks)),
            })?,
        }
        let entry = self.offset();
        let mut before = Vec::with_capacity(self.instructions.list.len());
        let mut blocks = blocks.iter();
        let mut site = 0_u16;
        let mut slot = Slot::Implicit;
        let mut last: Option<&Instruction<'_>> = None;
        for (instruction, reached) in self.instructions.list.iter().zip(self.reached) {
            let start = self.offset();
            let mut handler = start;
            if reached.handler && has_blocks {
                handler = self.abort(reached.falls)?;
            }
            let branch = self.offset();
            if reached.leads {
                if last.is_some() || reached.branch || reached.handler {
                    slot = Slot::Unknown;
                }
                if let Some(Executions::Counter(counter)) = blocks.next().map(|it| it.executions) {
                    self.to.count(counter)?;
                }
            }
            if self.request.counted.is_some() {
                if opcode::is_call(instruction.opcode) {
                    self.to.throws_at(Bci(instruction.bci))?;
                    self.to.site(site)?;
                    site = site.saturating_add(1);
                    slot = Slot::Unknown;
                } else if self.may_call(instruction, last, reached) {
                    self.to.throws_at(Bci(instruction.bci))?;
                    if slot != Slot::Implicit {
                        self.to.implicit()?;
                        slot = Slot::Implicit;
                    }
                }
            }
            if opcode::is_return(instruction.opcode) {
                self.to.exit()?;
            }
            before.push(Before {
                start,
                handler,
                branch,
                end: self.offset(),
            });
            last = Some(instruction);
        }
        let tail = self.offset();
        self.to.tail()?;
        if self.uninitialised_this {
            self.to.tail()?;
        }
        let mut bytes = self.to.to.code;
        let tail = bytes.split_off(tail);
        Ok(Inserted {
            bytes,
            entry,
            before,
            tail,
        })
    }

    /// Records the abort at a handler, and returns where that begins. Code that runs into the handler jumps over it.
    fn abort(&mut self, falls: bool) -> Result<usize, NotRewritten> {
        let start = self.offset();
        if falls {
            self.to.to.indexed(opcode::GOTO, 0);
        }
        let abort = self.offset();
        self.to.abort()?;
        if falls {
            let length = self.offset().saturating_sub(start);
            let length = u16::try_from(length).unwrap_or(0).to_be_bytes();
            let operand = start.saturating_add(1)..abort;
            if let Some(operand) = self.to.to.code.get_mut(operand) {
                operand.copy_from_slice(&length);
            }
        }
        Ok(abort)
    }

    /// Returns true if the VM may call methods while it executes an instruction that is not a call: it throws an exception, loads a class or
    /// initialises it.
    fn may_call(
        &self,
        instruction: &Instruction<'_>,
        last: Option<&Instruction<'_>>,
        reached: &Reached,
    ) -> bool {
        match instruction.opcode {
            opcode::LDC | opcode::LDC_W | opcode::LDC2_W => {
                let index = match (instruction.opcode, instruction.bytes) {
                    (opcode::LDC, [_, index]) => u16::from(*index),
                    _ => instruction.operand(),
                };
                matches!(
                    self.to.to.constants.tag(index),
                    tag::CLASS | tag::METHOD_HANDLE | tag::METHOD_TYPE | tag::DYNAMIC
                )
            }
            // A field of `this` is there, and its class is initialised.
            opcode::GETFIELD => {
                reached.leads
                    || last.is_none_or(|it| it.opcode != opcode::ALOAD_0)
                    || !self.holds_this
                    || self.to.to.constants.field_class(instruction.operand())
                        != Some(self.request.class)
            }
            other => opcode::can_throw(other),
        }
    }
}

/// Returns true if the instruction may store to local variable 0.
fn stores_to_0(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.bytes,
        [59 | 63 | 67 | 71 | opcode::ASTORE_0]
            | [opcode::ISTORE..=opcode::ASTORE, 0]
            | [opcode::WIDE, opcode::ISTORE..=opcode::ASTORE, 0, 0]
    )
}

/// Reads and extends a method's frames.
fn read_frames(
    code: &Code<'_>,
    request: &Request<'_>,
    locals: Locals,
    instructions: &Instructions<'_>,
    constants: &mut Constants<'_>,
) -> Result<Frames, Failed> {
    let cell = constants.add_class(CLASS.as_bytes())?;
    let initial = Initial {
        access: request.access,
        name: request.name,
        descriptor: request.descriptor,
        class: request.class,
        max_locals: code.max_locals,
    };
    let table = code.attributes.iter().find(|it| it.name == STACK_MAP_TABLE);
    let frames = Frames::read(
        table.map(|table| table.data),
        &initial,
        &locals.types(cell),
        instructions,
        constants,
        request.budget,
    )?;
    Ok(frames)
}

const STACK_MAP_TABLE: &[u8] = b"StackMapTable";

/// Writes the attribute `Code`.
struct Writer<'m> {
    code: &'m Code<'m>,
    instructions: &'m Instructions<'m>,
    layout: &'m Layout,
    this: &'m [This],
    /// Length of the added handlers.
    tail: u16,
}

impl Writer<'_> {
    fn write(
        &self,
        new_code: &[u8],
        locals: Locals,
        frames: Option<&Frames>,
        constants: &mut Constants<'_>,
    ) -> Result<Vec<u8>, Failed> {
        let max_stack = self.code.max_stack.checked_add(STACK);
        let max_stack = max_stack.ok_or(Plain::TooManyLocals)?.max(ENTRY_STACK);
        let mut to = Vec::new();
        to.extend(max_stack.to_be_bytes());
        to.extend(locals.max.to_be_bytes());
        to.extend(u32::try_from(new_code.len()).unwrap_or(0).to_be_bytes());
        to.extend(new_code);
        self.write_handlers(&mut to)?;

        let mut attributes: Vec<(u16, Vec<u8>)> = Vec::new();
        for attribute in &self.code.attributes {
            if let Some(data) = moved(attribute, self.instructions, self.layout) {
                attributes.push((attribute.name_index, data));
            }
        }
        if let Some(frames) = frames {
            let throwable = constants.add_class(b"java/lang/Throwable")?;
            let data = frames.write(self.layout, &self.handlers(), throwable)?;
            attributes.push((constants.add_utf8(STACK_MAP_TABLE)?, data));
        }
        let count = u16::try_from(attributes.len()).map_err(|_| Plain::Invalid)?;
        to.extend(count.to_be_bytes());
        for (name, data) in attributes {
            to.extend(name.to_be_bytes());
            to.extend(u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
            to.extend(data);
        }
        Ok(to)
    }

    /// The added handlers: the first one for code with an initialised `this`.
    fn handlers(&self) -> Vec<AddedHandler> {
        let offset = self.layout.start(self.instructions.end());
        let mut handlers = vec![AddedHandler {
            offset,
            uninitialised_this: false,
        }];
        if self.this.contains(&This::Uninitialised) {
            handlers.push(AddedHandler {
                offset: offset.saturating_add(self.tail / 2),
                uninitialised_this: true,
            });
        }
        handlers
    }

    fn write_handlers(&self, to: &mut Vec<u8>) -> Result<(), Plain> {
        let mut entries = Vec::new();
        for handler in &self.code.handlers {
            let (start, end) =
                range(handler.start, handler.end, self.instructions).ok_or(Plain::Invalid)?;
            let target = self.instructions.at(usize::from(handler.handler));
            entries.push([
                self.layout.start(start),
                self.layout.start(end),
                self.layout.handler(target.ok_or(Plain::Invalid)?),
                handler.catch_type,
            ]);
        }
        // The method's own handlers come first.
        let handlers = self.handlers();
        let mut start: Index = 0;
        for run in self.this.chunk_by(|a, b| a == b) {
            let end = u16::try_from(run.len())
                .ok()
                .and_then(|length| start.checked_add(length))
                .ok_or(Plain::Invalid)?;
            let handler = match run.first() {
                Some(This::Initialised) => handlers.first(),
                Some(This::Uninitialised) => handlers.get(1),
                _ => None,
            };
            if let Some(handler) = handler {
                let (start, end) = (self.layout.start(start), self.layout.start(end));
                entries.push([start, end, handler.offset, 0]);
            }
            start = end;
        }
        let count = u16::try_from(entries.len()).map_err(|_| Plain::TooLarge)?;
        to.extend(count.to_be_bytes());
        to.extend(
            entries
                .as_flattened()
                .iter()
                .flat_map(|it| it.to_be_bytes()),
        );
        Ok(())
    }
}
