//! DWARF expressions of call frame information, and their values.

use gimli::{
    EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location,
    UnwindExpression, Value,
};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Machine, Regs};

/// Evaluating one expression takes no more operations than this: none that a compiler
/// writes comes near.
const MAX_OPERATIONS: u32 = 256;

/// A module's call frame information.
pub(super) type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// How a machine's expressions are encoded.
pub(super) fn encoding(machine: Machine) -> Encoding {
    Encoding {
        format: gimli::Format::Dwarf32,
        version: 4,
        address_size: machine.word(),
    }
}

/// A DWARF expression: where it is in a module's call frame information, however long a file says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expression {
    section: Rc<[u8]>,
    bytes: Range<usize>,
}

impl Expression {
    /// The one that a row of this section names.
    pub(super) fn of(section: &Rc<[u8]>, named: UnwindExpression<usize>) -> Self {
        Self {
            section: Rc::clone(section),
            bytes: named.offset..named.offset.saturating_add(named.length),
        }
    }

    /// The value for a frame of a machine, whose memory `read` reads by words; `initial` is on the stack at first.
    /// None: it cannot be computed from them.
    pub(super) fn evaluate(
        &self,
        machine: Machine,
        regs: &Regs,
        read: impl Fn(u64) -> Option<u64>,
        initial: Option<u64>,
    ) -> Option<u64> {
        let bytes = self.section.get(self.bytes.clone())?;
        let expression = gimli::Expression(EndianSlice::new(bytes, LittleEndian));
        let mut evaluation: Evaluation<EndianSlice<'_, LittleEndian>> =
            expression.evaluation(encoding(machine));
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => evaluation
                    .resume_with_register(Value::Generic(regs.get(register.0)?))
                    .ok()?,
                EvaluationResult::RequiresMemory { address, .. } => evaluation
                    .resume_with_memory(Value::Generic(read(address)?))
                    .ok()?,
                _ => return None,
            };
        }
        match evaluation.as_result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Register { register } => regs.get(register.0),
            _ => None,
        }
    }
}
