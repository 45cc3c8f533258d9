//! What is inserted before each instruction of a method?

use crate::blocks::{Reached, counters};
use crate::class::{Instruction, Instructions, opcode, tag};
use crate::layout::{Before, Inserted};
use crate::request::Request;
use crate::sequences::{NodeShape, Sequences};
use crate::{Bci, Block, Executions, NotRewritten, Site};

/// What the thread's slot is while a method is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// Slot 0 of the method's node.
    Implicit,
    /// Perhaps that of a call site.
    Unknown,
}

/// Makes what is inserted into a method's code.
pub(crate) struct Inserter<'a, 'c, 'm> {
    pub(crate) to: Sequences<'a, 'c>,
    pub(crate) instructions: &'m Instructions<'m>,
    pub(crate) reached: &'m [Reached],
    pub(crate) request: &'m Request<'m>,
    /// Local variable 0 is `this` throughout the method.
    pub(crate) holds_this: bool,
    /// A part of the method precedes the initialisation of `this`.
    pub(crate) uninitialised_this: bool,
}

impl Inserter<'_, '_, '_> {
    fn offset(&self) -> usize {
        self.to.to.code.len()
    }

    /// Returns what is inserted, for these call sites and blocks.
    pub(crate) fn insert(
        mut self,
        sites: &[Site],
        blocks: &[Block],
    ) -> Result<Inserted, NotRewritten> {
        if self.request.starts {
            self.to.begin()?;
        }
        let has_blocks = !blocks.is_empty();
        match self.request.counted {
            None => self.to.leaf_entry()?,
            Some(_) => {
                let node = NodeShape {
                    method: self.request.number,
                    sites: u16::try_from(sites.len()).unwrap_or(u16::MAX),
                    counters: has_blocks.then(|| counters(blocks)),
                };
                self.to.entry(node, self.request.is_extent)?;
            }
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
                match blocks.next().map(|it| it.executions) {
                    Some(Executions::Counter(counter)) => self.to.count(counter)?,
                    Some(Executions::Ordered(counter)) => self.to.count_in_order(counter)?,
                    Some(Executions::Calls) | None => {}
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
pub(crate) fn stores_to_0(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.bytes,
        [59 | 63 | 67 | 71 | opcode::ASTORE_0]
            | [opcode::ISTORE..=opcode::ASTORE, 0]
            | [opcode::WIDE, opcode::ISTORE..=opcode::ASTORE, 0, 0]
    )
}
