//! Drops the privileges that recording does not need.
//!
//! While it records, varid parses memory, files and unwind information of other users' processes. A bug in a parser may let one of them take
//! control of varid. So varid drops the privileges that recording does not need: capabilities and system calls. A command that `varid record`
//! launches is started before and keeps its user's privileges, and so do programs that other verbs start.

mod capabilities;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter;

use anyhow::{Context, bail};

/// The environment variable that selects the mode, by one of the names in [`Mode::named`].
pub const VARIABLE: &str = "VARID_SANDBOX";

/// The privileges that are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// All that recording does not need.
    On,
    /// The same, but the kernel logs other system calls instead of refusing them.
    Log,
    /// Nothing.
    Off,
}

impl Mode {
    fn named(name: &str) -> Option<Self> {
        match name {
            "" | "on" => Some(Self::On),
            "log" => Some(Self::Log),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    fn from_environment() -> anyhow::Result<Self> {
        let Some(value) = std::env::var_os(VARIABLE) else {
            return Ok(Self::On);
        };
        let known = value.to_str().and_then(Self::named);
        known.with_context(|| {
            format!(
                "{VARIABLE} is '{}'; it may be on, log or off",
                value.to_string_lossy()
            )
        })
    }
}

/// Returns a sentence for `varid doctor` about the dropped privileges on this machine, or the reason why they cannot be dropped.
pub fn describe() -> Result<&'static str, String> {
    match Mode::from_environment().map_err(|error| error.to_string())? {
        Mode::Off => return Err(format!("{VARIABLE} is off: it keeps all rights")),
        Mode::Log => {
            return Err(format!(
                "{VARIABLE} is log: other system calls are written to the kernel's log"
            ));
        }
        Mode::On => {}
    }
    if !FILTERS {
        return Err("system calls are not filtered on this processor".to_owned());
    }
    if rustix::thread::secure_computing_mode().is_err() {
        return Err("this kernel does not filter system calls".to_owned());
    }
    Ok(
        "while it records varid has no capabilities and makes no system calls but those that this takes",
    )
}

/// True if the system call filter supports this architecture.
const FILTERS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The recorded events, by the privileges that they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Events for which CAP_PERFMON suffices.
    Events,
    /// With uprobes: the kernel changes the code of processes.
    Uprobes,
}

/// Drops the privileges of this thread and those that it starts. Returns an error if other threads are already running.
pub fn enter(recorded: Recorded) -> anyhow::Result<()> {
    let mode = Mode::from_environment()?;
    if mode == Mode::Off {
        return Ok(());
    }
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        bail!("{threads} threads run already: they would keep all rights");
    }
    match rustix::thread::set_no_new_privs(true) {
        // Linux before 3.5, which does not have filters either.
        Err(rustix::io::Errno::INVAL) => {}
        result => result.context("cannot give up new privileges")?,
    }
    capabilities::reduce(recorded).context("cannot give up capabilities")?;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let Err(error) = filter::install(mode == Mode::Log) {
        tracing::warn!("system calls are not filtered: {error:#}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_a_name() {
        assert_eq!(Mode::named(""), Some(Mode::On));
        assert_eq!(Mode::named("on"), Some(Mode::On));
        assert_eq!(Mode::named("log"), Some(Mode::Log));
        assert_eq!(Mode::named("off"), Some(Mode::Off));
        assert_eq!(Mode::named("no"), None);
    }
}
