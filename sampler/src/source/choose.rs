//! Chooses the source: the requested one, or the best one that works on this machine.

use super::bpf::Bpf;
use super::module::{Module, only_event};
use super::stack_copy::StackCopy;
use super::{SamplerError, Source};
use crate::event::Group;
use crate::groups::indexed_events;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use varid_shim::{Module as Device, Shim};

/// Where frames are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShimKind {
    /// In the kernel, by a BPF program.
    Bpf,
    /// In the kernel, by the module varid.ko.
    Module,
    /// Later, over perf's copy of the stack.
    Perf,
}

/// Loads the requested source, or the best one that works here and can sample these events. `ring_pages`: pages of each CPU's rings,
/// or 0 to write the records to the rings of the kernel's own samples, which are kept.
pub fn choose(
    requested: Option<ShimKind>,
    groups: &[Group],
    ring_pages: usize,
) -> Result<Source, SamplerError> {
    const NAMESPACE: &str = "the shim in the kernel knows processes by the ids of the initial pid namespace, and varid runs in another";
    let fall_back = |why: &dyn Display, would_help: &str| {
        tracing::warn!("{why}. Falling back to perf's stack copies: {would_help}");
        Ok(Source::StackCopy(StackCopy::default()))
    };
    match requested {
        Some(ShimKind::Perf) => Ok(Source::StackCopy(StackCopy::default())),
        Some(_) if !in_initial_pid_namespace() => Err(SamplerError::PidNamespace(NAMESPACE)),
        Some(ShimKind::Bpf) => bpf(groups, ring_pages),
        Some(ShimKind::Module) => module(),
        None if !in_initial_pid_namespace() => {
            fall_back(&NAMESPACE, "run varid outside of the container for more")
        }
        None => bpf(groups, ring_pages).or_else(|refused| {
            const COUNTED: &str = "frames that a copy does not hold are counted";
            match (module(), only_event(groups)) {
                (Ok(module), Ok(_)) => {
                    tracing::info!("{refused}. The kernel module takes its place");
                    Ok(module)
                }
                (Ok(_), Err(unable)) => {
                    fall_back(&format!("{refused}. Instead, {unable}"), COUNTED)
                }
                (Err(_), _) => fall_back(&refused, COUNTED),
            }
        }),
    }
}

fn bpf(groups: &[Group], ring_pages: usize) -> Result<Source, SamplerError> {
    // The pages are shared by the rings of all events. Events of groups that are read have no ring.
    let rings = indexed_events(groups)
        .filter(|one| !one.group.reads)
        .count();
    let ring_pages = match ring_pages.checked_div(rings) {
        Some(part) => ring_pages.min(part.max(1)),
        None => 0,
    };
    Ok(Source::Bpf(Box::new(Bpf::new(
        Shim::load(ring_pages)?,
        ring_pages,
    )?)))
}

fn module() -> Result<Source, SamplerError> {
    Ok(Source::Module(Box::new(Module::new(Device::open()?))))
}

/// Returns true if this process's ids are those of the initial PID namespace.
fn in_initial_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of the kernel's proc_ns.h.
    const INITIAL: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace.as_os_str() == INITIAL)
}
