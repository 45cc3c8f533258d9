//! The vocabulary of a profile: what its parts are called, wherever they are sampled, written or shown.
//!
//! Types of this crate know nothing of files, processes or the kernel; everything else may use them.
//!
//! | question | file |
//! |---|---|
//! | where is a frame, and which instruction is it at | `address` |
//! | how are numbers that the kernel or a VM gives out looked up | `by_id` |
//! | which process, which thread | `id` |
//! | which device is a file on | `device` |
//! | which value holds at an address | `interval_map` |
//! | whose code is it | `layer` |
//! | when, how much, how far | `measure` |
//! | what may a process do with a mapping | `mode` |
//! | which mappings are memory of a process's own | `own_memory` |
//! | what does the kernel's perf interface look like | [`perf`] |
//! | what does a line of `/proc/PID/maps` say | `proc_maps` |
//! | how well is the instruction known that a managed frame executes | `precision` |
//! | how often is an event sampled | `rate` |
//! | why is something missing of a sample | `reason` |
//! | which registers does a sample have, on which machine | `registers` |
//! | which known word did a misspelt one mean | `spelling` |
//! | how much of a stack is recorded | `stack` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod address;
mod beyond_copy;
mod by_id;
mod device;
mod holes;
mod id;
mod interval_map;
mod layer;
mod measure;
mod mode;
mod own_memory;
pub mod perf;
mod precise;
mod precision;
mod proc_maps;
mod rate;
mod reason;
mod registers;
mod spelling;
mod stack;

pub use address::{Address, FrameAddress};
pub use beyond_copy::{BeyondCopy, FrameLink};
pub use by_id::{ById, Ids, NumberHasher};
pub use device::Device;
pub use holes::Holes;
pub use id::{Pid, Tid};
pub use interval_map::{Interval, IntervalMap, IntervalValue};
pub use layer::Layer;
pub use measure::{CodeUnits, MonotonicNs, Period};
pub use mode::Mode;
pub use own_memory::is_own_memory;
pub use precise::PrecisePlace;
pub use precision::Precision;
pub use proc_maps::{MapsEntry, maps_entries};
pub use rate::Rate;
pub use reason::{Marker, Reason};
pub use registers::{ADDRESS_MASK, Machine, RECORD_REGS, RegInfo, Regs};
pub use spelling::nearest;
pub use stack::Stack;
