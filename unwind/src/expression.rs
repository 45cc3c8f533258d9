//! What does a DWARF expression of call frame information compute?

use crate::stack_slice::StackSlice;
use gimli::{
    EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location,
    UnwindExpression, Value,
};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, Machine, Regs};

/// Evaluating one expression takes no more operations than this; what compilers write takes far fewer.
const MAX_OPERATIONS: u32 = 256;

/// A module's call frame information.
pub(crate) type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// How a machine's expressions are encoded.
pub(crate) fn encoding(machine: Machine) -> Encoding {
    Encoding {
        format: gimli::Format::Dwarf32,
        version: 4,
        address_size: machine.word(),
    }
}

/// A DWARF expression, by where it is in a module's call frame information: a file can name one of any length, which is
/// not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expression {
    section: Rc<[u8]>,
    bytes: Range<usize>,
}

impl Expression {
    /// The expression that a row of this section names.
    pub(crate) fn new(section: &Rc<[u8]>, named: UnwindExpression<usize>) -> Self {
        Self {
            section: Rc::clone(section),
            bytes: named.offset..named.offset.saturating_add(named.length),
        }
    }

    /// The value for a frame with these registers; `initial` is on the evaluation's stack at first. None: it needs a register
    /// or a word that is not known, or is no valid expression.
    pub(crate) fn evaluate(
        &self,
        machine: Machine,
        regs: &Regs,
        stack: StackSlice<'_>,
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
                    .resume_with_memory(Value::Generic(stack.word(machine, Address::new(address))?))
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
