//! Processes with VMs that tests make up.

use crate::{ManagedProcess, Method, VmFacts, VmKinds};
use varid_model::Pid;
use varid_process::{AddressSpace, Process};
use varid_tunnel::abi::Call;

/// No process has this id: nothing of it can be read.
const NOBODY: Pid = Pid::new(0x3fff_fff0);

impl ManagedProcess {
    /// A process of which only this is known.
    pub fn made_up(space: AddressSpace, facts: Option<&VmFacts>) -> Self {
        let mut process = Process::new(NOBODY);
        process.space = space;
        let kinds = VmKinds::default();
        let mut managed = Self::of(process, kinds);
        managed.vm = facts.and_then(|facts| kinds.recognise(facts));
        managed
    }

    /// The VM that is mapped is one that nobody knows.
    pub fn set_unknown_vm(&mut self) {
        self.vm = None;
        self.set_problem("its build is not known".to_owned());
    }

    /// The VM says again what it has said before.
    pub fn describe_vm_anew(&mut self) {
        if let Some(vm) = self.vm.clone() {
            self.replace_vm(vm.facts());
        }
    }

    /// It runs a program that is the same, at the same addresses.
    pub fn exec_the_same(&mut self) {
        let same = self.fork(self.pid());
        self.exec();
        self.process.space = same.process.space;
        self.vm = same.vm;
    }

    /// What its remapped addresses stand for.
    pub fn set_remapped(&mut self, entries: Vec<Call>) {
        if let Some(vm) = self.vm.clone() {
            self.vm = Some(crate::shadow::with_remapped(
                vm.facts(),
                self.process.pid,
                entries,
            ));
        }
    }

    /// What a method pointer stands for from now on.
    pub fn set_method(&mut self, pointer: u64, method: Method) {
        self.methods.insert(pointer, method);
    }
}
