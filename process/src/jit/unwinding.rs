//! Unwind rules of generated code.
//!
//! A producer that writes a jitdump file may describe the frames of each function there. Without a description, the instructions at a
//! return address may show the frame: an adapter pops its frame and returns right after its call.

use super::adapter::{AdapterDecoder, EPILOGUE};
use crate::reader::{Batch, BatchMemory, MemoryRange, Piece};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use varid_model::{Address, Machine};
use varid_symbolizer::jit::JitFunction;
use varid_unwind::{CodeRule, FixedFrame, Module, NativeFrame, UnwindInfo};

/// The most functions of a process whose unwind information is kept as rules.
const MAX_FUNCTIONS: usize = 1 << 12;
/// The most return addresses of a process at which the code is read: each takes a request.
const MAX_RETURNS: usize = 1 << 12;
/// How often reading may fail before it is no longer tried: the process has ended.
const MAX_FAILURES: u8 = 8;

/// The rules of a process's generated code, where they were needed.
#[derive(Debug, Default)]
pub(super) struct UnwindRules {
    /// By the function's first address, and the time since when it is there.
    described: RefCell<HashMap<(u64, u64), Module>>,
    /// The frames that the code at return addresses pops. None: it does not show its frame.
    adapters: RefCell<BTreeMap<Address, Option<FixedFrame>>>,
    failures: Cell<u8>,
}

impl UnwindRules {
    /// Forgets the code at replaced addresses, so that it is read again.
    pub(super) fn forget_adapters(&self, replaced: &Range<u64>) {
        let replaced = Address::new(replaced.start)..Address::new(replaced.end);
        self.adapters
            .borrow_mut()
            .retain(|returns, _| !replaced.contains(returns));
    }

    /// Returns the rule by the description of the function's producer.
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
            CodeRule::Unknown | CodeRule::NotRead | CodeRule::NoCode | CodeRule::Elsewhere => None,
        }
    }

    /// Returns the frame that the code at the frame's return address pops. The code may have changed since it was read, so the caller must
    /// check that the rule leads to code.
    pub(super) fn of_adapter(
        &self,
        memory: &dyn BatchMemory,
        frame: &NativeFrame,
    ) -> Option<FixedFrame> {
        let decoder = AdapterDecoder::of(frame.regs.machine())?;
        if frame.address.is_instruction() {
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
        let found = decoder.frame_left_by(&code);
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
