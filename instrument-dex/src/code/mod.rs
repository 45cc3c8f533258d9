//! Rewrites the code of a method.

mod assembler;
mod debug;
mod flow;
mod insert;
mod instruction;
mod item;
mod method;

pub use assembler::Label;
pub(crate) use assembler::{Assembler, halves};
pub(crate) use method::{MethodCode, NewCode, Shorty, rewrite};
