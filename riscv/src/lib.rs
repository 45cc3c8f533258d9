//! Programs for RISC-V: their instructions, their executables and the flow of control in them.
//!
//! Decodes RV32 and RV64 with the extensions I, M, A, F, D, C, Zicsr and Zifencei, of the unprivileged specification, version 20191213.
//!
//! | question | file |
//! |---|---|
//! | which registers are there | `register` |
//! | what does an operation compute | `operation` |
//! | which registers does an instruction use, and where does execution continue | `instruction` |
//! | how is it written | `text` |
//! | how is code decoded | `decode`, `bits` |
//! | what is in an executable | `image` |
//! | what is wrong with it | `error` |
//!
//! ```
//! use varid_riscv::{Alu, Operation, Register, Xlen, decode};
//!
//! // addi sp, sp, -16, compressed
//! let instruction = decode(&[0x41, 0x11], Xlen::Rv32)?;
//! assert_eq!(instruction.operation, Operation::AluImmediate(Alu::Add));
//! assert_eq!((instruction.rd, instruction.rs1), (Register::SP, Register::SP));
//! assert_eq!((instruction.immediate, instruction.length.bytes()), (-16, 2));
//! # Ok::<(), varid_riscv::Illegal>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod bits;
mod decode;
mod error;
mod image;
mod instruction;
mod operation;
mod register;
mod text;

pub use decode::{Illegal, decode};
pub use error::{Error, Result};
pub use image::{Image, Segment, Symbol, SymbolKind};
pub use instruction::{Flow, Instruction, Length, Xlen};
pub use operation::{
    Alu, Atomic, Condition, CsrAccess, Divide, Extension, Float, Integer, Multiply, Operation,
    Precision, Width,
};
pub use register::{REGISTERS, Register};
pub use text::Text;
