//! Processes with VMs that tests make up.

use crate::kinds::DESCRIBED;
use crate::seam::Refreshed;
use crate::{Description, ManagedProcess, Method, VmKinds};
use varid_model::Pid;
use varid_process::{AddressSpace, Process};
use varid_tunnel::abi::Call;

/// No process has this id: nothing of it can be read.
const NOBODY: Pid = Pid::new(0x3fff_fff0);

impl ManagedProcess {
    /// A process of which only this is known.
    pub fn made_up(space: AddressSpace, description: Option<&Description>) -> Self {
        let mut process = Process::new(NOBODY);
        process.space = space;
        let mut managed = Self::of(process, VmKinds::default());
        managed.vm = description.and_then(|description| DESCRIBED.recognise(description));
        managed
    }

    /// The VM that is mapped is one that nobody knows.
    pub fn set_unknown_vm(&mut self) {
        self.vm = None;
        self.set_problem("its build is not known".to_owned());
    }

    /// The VM that is mapped has not started yet.
    pub fn set_starting_vm(&mut self) {
        self.vm = None;
        self.is_vm_starting = true;
    }

    /// The VM describes itself anew.
    pub fn describe_vm_anew(&mut self, description: &Description) {
        if let Some(vm) = DESCRIBED.recognise(description) {
            let same_methods = false;
            self.replace_vm(Refreshed::Vm { vm, same_methods });
        }
    }

    /// It runs a program that is the same, at the same addresses.
    pub fn exec_the_same(&mut self) {
        let same = self.fork(self.pid());
        self.exec();
        self.process.space = same.process.space;
        self.vm = same.vm;
    }

    /// What the remapped addresses of a VM with this description stand for.
    pub fn set_remapped(&mut self, description: &Description, entries: Vec<Call>) {
        let pid = self.process.pid;
        self.vm = Some(crate::shadow::with_remapped(description, pid, entries));
    }

    /// What a method pointer stands for from now on.
    pub fn set_method(&mut self, pointer: u64, method: Method) {
        self.methods.insert(pointer, method);
    }
}
