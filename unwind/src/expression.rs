//! Evaluates DWARF expressions of call frame information.

use crate::stack_slice::StackSlice;
use gimli::{
    EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location,
    Operation, UnwindExpression, Value,
};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, Machine, Regs};

/// The most operations of one evaluation. Compilers write far shorter expressions.
const MAX_OPERATIONS: u32 = 256;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A module's call frame information.
pub(crate) type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// The encoding of a machine's expressions.
pub(crate) fn encoding(machine: Machine) -> Encoding {
    Encoding {
        format: gimli::Format::Dwarf32,
        version: 4,
        address_size: machine.word(),
    }
}

/// A DWARF expression, by its position in a module's call frame information. It is not copied, because a file can name one of any length.
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

    /// Decodes its operations. None if there are more than `MOST`, or one cannot be decoded.
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

    /// Returns register, offset and bias if the expression computes `[register + offset] + bias`.
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

    /// Returns the register that an expression with ART's mark names.
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

    /// Computes the value for a frame with these registers. `initial` is pushed on the evaluation stack first. None if the expression is
    /// invalid, or needs a register or a word that is not known.
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
