//! Why sampling cannot start or go on, and what would help.

use std::io;
use thiserror::Error;
use varid_model::Tid;
use varid_symbolizer::elf::PlaceError;

/// Why sampling cannot start or go on.
#[derive(Debug, Error)]
pub enum SamplerError {
    /// The thread that looks after the rings.
    #[error("cannot start a thread: {0}")]
    Drainer(io::Error),
    /// No such event.
    #[error("unknown event '{event}'{} Known here: {known}", suggestion(meant.as_deref()))]
    UnknownEvent {
        /// As it was given.
        event: String,
        /// The known name that is nearly spelled so.
        meant: Option<String>,
        /// What would have been understood.
        known: String,
    },
    /// No such modifier.
    #[error(
        "unknown modifier '{modifier}' of event '{event}'. Known are {known}; a tracepoint is written SYSTEM:NAME"
    )]
    UnknownModifier {
        /// As it was given.
        event: String,
        /// The letter.
        modifier: char,
        /// What would have been understood.
        known: &'static str,
    },
    /// No such PMU.
    #[error("no PMU of this machine is called '{pmu}' (of '{event}'). It has {known}")]
    UnknownPmu {
        /// As it was given.
        event: String,
        /// The PMU's name.
        pmu: String,
        /// Those of the machine.
        known: String,
    },
    /// An event that is not written as events are.
    #[error("event '{event}': {what}")]
    EventSyntax {
        /// As it was given.
        event: String,
        /// What is wrong with it.
        what: String,
    },
    /// No PMU of the CPU has the event.
    #[error("event '{event}' is one of a PMU that does not count on CPU {cpu}")]
    NotOnCpu {
        /// Its name.
        event: String,
        /// The CPU.
        cpu: u32,
    },
    /// The kernel refuses an event.
    #[error("cannot open event '{event}' on CPU {cpu}{}: {source}. {}", thread.map_or(String::new(), |t| format!(" for thread {t}")), advice(source, *member))]
    Open {
        /// Its name.
        event: String,
        /// The CPU.
        cpu: u32,
        /// The thread, or none: all of the CPU.
        thread: Option<Tid>,
        /// It was to join a group.
        member: bool,
        /// Why.
        source: io::Error,
    },
    /// A ring cannot be mapped.
    #[error(
        "cannot map a ring of {pages} pages on CPU {cpu}: {source}. Raise /proc/sys/kernel/perf_event_mlock_kb or the memlock limit"
    )]
    Map {
        /// The CPU.
        cpu: u32,
        /// The smallest size that was tried.
        pages: usize,
        /// Why.
        source: io::Error,
    },
    /// An ioctl failed.
    #[error("perf event on CPU {cpu}: {call}: {source}")]
    Control {
        /// The CPU.
        cpu: u32,
        /// The call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The shim cannot be used in a container.
    #[error("{0}; run it outside of the container")]
    PidNamespace(&'static str),
    /// The kernel has no probes.
    #[error(
        "event '{event}': this kernel has no PMU '{kind}': it is built without CONFIG_{}_EVENTS, or older than 4.17",
        kind.to_uppercase()
    )]
    NoProbes {
        /// As it was given.
        event: String,
        /// The PMU.
        kind: &'static str,
    },
    /// tracefs has no such dynamic event.
    #[error(
        "tracefs has no probe '{event}': 'perf probe --list' shows those that there are. It is to be mounted at /sys/kernel/tracing; 'uprobe:FILE:FUNCTION' and 'kprobe:FUNCTION' need neither"
    )]
    NoDynamicEvent {
        /// As it was given.
        event: String,
    },
    /// The file of a uprobe cannot be read.
    #[error("event '{event}': {problem}")]
    ProbedFile {
        /// As it was given.
        event: String,
        /// Why, with the file.
        problem: String,
    },
    /// The file of a uprobe has no such place.
    #[error("event '{event}': {file}: {source}")]
    ProbedPlace {
        /// As it was given.
        event: String,
        /// The file.
        file: String,
        /// Why.
        source: PlaceError,
    },
    /// The kernel refuses a probe.
    #[error(
        "the kernel refuses the probe '{event}': {source}. {}",
        probe_advice(source)
    )]
    Probe {
        /// Its name.
        event: String,
        /// Why.
        source: io::Error,
    },
    /// Only the BPF shim knows when threads do not run, and has tracepoints and probes.
    #[error(
        "event '{event}' needs the BPF shim: root, or CAP_BPF and CAP_PERFMON; leave it out (or --off-cpu, --wall), or do not name another source with --shim"
    )]
    NeedsBpf {
        /// Its name.
        event: String,
    },
    /// The shim failed.
    #[error(transparent)]
    Shim(#[from] varid_shim::BpfError),
    /// The kernel module has one event.
    #[error(
        "the kernel module samples one event at a time, and no groups (a PMU whose interrupt does not arrive would need one): name one, such as '-e cpu-clock', or take another source with --shim"
    )]
    OneEvent,
    /// The kernel module cannot do what the modifiers say.
    #[error(
        "the kernel module does not know the modifiers '{modifiers}' of event '{event}', only u and k: leave them out, or take another source with --shim"
    )]
    ModuleModifiers {
        /// Its name.
        event: String,
        /// Their letters.
        modifiers: String,
    },
    /// The kernel module failed.
    #[error(transparent)]
    Module(#[from] varid_shim::ModuleError),
    /// No epoll for the BPF shim's ring.
    #[error("cannot watch the BPF shim's ring: {0}")]
    Watch(io::Error),
    /// The machine does not say which CPUs it has.
    #[error("cannot read /sys/devices/system/cpu/online: {0}")]
    Cpus(io::Error),
}

impl SamplerError {
    /// The kernel does not allow it to this user.
    pub fn is_refusal(&self) -> bool {
        let denied =
            |source: &io::Error| matches!(source.raw_os_error(), Some(libc::EACCES | libc::EPERM));
        matches!(self, Self::Open { source, .. } if denied(source))
    }

    /// The event is simply not there: another CPU may have it.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NotOnCpu { .. } => true,
            Self::Open { source, .. } => {
                matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
            }
            _ => false,
        }
    }
}

/// What it means that the kernel refuses a probe, and what helps.
fn probe_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "The kernel wants CAP_SYS_ADMIN for it, which the daemon gives up: as root, 'varid record' has it, and so has a place that 'perf probe' has given a name"
        }
        Some(libc::ENOENT) => {
            "The kernel has no such function, or the file is in another mount namespace"
        }
        Some(libc::EINVAL) => {
            "There is no code, no instruction begins there, or the kernel does not let it be probed (/sys/kernel/debug/kprobes/blacklist)"
        }
        Some(libc::EADDRNOTAVAIL) => {
            "Several functions of the kernel have this name (/proc/kallsyms)"
        }
        _ => "The kernel may not be able to replace this instruction: take another one",
    }
}

/// The end of a sentence about an unknown name: the one that is nearly spelled so.
fn suggestion(meant: Option<&str>) -> String {
    meant.map_or_else(
        || ".".to_owned(),
        |meant| format!(": did you mean '{meant}'?"),
    )
}

/// What an error of perf_event_open(2) means, and what helps. `member`: of a group.
fn advice(error: &io::Error, member: bool) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "Run as root or with CAP_PERFMON, or lower /proc/sys/kernel/perf_event_paranoid; 'varid doctor' says what each needs"
        }
        Some(libc::ENOENT | libc::ENODEV) => {
            "This machine does not count it; 'varid events' lists what it does, cpu-clock always works"
        }
        Some(libc::EOPNOTSUPP) => {
            "The PMU cannot interrupt for it, or not as exactly as 'p' asks; it can be read with the samples of another event: '{cpu-clock,EVENT}:S'"
        }
        Some(libc::EBUSY) => {
            "Its counter is taken, by another profiler, a pinned event or the kernel's NMI watchdog"
        }
        Some(libc::EINVAL) if member => {
            "The PMU cannot count the group together: it has more events than counters, or two that need the same one; leave some out, or write them without braces and they take turns. Groups that are read (':S') by '--shim perf' need Linux 6.13"
        }
        Some(libc::EINVAL) => {
            "The PMU has no such event, or not with these modifiers or this rate; 'varid events' lists what it has"
        }
        Some(libc::EMFILE) => "Raise the limit of open files (ulimit -n)",
        _ => "'varid doctor' says what this machine offers",
    }
}
