//! Implements the parts of [`Vm`] that follow from a description alone.

use super::{Description, LayoutSource};
use crate::seam::{Agent, CodeKind, Refreshed, Vm, VmAbout, VmCode};
use std::fmt;
use std::rc::Rc;
use varid_model::{Address, Pid};
use varid_process::Process;
use varid_tunnel::PublishedBytecode;

/// A VM with a description, from which [`VmAbout`] and [`VmCode`] are implemented.
pub trait DescribedVm: fmt::Debug {
    /// The description.
    fn description(&self) -> &Description;

    /// Returns this VM with a new description, keeping the data that is still valid. None if the description is of another kind.
    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>>;
}

impl<V: DescribedVm> VmAbout for V {
    fn title(&self) -> String {
        self.description().layout_source.vm()
    }

    fn layout_source(&self) -> String {
        self.description().layout_source.to_string()
    }

    fn published(&self) -> &[PublishedBytecode] {
        &self.description().codes
    }

    fn agent(&self, pid: Pid) -> Agent {
        let description = self.description();
        match description.control(pid) {
            Some(control) => Agent::Controlled {
                control,
                calls: description.calls(pid),
            },
            None if description.layout_source == LayoutSource::Tunnel => Agent::Uncontrolled,
            None => Agent::Absent,
        }
    }
}

impl<V: DescribedVm> VmCode for V {
    #[inline]
    fn code_at(&self, address: Address) -> Option<CodeKind> {
        self.description().code_at(address.get())
    }

    fn has_code_in(&self, start: Address, end: Address) -> bool {
        self.description().has_code_in(start.get(), end.get())
    }

    fn is_on_native_stack(&self) -> bool {
        self.description().is_on_native_stack()
    }

    fn is_at_sp(&self, address: Address) -> bool {
        self.description().is_at_sp(address.get())
    }
}

/// Reads the description again if it has changed. `generation`: the tunnel's generation, if it has just been read.
pub fn refreshed(vm: &impl DescribedVm, process: &Process, generation: Option<u32>) -> Refreshed {
    let before = vm.description();
    if !before.has_changed(process.pid, generation) {
        return Refreshed::Same;
    }
    match before.reread(process.pid) {
        Some(now) => described_as(vm, &now.with_states(&process.space)),
        // The tunnel is being written.
        None => Refreshed::Same,
    }
}

/// Replaces the description of a VM.
pub(crate) fn described_as(vm: &impl DescribedVm, now: &Description) -> Refreshed {
    match vm.with_description(now) {
        Some(renewed) => Refreshed::Vm {
            vm: renewed,
            same_methods: now.differs_in_traces_only(vm.description()),
        },
        None => Refreshed::Other,
    }
}
