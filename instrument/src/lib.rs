//! Rewrites Java class files so that they count every call by its calling context.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod assembler;
mod attributes;
mod blocks;
mod class;
mod constructor;
mod error;
mod frames;
mod intrinsics;
mod layout;
mod method;
pub mod node;
mod plan;
mod rewrite;
pub mod runtime;
mod sequences;
mod table;

pub use error::NotRewritten;
pub use plan::{Counted, Intrinsics, Plan};
pub use rewrite::rewrite;
pub use runtime::{TreeAddress, runtime_class, thread_class};
pub use table::{
    Bci, Block, Body, Executions, Line, MethodNumber, MethodReference, MethodTable, Plain,
    Rewritten, Site,
};
