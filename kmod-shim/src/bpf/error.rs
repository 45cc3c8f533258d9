//! Errors of the BPF shim, with what would fix them.

use super::denied::{Denied, is_denied};
use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use std::io;

/// An error that prevents the use of the BPF shim.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// This process has no permission to use BPF.
    #[error("BPF is not permitted: {0}")]
    Denied(Denied),
    /// The kernel refuses BPF, or the object.
    #[error("cannot load the BPF shim: {0}. It needs a kernel of 5.15 or newer with BTF")]
    Load(EbpfError),
    /// The verifier or the kernel refuses the program.
    #[error("the kernel refuses the BPF shim: {0}")]
    Program(ProgramError),
    /// The number of online or possible CPUs cannot be read.
    #[error("cannot read {path}: {source}")]
    Cpus {
        /// The file of sysfs.
        path: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A program cannot be attached to a tracepoint.
    #[error(
        "the kernel has no tracepoint '{name}': 'ls /sys/kernel/tracing/events/SYSTEM' lists those of a system; those of single system calls are raw_syscalls:sys_enter and sys_exit: {source}"
    )]
    Tracepoint {
        /// The name without its system.
        name: String,
        /// The kernel's error.
        source: ProgramError,
    },
    /// The map of targets is full.
    #[error("the BPF shim has no room for another process: record fewer at once")]
    TooManyTargets,
    /// A map operation failed.
    #[error("cannot update the BPF shim's map '{map}': {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// The reason.
        source: MapError,
    },
    /// A system call failed.
    #[error("cannot attach the BPF shim to the event of CPU {cpu}: {step}: {source}")]
    Attach {
        /// The CPU.
        cpu: u32,
        /// The call.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel does not support tail calls from programs with functions.
    #[error(
        "this kernel's BPF cannot walk the frames of this VM: it lacks tail calls from programs with functions (x86: 5.10, arm64: 6.0). Use the kernel module"
    )]
    NoTailCalls,
    /// The program for all rules was refused.
    #[error("{0}")]
    NoWalker(String),
    /// This build of varid contains no program.
    #[error("there is no BPF shim for this processor: its kernels have no BTF")]
    NoProgram,
    /// The built-in object lacks a part.
    #[error("the built-in BPF object has no '{0}'")]
    Missing(&'static str),
}

impl From<EbpfError> for BpfError {
    fn from(error: EbpfError) -> Self {
        match is_denied(&error) {
            true => Self::Denied(Denied::of_this_process()),
            false => Self::Load(error),
        }
    }
}

impl From<ProgramError> for BpfError {
    fn from(error: ProgramError) -> Self {
        match is_denied(&error) {
            true => Self::Denied(Denied::of_this_process()),
            false => Self::Program(error),
        }
    }
}
