//! What does a VM answer that follows from its description alone?

use super::{Description, KnownBy};
use crate::seam::{Agent, CodeKind, Refreshed, Vm, VmAbout, VmCode};
use std::fmt;
use std::rc::Rc;
use varid_model::{Address, Pid};
use varid_process::Process;
use varid_tunnel::PublishedBytecode;

/// A VM that is described: it answers by its description what [`VmAbout`] and [`VmCode`] ask.
pub trait DescribedVm: fmt::Debug {
    /// The description.
    fn description(&self) -> &Description;

    /// The same VM as it describes itself now, with what was read from the process as far as it still holds. None: it is no VM of its kind
    /// any more.
    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>>;
}

impl<V: DescribedVm> VmAbout for V {
    fn title(&self) -> String {
        self.description().known_by.vm()
    }

    fn known_by(&self) -> String {
        self.description().known_by.to_string()
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
            None if description.known_by == KnownBy::Tunnel => Agent::Uncontrolled,
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

    fn is_at_sp(&self, address: Address) -> bool {
        self.description().is_at_sp(address.get())
    }
}

/// What a described VM says of itself after a batch. `generation`: how often its tunnel has changed, if that has just been read.
pub fn refreshed(vm: &impl DescribedVm, process: &Process, generation: Option<u32>) -> Refreshed {
    let before = vm.description();
    if !before.has_changed(process.pid, generation) {
        return Refreshed::Same;
    }
    match before.reread(process.pid) {
        Some(now) => described_as(vm, &now.with_states(&process.space)),
        // It is being written.
        None => Refreshed::Same,
    }
}

/// The same VM as it is described now.
pub(crate) fn described_as(vm: &impl DescribedVm, now: &Description) -> Refreshed {
    match vm.with_description(now) {
        Some(renewed) => Refreshed::Vm {
            vm: renewed,
            same_methods: now.differs_in_traces_only(vm.description()),
        },
        None => Refreshed::Other,
    }
}
