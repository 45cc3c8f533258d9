//! Processors that execute RISC-V instructions in order, as data: what their instructions, jumps, fetches, caches and predictors take.
//!
//! A [`Processor`] is read from a description. [`Slot`] is an instruction of a program on it. [`Pipeline`] issues slots in the order in which
//! they are executed, and returns the cycles of each.
//!
//! | question | file |
//! |---|---|
//! | what does a processor consist of | `processor`, `class`, `duration` |
//! | how is its description read, and what is wrong with it | `section`, `description`, `shipped` |
//! | what do a core's parameters, and other settings, change in it | `parameters` |
//! | what is known of an instruction before it is executed | `slot` |
//! | which cycles does it take | `pipeline` |
//! | what of that is the same each time | `pipeline::pending` |
//! | what of caches does an engine see that computes times once | `pipeline::planned` |
//! | what is in a cache | `cache` |
//! | where is a branch predicted to go | `predictor` |
//!
//! ```
//! use varid_model::Address;
//! use varid_processor::{Cycles, Operands, Pipeline, Processor, Slot};
//! use varid_riscv::{Xlen, decode};
//!
//! let ibex = Processor::named("ibex", &[]).unwrap();
//! let mut pipeline = Pipeline::new(&ibex);
//! // lw a0, 0(a1) takes two cycles.
//! let load = decode(&0x0005_a503_u32.to_le_bytes(), Xlen::Rv32).unwrap();
//! let slot = Slot::new(&ibex, &load, Address::new(0x1000), None).unwrap();
//! assert_eq!(pipeline.issue(&slot, Operands::default()).own, Cycles(2));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod cache;
mod class;
mod description;
mod duration;
mod error;
mod parameters;
mod pipeline;
mod predictor;
mod processor;
mod section;
mod shipped;
mod slot;

pub use cache::{Access, Cache, CacheLayout, Geometry, Replacement, Writes};
pub use class::{ByClass, Class};
pub use duration::{Cycles, Duration, Operands, Signedness, Steps, Variation};
pub use error::{Error, Result, Unsupported};
pub use pipeline::{CacheLayouts, Events, History, Issue, Pending, Pipeline, Stores};
pub use predictor::{Branch, Direction, Predictor, PredictorState};
pub use processor::{
    DataCache, FetchCosts, InstructionCache, InstructionCosts, LoadAfterStore, MissCosts,
    Prediction, PredictionStage, Processor, TransferCosts, WrongPath,
};
pub use shipped::{SHIPPED, shipped};
pub use slot::{Alignment, Slot};
pub use varid_description::Setting;
