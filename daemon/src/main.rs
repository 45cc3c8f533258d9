//! The program varid with its default kinds of VM.

use std::process::ExitCode;
use varid_vm::VmKinds;

fn main() -> ExitCode {
    varid::main(VmKinds::default())
}
