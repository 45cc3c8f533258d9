//! The try blocks of a method, and the handlers of their exceptions.

use std::ops::Range;

use super::file::DexFile;
use super::read::{bad, sleb128, u16_at, u32_at, uleb128};
use crate::Result;
use crate::bytecode::MethodCode;

/// Size of a try_item in bytes.
const TRY_ITEM: usize = 8;

/// Instructions whose exceptions are caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryRange {
    /// File offsets of the instructions.
    pub code: Range<u32>,
    /// The handlers, in the order in which they are tried.
    pub handlers: Vec<CatchHandler>,
}

/// A handler of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchHandler {
    /// The class of exceptions, for [`DexFile::type_descriptor`]. None if it catches all.
    pub exception: Option<u32>,
    /// File offset of the handler's first instruction.
    pub offset: u32,
}

impl DexFile<'_> {
    /// Returns the try ranges of `method` in the order of its code_item. Each broken one is a separate error.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if its code_item is broken.
    pub fn tries(
        &self,
        method: &MethodCode,
    ) -> Result<impl Iterator<Item = Result<TryRange>> + use<'_>> {
        let item = self.code_item(method)?;
        let (start, end) = (item.insns.start, item.insns.end);
        let tries = (end as usize).next_multiple_of(4);
        let handlers = usize::from(item.tries)
            .saturating_mul(TRY_ITEM)
            .saturating_add(tries);
        Ok((0..usize::from(item.tries)).map(move |index| {
            let at = index.saturating_mul(TRY_ITEM).saturating_add(tries);
            self.try_range(at, handlers, start..end)
        }))
    }

    /// Reads the try_item at `at`. Its handlers are in the list at `handlers`.
    fn try_range(&self, at: usize, handlers: usize, code: Range<u32>) -> Result<TryRange> {
        let data = self.bytes();
        let place = |units: u32, field, at| {
            units
                .checked_mul(2)
                .and_then(|bytes| bytes.checked_add(code.start))
                .filter(|&offset| offset <= code.end)
                .ok_or_else(|| bad(field, at, "lies beyond the end of the method"))
        };
        let first = u32_at(data, at, "start_addr")?;
        let count = u16_at(data, at.saturating_add(4), "insn_count")?;
        let list = u16_at(data, at.saturating_add(6), "handler_off")?;
        let start = place(first, "start_addr", at)?;
        let end = first.saturating_add(count.into());
        let end = place(end, "insn_count", at.saturating_add(4))?;
        let mut at = handlers.saturating_add(list.into());
        let size = sleb128(data, &mut at, "encoded_catch_handler size")?;
        // A class is caught at most once.
        if size.unsigned_abs() > self.type_count() {
            return Err(bad(
                "encoded_catch_handler size",
                at,
                "more handlers than there are classes",
            ));
        }
        let mut handlers = Vec::new();
        for _ in 0..size.unsigned_abs() {
            let exception = uleb128(data, &mut at, "catch type_idx")?;
            let field = at;
            let address = uleb128(data, &mut at, "catch addr")?;
            handlers.push(CatchHandler {
                exception: Some(exception),
                offset: place(address, "catch addr", field)?,
            });
        }
        if size <= 0 {
            let field = at;
            let address = uleb128(data, &mut at, "catch_all_addr")?;
            handlers.push(CatchHandler {
                exception: None,
                offset: place(address, "catch_all_addr", field)?,
            });
        }
        Ok(TryRange {
            code: start..end,
            handlers,
        })
    }
}
