//! What counted bytecodes cost on another machine: an embedded Java processor, or a VM whose bytecodes were timed. So does dex code.
//!
//! A [`Target`] is data: a cost for each bytecode, the bytecodes that its runtime implements, its method cache. [`Program`] is what was
//! counted: calling contexts, how often each instruction ran in them, and the code of their methods. [`estimate`] prices it.
//!
//! Only the method cache depends on the order of calls. With the order, [`Replay`] simulates any number of caches in one pass over it.
//! Without it, [`CacheAccesses::Hit`] and [`CacheAccesses::Miss`] are the bounds.
//!
//! | question | file |
//! |---|---|
//! | what does a target consist of | `target`, `price` |
//! | how is a target's file read, and what is wrong with it | `target_file`, `shipped` |
//! | which instructions does a method have | `code` |
//! | what does an instruction cost | `cost_model` |
//! | what is in a method cache | `method_cache` |
//! | what was counted, which of it is priced | `program`, `within` |
//! | the order of calls, through the method cache | `replay` |
//! | the sums | `estimate` |
//! | the parts of a sum, by opcode | `opcode_costs` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod code;
mod cost_model;
mod error;
mod estimate;
mod method_cache;
mod opcode_costs;
mod price;
mod program;
mod replay;
mod shipped;
mod target;
mod target_file;
mod within;

pub use code::{Bytecode, CodeInstruction, MethodCode, MethodName, Opcode, Operand};
pub use cost_model::{Cost, CostModel, PricedInstruction, PricedMethod, Transfer};
pub use error::{Error, Result};
pub use estimate::{
    CacheAccesses, CacheSummary, Estimate, PlaceCost, Uncosted, WholeCosts, estimate,
};
pub use method_cache::{Access, CodeId, FifoVariableBlock, Geometry, MethodCache, Words};
pub use opcode_costs::{OpcodeCost, opcode_costs};
pub use price::Price;
pub use program::{MethodBody, Program, ProgramMethod, ProgramNode};
pub use replay::{CacheCharges, Replay};
pub use shipped::{SHIPPED, shipped};
pub use target::{
    Build, IncrementCode, LoadTimes, MethodCacheParameters, ResultKind, RuntimeMethod,
    Synchronized, Target, VmCalls,
};
pub use varid_description::Setting;
pub use within::methods_named;
