//! How are the files opened that a VM shares with varid?

use crate::reader;
use varid_model::Pid;
use varid_tunnel::abi::VmFile;
use varid_tunnel::calls::CallsFile;
use varid_tunnel::control::ControlPage;
use varid_tunnel::file::Kind;

/// The file in which a VM counts calls.
pub fn open_calls(pid: Pid, calls: &VmFile) -> Result<CallsFile, varid_tunnel::TunnelError> {
    let file = reader::open_of_vm(pid, calls, Kind::Calls)?;
    Ok(CallsFile::of(file, pid))
}

/// The page on which a VM is told what to do, under our lock.
pub fn take_control(pid: Pid, page: &VmFile) -> Result<ControlPage, varid_tunnel::TunnelError> {
    let file = reader::open_of_vm(pid, page, Kind::Control)?;
    ControlPage::of(file, pid, page)
}
