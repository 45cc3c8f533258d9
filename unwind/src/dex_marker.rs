//! How does the unwind information of ART mark the bytecode that an interpreter executes?
//!
//! ART marks its interpreters as follows: where their code has a method's bytecode pc, a row of the
//! call frame information gives some register that no callee saves the rule
//! `DW_CFA_val_expression: DW_OP_const4u "DEX1"; DW_OP_drop; …`, and what follows the drop
//! computes the pc from the frame's registers. Unwinders that do not know it never ask for
//! that register. It needs no symbols, no offsets and no build that is known.
//!
//! In Debian's builds of ART 11 (`readelf --debug-dump=frames`) what follows is one
//! `DW_OP_bregx`, always of offset 0:
//!
//! | function | amd64 | arm64 | armhf | what the register holds |
//! |---|---|---|---|---|
//! | `ExecuteMterpImpl` | r12, from the end of its prologue | x20 | r4 | the instruction; while it calls a method, the invoke |
//! | nterp and its six invoke helpers | r12 | – | – | the same; in a helper, the callee's first instruction once its frame is made |
//! | `ExecuteSwitchImplAsm` | rbx | x19 | r4 | the method's first instruction, whichever of them runs |
//!
//! `ExecuteSwitchImplAsm` (8 or 20 bytes) only calls the interpreter, which is a C++ function
//! without a mark: which instruction that executes cannot be told without knowing the build.
//! A marked function that is no longer than [`MAX_TRAMPOLINE`] is taken for such a call.
//!
//! A row without the rule in a function that has it elsewhere is a prologue, where there is no
//! pc yet. An epilogue keeps the rule after the register has been given back to the caller. So
//! the rule counts only where the same row says that the function has saved every register that
//! the rule reads. arm64's loop may already have advanced the register to the next instruction.

use crate::expression::{Expression, Section};
use gimli::{Encoding, Operation, RegisterRule, UnwindExpression, UnwindTableRow};
use varid_model::Address;

/// `DW_OP_const4u "DEX1"; DW_OP_drop`: what an expression that computes a bytecode pc starts with.
const MARKER: [u8; 6] = [0x0c, b'D', b'E', b'X', b'1', 0x13];

/// The bytecode that a frame executes, as the unwind information of its function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytecodePc {
    /// The function is no interpreter.
    NoInterpreter,
    /// It is an interpreter's frame that has no bytecode yet or no longer, or whose registers
    /// are lost.
    Unknown,
    /// The instruction at this address.
    At(Address),
    /// The frame has called an interpreter for the method whose first instruction is at this address.
    MethodAt(Address),
}

/// What a function's unwind information says of bytecode at an address of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BytecodeRule {
    /// The function is no interpreter.
    None,
    /// It is an interpreter, which has no pc here: it enters or leaves a method.
    NotHere,
    /// The pc is what an expression computes.
    Is(Expression),
}

/// Bytes of the longest function that can be a call of an interpreter, and not one itself.
pub(crate) const MAX_TRAMPOLINE: u64 = 64;

/// Whether a library's unwind information marks an interpreter anywhere.
pub(crate) fn is_in(eh_frame: &[u8]) -> bool {
    eh_frame.windows(MARKER.len()).any(|bytes| bytes == MARKER)
}

impl BytecodeRule {
    /// The rule of one row.
    pub(crate) fn of_row(
        row: &UnwindTableRow<usize>,
        section: &Section<'_>,
        encoding: Encoding,
        expression: impl Fn(UnwindExpression<usize>) -> Expression,
    ) -> Self {
        let marked = row.registers().find_map(|(_, rule)| match rule {
            RegisterRule::ValExpression(named) => {
                let bytes = named.get(section).ok()?;
                bytes.0.starts_with(&MARKER).then_some((*named, bytes))
            }
            _ => None,
        });
        let Some((named, bytes)) = marked else {
            return Self::None;
        };
        let has_saved = |register| {
            !matches!(
                row.register(register),
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue)
            )
        };
        let mut operations = bytes.operations(encoding);
        // What cannot be decoded cannot be evaluated, either.
        while let Ok(Some(operation)) = operations.next() {
            if let Operation::RegisterOffset { register, .. } = operation
                && !has_saved(register)
            {
                return Self::NotHere;
            }
        }
        Self::Is(expression(named))
    }
}
