//! Finds the VMs on this machine, and checks whether their frames can be walked.

use super::checks::State;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use varid_model::{Pid, maps_entries};
use varid_process::reader::{self, PathTarget};
use varid_process::{Images, Process};
use varid_symbolizer::hex;
use varid_tunnel::abi::NAME;
use varid_vm::seam::{LayoutReport, SelfDescription};
use varid_vm::{ManagedProcess, VmKinds};

/// The folders in which systems install ART.
const FOLDERS: [&str; 6] = [
    "/apex/com.android.art/lib",
    "/apex/com.android.art/lib64",
    "/apex/com.android.runtime/lib",
    "/apex/com.android.runtime/lib64",
    "/system/lib",
    "/system/lib64",
];
/// Debian installs it one level below, by architecture.
const MULTIARCH: &str = "/usr/lib";
/// Maximum number of attempts to examine a process.
const MAX_LOOKS: usize = 50;
/// Maximum size of a VM's library.
const MAX_LIBRARY: u64 = 1 << 28;

/// A VM's library, or a process that describes its own VM.
#[derive(Debug, Clone, Serialize)]
pub struct FoundVm {
    /// The library's path, or the process.
    pub place: String,
    /// True if its managed frames can be walked.
    pub usable: bool,
    /// True if its unwind information shows which bytecode runs. Then its methods are found although its build is not known, at the
    /// cost of copying whole stacks.
    pub marked: bool,
    /// True if it describes itself completely, whether its frames are known on this machine or not.
    pub described: bool,
    /// The build, or what is known of it.
    pub what: String,
    /// The library's build-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Processes that run it now.
    pub pids: Vec<u32>,
}

impl FoundVm {
    /// Returns whether it limits varid.
    pub fn state(&self) -> State {
        match (self.usable, self.marked || self.described) {
            (true, _) => State::Ok,
            (false, true) => State::Limits,
            (false, false) => State::No,
        }
    }
}

/// Searches the folders in which systems install VMs, and all readable processes.
pub fn find() -> Vec<FoundVm> {
    let mut libraries: BTreeMap<PathBuf, (PathBuf, Vec<u32>)> = BTreeMap::new();
    for path in installed() {
        let known_as = fs::canonicalize(&path).unwrap_or(path);
        libraries
            .entry(known_as.clone())
            .or_insert((known_as, Vec::new()));
    }
    let mut found = Vec::new();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let mapped = Mapped::of(pid);
        for path in mapped.libraries {
            // The path as the process sees it, which may be in a container.
            let mut readable = OsString::from(format!("/proc/{pid}/root"));
            readable.push(&path);
            libraries
                .entry(path)
                .or_insert((readable.into(), Vec::new()))
                .1
                .push(pid);
        }
        if mapped.describes_itself {
            found.extend(self_described(pid));
        }
        if mapped.tunnel {
            found.push(FoundVm {
                place: format!("process {pid}"),
                usable: true,
                marked: false,
                described: false,
                what: "describes its VM itself, in a tunnel".to_owned(),
                build_id: None,
                pids: vec![pid],
            });
        }
    }
    found.extend(
        libraries
            .into_iter()
            .map(|(path, (readable, pids))| look(&path, &readable, pids)),
    );
    found
}

fn installed() -> Vec<PathBuf> {
    let below = fs::read_dir(MULTIARCH)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("android"));
    FOLDERS
        .iter()
        .map(PathBuf::from)
        .chain(below)
        .flat_map(|folder| vm_libraries(&folder))
        .collect()
}

fn vm_libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| VmKinds::default().is_announced_by(path))
        .collect()
}

/// What a process has mapped of VMs.
#[derive(Default)]
struct Mapped {
    /// Libraries of VMs whose frames may be walked.
    libraries: Vec<PathBuf>,
    /// It has a tunnel.
    tunnel: bool,
    /// It has the library of a VM that may describe itself.
    describes_itself: bool,
}

impl Mapped {
    fn of(pid: u32) -> Self {
        let maps = reader::contents(Pid::new(pid), "maps").unwrap_or_default();
        let mut mapped = Self::default();
        for map in maps_entries(&maps) {
            let path = map.path.strip_suffix(b" (deleted)").unwrap_or(map.path);
            let is_tunnel = path
                .strip_prefix(b"/memfd:")
                .is_some_and(|name| name.starts_with(NAME.as_bytes()));
            mapped.tunnel |= is_tunnel;
            let path = Path::new(OsStr::from_bytes(path));
            let describes_itself = VmKinds::default().describes_itself(path);
            mapped.describes_itself |= describes_itself;
            let is_announced = VmKinds::default().is_announced_by(path) && !describes_itself;
            let is_known = mapped.libraries.iter().any(|known| known == path);
            if is_announced && !is_tunnel && !is_known {
                mapped.libraries.push(path.to_owned());
            }
        }
        mapped
    }
}

/// Describes the VM of a process that may describe itself. None if it does not, or has ended.
fn self_described(pid: u32) -> Option<FoundVm> {
    let mut process = Process::new(Pid::new(pid));
    process.read_maps(&mut Images::default());
    let report = VmKinds::default().examine_process(&process)?;
    let (described, what) = match report.vm {
        SelfDescription::Complete(what) => (true, format!("{what}; described by itself")),
        SelfDescription::NotStarted(why) => (false, why),
        SelfDescription::Refused(why) => (false, format!("not described: {why}")),
    };
    Some(FoundVm {
        place: format!("process {pid}, {}", report.library.display()),
        usable: described && cfg!(any(target_arch = "x86_64", target_arch = "aarch64")),
        marked: false,
        described,
        what,
        build_id: None,
        pids: vec![pid],
    })
}

fn look(path: &Path, readable: &Path, pids: Vec<u32>) -> FoundVm {
    let bytes = read(readable, pids.first().copied());
    let mut vm = FoundVm {
        place: path.display().to_string(),
        usable: false,
        marked: false,
        described: false,
        what: String::new(),
        build_id: None,
        pids,
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => {
            vm.what = format!("cannot be read: {error}");
            return vm;
        }
    };
    let Some(report) = VmKinds::default().examine(path, &bytes) else {
        vm.what = "is not a library of a known VM".to_owned();
        return vm;
    };
    vm.marked = report.is_marked;
    vm.build_id = report.build_id.as_deref().map(hex);
    (vm.usable, vm.what) = match report.layout {
        LayoutReport::Known(how) => (true, how),
        LayoutReport::InLibrary(why) => (true, format!("{why}; {}", found_in_library(&vm.pids))),
        LayoutReport::Unknown(why) => (false, why),
    };
    vm
}

/// Describes a library whose layout was found in the library itself: the result of the check in the first process that runs it, if
/// there is one.
fn found_in_library(pids: &[u32]) -> String {
    let Some(pid) = pids.first() else {
        return "its layout is found in the library, and checked in each process".to_owned();
    };
    let mut managed =
        ManagedProcess::running(Pid::new(*pid), VmKinds::default(), &mut Images::default());
    // The process continues to run meanwhile, so not every attempt gives a result.
    for _ in 0..MAX_LOOKS {
        if !managed.awaits_vm() || managed.find_vm() {
            break;
        }
    }
    match (managed.vm(), &managed.vm_problem) {
        (Some(vm), _) => format!("known by {} in process {pid}", vm.layout_source()),
        (None, Some(problem)) => {
            format!("its layout is found in the library, and not used in process {pid}: {problem}")
        }
        (None, None) => format!(
            "its layout is found in the library; there is nothing yet to check it by in process {pid}"
        ),
    }
}

fn read(path: &Path, pid: Option<u32>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The path may be a pipe or a device in a process's own mount namespace.
    let pid = Pid::new(pid.unwrap_or_else(std::process::id));
    let file = reader::open(pid, path, PathTarget::Regular, None)?;
    file.take(MAX_LIBRARY).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opening a pipe waits for a writer, which may never come.
    #[test]
    fn a_pipe_that_is_called_like_a_vm_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("libart.so");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let vm = look(&pipe, &pipe, vec![1]);
        assert!(
            !vm.usable && vm.what.contains("not a regular file"),
            "{vm:?}"
        );
    }
}
