//! Reads a code_item: the instructions of a method, and where their exceptions are caught.

use std::collections::HashMap;

use crate::error::Result;
use crate::file::Cursor;

/// The code of a method.
#[derive(Debug, Clone)]
pub(crate) struct CodeItem {
    /// Registers of the frame. The last ones are those of the arguments.
    pub(crate) registers: u16,
    /// Registers of the arguments.
    pub(crate) ins: u16,
    /// The most registers of the arguments of a call.
    pub(crate) outs: u16,
    /// The offset of the debug_info_item, or 0.
    pub(crate) debug_info: u32,
    pub(crate) units: Vec<u16>,
    /// By ascending code units. They do not overlap.
    pub(crate) tries: Vec<Try>,
    pub(crate) handlers: Vec<Handlers>,
}

/// Instructions whose exceptions are caught.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Try {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The index of its handlers.
    pub(crate) handlers: usize,
}

/// The handlers of a try, in the order in which they are tried. Code units are those of the method.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handlers {
    /// The type that is caught, and the code unit of the handler.
    pub(crate) typed: Vec<(u32, u32)>,
    pub(crate) catch_all: Option<u32>,
}

impl Handlers {
    /// Returns the code units of all handlers.
    pub(crate) fn targets(&self) -> impl Iterator<Item = u32> {
        let typed = self.typed.iter().map(|(_, target)| *target);
        typed.chain(self.catch_all)
    }
}

impl CodeItem {
    pub(crate) fn read(data: &[u8], offset: u32) -> Result<Self> {
        let mut cursor = Cursor::new(data, offset, "code_item");
        let (registers, ins, outs) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
        if ins > registers {
            return Err(cursor.error("more registers of arguments than registers"));
        }
        let tries = cursor.u16()?;
        let debug_info = cursor.u32()?;
        let count = cursor.u32()? as usize;
        let bytes = cursor.bytes(count.saturating_mul(2))?;
        let units = bytes.as_chunks::<2>().0.iter();
        let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
        let mut item = Self {
            registers,
            ins,
            outs,
            debug_info,
            units,
            tries: Vec::new(),
            handlers: Vec::new(),
        };
        if tries > 0 {
            if !count.is_multiple_of(2) {
                cursor.u16()?;
            }
            item.read_tries(cursor, tries)?;
        }
        Ok(item)
    }

    fn read_tries(&mut self, mut cursor: Cursor<'_>, count: u16) -> Result<()> {
        let mut lists = cursor;
        lists.bytes(usize::from(count).saturating_mul(8))?;
        let length = u32::try_from(self.units.len()).unwrap_or(u32::MAX);
        let mut known = HashMap::new();
        let mut last = 0;
        for _ in 0..count {
            let start = cursor.u32()?;
            let end = start.saturating_add(cursor.u16()?.into());
            if start < last || end <= start || end > length {
                return Err(cursor.error("the code units of a try are not in order"));
            }
            last = end;
            let offset = cursor.u16()?;
            let handlers = match known.get(&offset) {
                Some(known) => *known,
                None => {
                    let mut list = lists;
                    list.bytes(offset.into())?;
                    let read = read_handlers(&mut list, length)?;
                    let new = self.handlers.len();
                    self.handlers.push(read);
                    known.insert(offset, new);
                    new
                }
            };
            self.tries.push(Try {
                start,
                end,
                handlers,
            });
        }
        Ok(())
    }

    /// Returns the index of the handlers of the exceptions of an instruction.
    pub(crate) fn handlers_at(&self, pc: u32) -> Option<usize> {
        let after = self.tries.partition_point(|one| one.end <= pc);
        let found = self.tries.get(after).filter(|one| one.start <= pc);
        found.map(|one| one.handlers)
    }
}

fn read_handlers(list: &mut Cursor<'_>, length: u32) -> Result<Handlers> {
    let size = list.sleb()?;
    let mut handlers = Handlers::default();
    let target = |list: &mut Cursor<'_>| {
        let target = list.uleb()?;
        match target < length {
            true => Ok(target),
            false => Err(list.error("a handler lies beyond the end of the method")),
        }
    };
    for _ in 0..size.unsigned_abs() {
        let exception = list.uleb()?;
        handlers.typed.push((exception, target(list)?));
    }
    if size <= 0 {
        handlers.catch_all = Some(target(list)?);
    }
    Ok(handlers)
}
