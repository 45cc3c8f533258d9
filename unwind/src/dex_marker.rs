//! ART's marks in unwind information, which show the bytecode that an interpreter executes.
//!
//! ART marks its interpreters in their call frame information. Where the code has the bytecode pc of a method, a row gives some
//! caller-saved register the rule `DW_CFA_val_expression: DW_OP_const4u "DEX1"; DW_OP_drop; …`. The operations after the drop compute the
//! pc from the frame's registers. Unwinders that do not know the mark never use the rule of that register. The mark needs no symbols, no
//! offsets and no known build.
//!
//! In Debian's builds of ART 11 (`readelf --debug-dump=frames`), a single `DW_OP_bregx` with offset 0 follows:
//!
//! | function | amd64 | arm64 | armhf | what the register holds |
//! |---|---|---|---|---|
//! | `ExecuteMterpImpl` | r12, from the end of its prologue | x20 | r4 | the instruction; while it calls a method, the invoke |
//! | nterp and its six invoke helpers | r12 | – | – | the same; in a helper, the callee's first instruction once its frame is made |
//! | `ExecuteSwitchImplAsm` | rbx | x19 | r4 | the method's first instruction, whichever of them runs |
//!
//! `ExecuteSwitchImplAsm` (8 or 20 bytes) only calls the interpreter, which is a C++ function without a mark: the instruction that it
//! executes cannot be found without knowing the build. A marked function of at most [`MAX_TRAMPOLINE`] bytes is assumed to be such a call.
//!
//! A function with the rule has no pc yet in rows without it: they are its prologue. An epilogue keeps the rule after the register has been
//! restored for the caller. So the rule is used only if the same row says that the function has saved every register that the rule reads.
//! arm64's loop may already have advanced the register to the next instruction.

use crate::expression::{Expression, Section};
use gimli::{Encoding, Operation, RegisterRule, UnwindExpression, UnwindTableRow};
use varid_model::Address;

/// `DW_OP_const4u "DEX1"; DW_OP_drop`: the beginning of an expression that computes a bytecode pc.
const MARKER: [u8; 6] = [0x0c, b'D', b'E', b'X', b'1', 0x13];

/// The bytecode that a frame executes, according to the unwind information of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytecodePc {
    /// The function is not an interpreter.
    NoInterpreter,
    /// An interpreter's frame that has no bytecode yet or any more, or whose registers are lost.
    Unknown,
    /// The instruction at this address.
    At(Address),
    /// The frame has called an interpreter for the method whose first instruction is at this address.
    MethodAt(Address),
}

/// What a function's unwind information says about bytecode at one of its addresses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BytecodeRule {
    /// The function is not an interpreter.
    None,
    /// It is an interpreter that has no pc here: it is entering or leaving a method.
    NotHere,
    /// An expression computes the pc.
    Is(Expression),
}

/// The largest size in bytes of a function that calls an interpreter and is not one itself.
pub(crate) const MAX_TRAMPOLINE: u64 = 64;

/// Returns true if a library's unwind information marks an interpreter anywhere.
pub(crate) fn is_in(eh_frame: &[u8]) -> bool {
    eh_frame.windows(MARKER.len()).any(|bytes| bytes == MARKER)
}

impl BytecodeRule {
    /// Returns the rule of one row.
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
