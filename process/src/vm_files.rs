//! Opens the files that a VM shares with varid.

use crate::reader;
use varid_model::Pid;
use varid_tunnel::abi::VmFile;
use varid_tunnel::calls::CallsFile;
use varid_tunnel::control::ControlPage;
use varid_tunnel::file::Kind;

/// Opens the file in which a VM counts calls.
pub fn open_calls(pid: Pid, calls: &VmFile) -> Result<CallsFile, varid_tunnel::TunnelError> {
    let file = reader::open_of_vm(pid, calls, Kind::Calls)?;
    Ok(CallsFile::of(file, pid))
}

/// Opens and locks the control page of a VM.
pub fn take_control(pid: Pid, page: &VmFile) -> Result<ControlPage, varid_tunnel::TunnelError> {
    let file = reader::open_of_vm(pid, page, Kind::Control)?;
    ControlPage::of(file, pid, page)
}
