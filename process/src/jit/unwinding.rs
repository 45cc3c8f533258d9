//! How are frames of generated code left?
//!
//! A producer that writes a jitdump file may say it there, function by function. Of code of which nobody says anything, the instructions
//! at a return address may: an adapter frees its frame and returns right behind its call.

use crate::reader::{Batch, BatchMemory, MemoryRange, Piece};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use varid_model::{Address, Machine};
use varid_symbolizer::jit::JitFunction;
use varid_unwind::{
    CodeRule, FixedFrame, Module, NativeFrame, UnwindInfo, frame_left_by, reads_adapters,
};

/// Functions of a process whose unwinding information is kept as rules.
const MAX_FUNCTIONS: usize = 1 << 12;
/// Return addresses of a process at which the code is looked at: each takes a request.
const MAX_RETURNS: usize = 1 << 12;
/// How often that fails before it is not tried any more: the process has ended.
const MAX_FAILURES: u8 = 8;
/// Bytes at a return address in which a frame is freed.
const EPILOGUE: u32 = 24;

/// The rules of a process's generated code, as far as its frames were asked for.
#[derive(Debug, Default)]
pub(super) struct UnwindRules {
    /// By the function's first address, and the time since which it is there.
    described: RefCell<HashMap<(u64, u64), Module>>,
    /// The frames that the code at return addresses leaves; None: it does not say it.
    adapters: RefCell<BTreeMap<Address, Option<FixedFrame>>>,
    failures: Cell<u8>,
}

impl UnwindRules {
    /// Code was replaced: what is at its addresses is looked at again.
    pub(super) fn forget_adapters(&self, replaced: &Range<u64>) {
        let replaced = Address::new(replaced.start)..Address::new(replaced.end);
        self.adapters
            .borrow_mut()
            .retain(|returns, _| !replaced.contains(returns));
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

    /// As the code says to which the frame's call returns. It may have changed since it was read: the rule counts if it leads to code.
    pub(super) fn of_adapter(
        &self,
        memory: &dyn BatchMemory,
        frame: &NativeFrame,
    ) -> Option<FixedFrame> {
        if frame.address.is_instruction() || !reads_adapters(frame.regs.machine()) {
            return None;
        }
        let returns = frame.address.recorded();
        let mut adapters = self.adapters.borrow_mut();
        if let Some(known) = adapters.get(&returns) {
            return known.clone();
        }
        if adapters.len() >= MAX_RETURNS || self.failures.get() >= MAX_FAILURES {
            return None;
        }
        let Some(code) = read_code(memory, returns) else {
            self.failures.set(self.failures.get().saturating_add(1));
            return None;
        };
        let found = frame_left_by(frame.regs.machine(), &code);
        adapters.insert(returns, found.clone());
        found
    }
}

fn read_code(memory: &dyn BatchMemory, at: Address) -> Option<Vec<u8>> {
    let batch = Batch {
        pieces: vec![Piece::Available(MemoryRange {
            address: at.get(),
            len: EPILOGUE,
        })],
        ..Batch::default()
    };
    let read = memory.read_batch(&batch).ok()?.read?;
    let code = read.pieces.into_iter().next()??;
    Some(code.bytes().to_vec())
}
