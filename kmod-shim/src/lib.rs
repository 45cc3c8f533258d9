//! The shim: reads a thread's managed frames at the instant of a PMU interrupt.
//!
//! [`Shim`] runs in the kernel, [`Target`] defines what it samples, and [`CapturedSample`] is its record. It only collects: names
//! and files are resolved elsewhere. [`Walk`] is the same walker in user space, for sources that deliver a copy of the stack, for
//! tests and for fuzzing.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod abi;
mod bpf;
mod frames;
mod java;
mod module;
mod record;
mod target;
mod walk;

pub use abi::{
    Body, MAX_FRAMES, STACK_FULL, STACK_REACH, STACK_SLICE, flags, frame_flags, target_flags,
};
pub use bpf::{BpfError, Counters, Denied, HitWeight, OffCpuShim, Shim, Wait, WaitKind, Walker};
pub use frames::{FramePc, ManagedFrame, ManagedFrames, PackedFrame};
pub use java::{
    BlobCodePlace, CodeHeapPlace, FieldPlace, JvmPlaces, JvmTarget, SampledBlob, SampledCode,
};
pub use module::{
    Counter, CounterValue, MODULE_DEVICE, MODULE_RECORD, Module, ModuleCounts, ModuleError,
};
pub use record::{CapturedSample, DecodeError, StackCopy};
pub use target::{CodeState, CodeStates, LeaveFrame, Target};
pub use walk::{JavaLeaf, JavaWalk, Leaf, LeafRegisters, LeafState, Step, Walk, java_walk};
