//! varid with one more kind of VM.

use std::process::ExitCode;
use varid_stackvm::StackVm;
use varid_vm::VmKinds;
use varid_vm::described::Described;

fn main() -> ExitCode {
    varid::main(VmKinds(&[&Described(&[&StackVm])]))
}
