//! How are frames of generated code left?
//!
//! A producer that writes a jitdump file may say it there, function by function. Of code of which nobody says anything, the instructions
//! at a return address may: an adapter frees its frame and returns right behind its call.

use crate::reader::{Batch, BatchMemory, MemoryRange, Piece};
use std::cell::RefCell;
use std::collections::HashMap;
use varid_model::{Address, Machine};
use varid_symbolizer::jit::JitFunction;
use varid_unwind::{CodeRule, FixedFrame, Module, NativeFrame, UnwindInfo};

/// Functions of a process whose unwinding information is kept as rules.
const MAX_FUNCTIONS: usize = 1 << 16;
/// Return addresses of a process at which the code is looked at: each takes a request.
const MAX_RETURNS: usize = 1 << 12;
/// Bytes at a return address in which a frame is freed.
const EPILOGUE: u32 = 24;

/// The rules of a process's generated code, as far as its frames were asked for.
#[derive(Debug, Default)]
pub(super) struct UnwindRules {
    /// By the function's first address, and the time since which it is there.
    described: RefCell<HashMap<(u64, u64), Module>>,
    /// The frames that the code at return addresses leaves; None: it does not say it, or could not be read.
    adapters: RefCell<HashMap<Address, Option<FixedFrame>>>,
}

impl UnwindRules {
    /// Code was replaced: what is at its addresses is looked at again.
    pub(super) fn forget_adapters(&self) {
        self.adapters.borrow_mut().clear();
    }

    /// As the producer of the function describes it.
    pub(super) fn described(&self, code: &JitFunction, frame: &NativeFrame) -> Option<CodeRule> {
        let own = frame.lookup().offset_from(Address::new(code.range.start))?;
        let size = code.range.end.checked_sub(code.range.start)?;
        if code.eh_frame.is_empty() {
            return None;
        }
        let mut described = self.described.borrow_mut();
        let key = (code.range.start, code.from);
        if described.len() >= MAX_FUNCTIONS && !described.contains_key(&key) {
            described.clear();
        }
        let module = described.entry(key).or_insert_with(|| {
            let at = Address::new(size.next_multiple_of(8));
            Module::of_generated_code(Machine::NATIVE, code.eh_frame.to_vec().into(), at)
        });
        match module.rule(Address::new(own)) {
            CodeRule::Rule(rule) => Some(CodeRule::Rule(rule)),
            CodeRule::Unknown | CodeRule::NoCode => None,
        }
    }

    /// As the code says to which the frame's call returns.
    pub(super) fn of_adapter(
        &self,
        memory: &dyn BatchMemory,
        frame: &NativeFrame,
    ) -> Option<CodeRule> {
        if frame.address.is_instruction() {
            return None;
        }
        let returns = frame.address.recorded();
        let mut adapters = self.adapters.borrow_mut();
        let has_room = adapters.len() < MAX_RETURNS;
        let known = match adapters.get_mut(&returns) {
            Some(known) => known,
            None if has_room => adapters.entry(returns).or_insert(read_adapter(
                memory,
                returns,
                frame.regs.machine(),
            )),
            None => return None,
        };
        Some(known.as_mut()?.rule(frame.lookup()))
    }
}

fn read_adapter(
    memory: &dyn BatchMemory,
    returns: Address,
    machine: Machine,
) -> Option<FixedFrame> {
    let batch = Batch {
        pieces: vec![Piece::Available(MemoryRange {
            address: returns.get(),
            len: EPILOGUE,
        })],
        ..Batch::default()
    };
    let read = memory.read_batch(&batch).ok()?.read?;
    let code = read.pieces.into_iter().next()??;
    FixedFrame::left_by(machine, code.bytes())
}
