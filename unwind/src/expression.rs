//! What does a DWARF expression of call frame information compute?

use crate::stack_slice::StackSlice;
use gimli::{
    EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location,
    Operation, UnwindExpression, Value,
};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, Machine, Regs};

/// Evaluating one expression takes no more operations than this; what compilers write takes far fewer.
const MAX_OPERATIONS: u32 = 256;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

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

    /// Its operations, at most so many; None: there are more, or something else.
    fn operations<const MOST: usize>(&self, machine: Machine) -> Option<Vec<Operation<Slice<'_>>>> {
        let bytes = self.section.get(self.bytes.clone())?;
        let mut operations =
            gimli::Expression(EndianSlice::new(bytes, LittleEndian)).operations(encoding(machine));
        let mut found = Vec::new();
        while let Some(operation) = operations.next().ok()? {
            if found.len() == MOST {
                return None;
            }
            found.push(operation);
        }
        Some(found)
    }

    /// The register, word and bias of an expression that adds the bias to the word so many bytes from what a register holds.
    pub(crate) fn as_word_at_register(&self, machine: Machine) -> Option<(u16, i64, i64)> {
        match self.operations::<3>(machine)?.as_slice() {
            [
                Operation::RegisterOffset {
                    register, offset, ..
                },
                Operation::Deref { space: false, .. },
                Operation::PlusConstant { value },
            ] => Some((register.0, *offset, i64::try_from(*value).ok()?)),
            _ => None,
        }
    }

    /// The register that an expression with ART's mark names.
    pub(crate) fn as_marked_register(&self, machine: Machine) -> Option<u16> {
        match self.operations::<3>(machine)?.as_slice() {
            [
                _,
                Operation::Drop,
                Operation::RegisterOffset {
                    register,
                    offset: 0,
                    ..
                },
            ] => Some(register.0),
            _ => None,
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
