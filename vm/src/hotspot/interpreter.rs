//! Where is the interpreter's code, and what does each part of it do?

use super::code_heaps::CodeHeap;
use super::error::{JvmError, Result};
use super::flags::Flags;
use super::layout::{CodeletLayout, StubQueueLayout};
use super::memory::PagedMemory;
use std::ops::Range;
use varid_model::Address;

/// The most codelets. JDK 17's interpreter has 271.
const MAX_CODELETS: u64 = 1 << 11;
/// The longest description in bytes.
const MAX_DESCRIPTION: usize = 128;

/// The interpreter. HotSpot generates it when it starts; it does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// From the first codelet to the end of the last one.
    pub code: Range<Address>,
    /// Its parts, by address.
    pub codelets: Vec<Codelet>,
}

/// A part of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codelet {
    /// Its instructions, and the padding behind them.
    pub code: Range<Address>,
    /// What it does, in HotSpot's words: `iload`, `return entry points`.
    pub description: String,
    /// The bytecode that it executes. None if it is another part.
    pub bytecode: Option<u8>,
}

/// What leads to the interpreter's parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct InterpreterPlace<'a> {
    /// Where the pointer to the queue is: `AbstractInterpreter::_code`.
    pub(super) queue: Address,
    pub(super) queue_layout: &'a StubQueueLayout,
    pub(super) codelet_layout: &'a CodeletLayout,
}

/// The queue of codelets.
struct Queue {
    codelets: Range<Address>,
    count: u64,
}

impl Interpreter {
    /// Returns the part at an address.
    pub fn codelet_at(&self, address: Address) -> Option<&Codelet> {
        let after = self
            .codelets
            .partition_point(|codelet| codelet.code.start <= address);
        let codelet = self.codelets.get(after.checked_sub(1)?)?;
        codelet.code.contains(&address).then_some(codelet)
    }

    /// Reads the interpreter of a VM with these flags and code heaps.
    pub(super) fn read(
        place: InterpreterPlace<'_>,
        flags: &Flags,
        heaps: &[CodeHeap],
        memory: &PagedMemory<'_>,
    ) -> Result<Self> {
        const CODELET: &str = "a codelet of the interpreter";
        let queue = Queue::read(place, heaps, memory)?;
        let layout = place.codelet_layout;
        let mut codelets = Vec::new();
        let mut at = queue.codelets.start;
        while at < queue.codelets.end && (codelets.len() as u64) < queue.count {
            let size = memory.member(CODELET, at, layout.size)?;
            let end = at.wrapping_add(size);
            let start = at.wrapping_add(layout.header.into()).get();
            let start = start.checked_next_multiple_of(flags.code_entry_alignment);
            let start = start.map(Address::new).filter(|start| *start <= end);
            let is_inside = size != 0 && end > at && end <= queue.codelets.end;
            let Some(start) = start.filter(|_| is_inside) else {
                let why = "it is not inside of its queue";
                return Err(JvmError::implausible(
                    "InterpreterCodelet::_size",
                    size,
                    why,
                ));
            };
            let description = memory.pointer_in(CODELET, at, layout.description)?;
            let description = match description.get() {
                0 => String::new(),
                _ => memory.string(CODELET, description, MAX_DESCRIPTION)?,
            };
            // -1: none.
            let bytecode = memory.member(CODELET, at, layout.bytecode)?;
            codelets.push(Codelet {
                code: start..end,
                description,
                bytecode: u8::try_from(bytecode).ok(),
            });
            at = end;
        }
        if codelets.len() as u64 != queue.count || at != queue.codelets.end {
            let why = "its codelets have another size in total";
            return Err(JvmError::implausible(
                "StubQueue::_queue_end",
                at.get(),
                why,
            ));
        }
        Ok(Self {
            code: queue.codelets,
            codelets,
        })
    }
}

impl Queue {
    fn read(
        place: InterpreterPlace<'_>,
        heaps: &[CodeHeap],
        memory: &PagedMemory<'_>,
    ) -> Result<Self> {
        const QUEUE: &str = "AbstractInterpreter::_code";
        let queue = memory.pointer(QUEUE, place.queue)?;
        if queue.get() == 0 {
            return Err(JvmError::NotStarted("it has no interpreter yet"));
        }
        let layout = place.queue_layout;
        let member = |member| memory.member(QUEUE, queue, member);
        let buffer = Address::new(member(layout.buffer)?);
        let (begin, end) = (member(layout.begin)?, member(layout.end)?);
        let (limit, count) = (member(layout.limit)?, member(layout.count)?);
        if count == 0 {
            return Err(JvmError::NotStarted("its interpreter is not generated yet"));
        }
        let codelets = buffer.wrapping_add(begin)..buffer.wrapping_add(end);
        let is_inside = |heap: &CodeHeap| {
            heap.reserved.start <= codelets.start && codelets.end <= heap.reserved.end
        };
        if begin > end || end > limit || !heaps.iter().any(is_inside) {
            let why = "it is in no code heap";
            let end = codelets.end.get();
            return Err(JvmError::implausible("StubQueue::_queue_end", end, why));
        }
        if count > MAX_CODELETS {
            let why = "no interpreter has as many codelets";
            return Err(JvmError::implausible(
                "StubQueue::_number_of_stubs",
                count,
                why,
            ));
        }
        Ok(Self { codelets, count })
    }
}
