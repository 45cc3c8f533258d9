//! Which source is used: the one that was asked for, else the best that works here.

use super::bpf::Bpf;
use super::stack_copy::StackCopy;
use super::{SamplerError, Source};
use varid_shim::Shim;

/// Where frames are walked.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ShimKind {
    /// In the kernel, by a BPF program.
    Bpf,
    /// Later, over perf's copy of the stack.
    Perf,
}

/// Loads the source that was asked for, or the best that can be had.
pub fn choose(wanted: Option<ShimKind>) -> Result<Source, SamplerError> {
    let stack_copy = || Source::StackCopy(StackCopy::default());
    if wanted == Some(ShimKind::Perf) {
        return Ok(stack_copy());
    }
    if !in_initial_pid_namespace() {
        const WHY: &str = "the BPF shim knows processes by the ids of the initial pid namespace, and varid runs in another";
        if wanted == Some(ShimKind::Bpf) {
            return Err(SamplerError::PidNamespace(WHY));
        }
        tracing::warn!(
            "{WHY}. Falling back to perf's stack copies: run varid outside of the container for more"
        );
        return Ok(stack_copy());
    }
    match Shim::load() {
        Ok(shim) => Ok(Source::Bpf(Box::new(Bpf::new(shim)))),
        Err(error) if wanted == Some(ShimKind::Bpf) => Err(error.into()),
        Err(error) => {
            tracing::warn!(
                "{error}. Falling back to perf's stack copies: frames that a copy does not hold are counted"
            );
            Ok(stack_copy())
        }
    }
}

/// Whether the ids of processes mean to the kernel what they mean here.
fn in_initial_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of the kernel's proc_ns.h.
    const INITIAL: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace.as_os_str() == INITIAL)
}
