//! Processes with VMs that tests make up.

use crate::remapped::Remapped;
use crate::{ManagedProcess, Method, Vm};
use std::rc::Rc;
use varid_process::{AddressSpace, Process};
use varid_tunnel::abi::Call;

/// No process has this id: nothing of it can be read.
const NOBODY: u32 = 0x3fff_fff0;

impl ManagedProcess {
    /// A process of which only this is known.
    pub fn made_up(space: AddressSpace, vm: Option<Vm>) -> Self {
        let mut process = Process::new(NOBODY);
        process.space = space;
        Self {
            vm: vm.map(Rc::new),
            ..Self::of(process)
        }
    }

    /// The VM that is mapped is one that nobody knows.
    pub fn set_unknown_vm(&mut self) {
        self.vm = None;
        self.set_problem("its build is not known".to_owned());
    }

    /// The VM says again what it has said before.
    pub fn describe_vm_anew(&mut self) {
        if let Some(vm) = self.vm.clone() {
            self.replace_vm(Vm::clone(&vm));
        }
    }

    /// What its remapped addresses stand for.
    pub fn set_remapped(&mut self, entries: Vec<Call>) {
        self.remapped = Remapped::made_up(entries);
    }

    /// What a method pointer stands for from now on.
    pub fn set_method(&mut self, pointer: u64, method: Method) {
        self.methods.insert(pointer, method);
    }
}
