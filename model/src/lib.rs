//! The basic types of a profile, which are used wherever it is sampled, written or shown.
//!
//! The types of this crate do not depend on files, processes or the kernel. Every other crate may use them.
//!
//! | question | file |
//! |---|---|
//! | what is the address of a frame | `address` |
//! | how are numbers from the kernel or a VM used as keys | `by_id` |
//! | which process, which thread | `id` |
//! | which device is a file on | `device` |
//! | which value does an address have | `interval_map` |
//! | which layer does code belong to | `layer` |
//! | when, how much, how far | `measure` |
//! | what may a process do with a mapping | `mode` |
//! | which mappings are memory of the process itself | `own_memory` |
//! | what does the kernel's perf interface look like | [`perf`] |
//! | how is a line of `/proc/PID/maps` parsed | `proc_maps` |
//! | how precisely is the instruction of a managed frame known | `precision` |
//! | how often is an event sampled | `rate` |
//! | why is a part of a sample missing | `reason` |
//! | which registers does a sample have, on which machine | `registers` |
//! | which known word is similar to a misspelt one | `spelling` |
//! | how much of a stack is recorded | `stack` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod address;
mod beyond_copy;
mod by_id;
mod device;
mod holes;
mod id;
mod index;
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
pub use beyond_copy::{BeyondCopy, FrameLink, Resumption, StackWord};
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
