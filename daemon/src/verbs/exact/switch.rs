//! Counting is switched on and off while a program runs.

use crate::cli::SwitchArg;
use crate::output;
use anyhow::{Context, bail};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use varid_exact_agent::{Counting, SWITCH, create_switch, read_switch, write_switch};

/// What stands in the names of folders of trees.
pub const TREES: &str = ".trees.";

impl From<SwitchArg> for Counting {
    fn from(switch: SwitchArg) -> Self {
        match switch {
            SwitchArg::On => Self::On,
            SwitchArg::Off => Self::Off,
        }
    }
}

/// The switch of a command's VMs. SIGUSR2 to this process toggles it.
pub struct Switch {
    path: PathBuf,
    signal: Arc<AtomicBool>,
}

impl Switch {
    /// Makes the switch in the folder of trees, and watches for the signal.
    pub fn create(trees: &Path, counting: Counting) -> anyhow::Result<Self> {
        let path = trees.join(SWITCH);
        create_switch(trees, counting)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let signal = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, signal.clone())
            .context("cannot watch for signals")?;
        Ok(Self { path, signal })
    }

    /// Toggles it if a signal has come.
    pub fn follow(&self) {
        if !self.signal.swap(false, Ordering::Relaxed) {
            return;
        }
        let toggled = read_switch(&self.path).and_then(|counting| {
            let counting = counting.toggled();
            write_switch(&self.path, counting).map(|()| counting)
        });
        match toggled {
            Ok(counting) => say(counting),
            Err(error) => tracing::warn!("{}: {error}", self.path.display()),
        }
    }
}

/// Switches the VMs of a command, by the process of one of them.
pub fn switch(pid: u32, counting: Counting) -> anyhow::Result<()> {
    let maps = format!("/proc/{pid}/maps");
    let maps = fs::read(&maps).with_context(|| format!("cannot read {maps}"))?;
    let Some(path) = maps.split(|byte| *byte == b'\n').find_map(path_of_switch) else {
        bail!("process {pid} is not a Java VM that 'varid exact --switch' counts");
    };
    write_switch(&path, counting).with_context(|| format!("cannot write {}", path.display()))?;
    say(counting);
    Ok(())
}

fn say(counting: Counting) {
    output::notice(match counting {
        Counting::On => "varid: counting is on",
        Counting::Off => "varid: counting is off",
    });
}

/// Returns the file that a line of a process's maps names, if it is a switch.
fn path_of_switch(line: &[u8]) -> Option<PathBuf> {
    let start = line.iter().position(|byte| *byte == b'/')?;
    let path = PathBuf::from(OsString::from_vec(line.get(start..)?.to_vec()));
    let folder = path.parent()?.file_name()?.to_string_lossy();
    let is_switch = path.file_name() == Some(OsStr::new(SWITCH)) && folder.contains(TREES);
    is_switch.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_found_by_its_folder() {
        let found = |path: &str| {
            let line = format!("7f2c1000-7f2c2000 rw-s 00000000 08:01 77   {path}");
            path_of_switch(line.as_bytes())
        };
        let switch = "/home/a b/java-1.trees.4711/switch";
        assert_eq!(found(switch), Some(switch.into()));
        for other in ["/home/me/switch", "/a.trees.1/1.0.tree", "[stack]", ""] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
