//! The program varid, with the kinds of VM that varid knows.

use std::process::ExitCode;
use varid_vm::VmKinds;

fn main() -> ExitCode {
    varid::main(VmKinds::default())
}
