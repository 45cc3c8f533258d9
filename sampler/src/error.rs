//! Errors of sampling, with what would fix them.

use std::io;
use thiserror::Error;
use varid_model::Tid;
use varid_symbolizer::elf::PlaceError;

/// An error that prevents sampling or ends it.
#[derive(Debug, Error)]
pub enum SamplerError {
    /// The thread that drains the rings did not start.
    #[error("cannot start a thread: {0}")]
    Drainer(io::Error),
    /// No such event.
    #[error("unknown event '{event}'{} Known here: {known}", suggestion(meant.as_deref()))]
    UnknownEvent {
        /// The name as given.
        event: String,
        /// A known name with a similar spelling.
        meant: Option<String>,
        /// The known names.
        known: String,
    },
    /// No such modifier.
    #[error(
        "unknown modifier '{modifier}' of event '{event}'. Known are {known}; a tracepoint is written SYSTEM:NAME"
    )]
    UnknownModifier {
        /// The event as given.
        event: String,
        /// The letter of the modifier.
        modifier: char,
        /// The known modifiers.
        known: &'static str,
    },
    /// No such PMU.
    #[error("no PMU of this machine is called '{pmu}' (of '{event}'). It has {known}")]
    UnknownPmu {
        /// The event as given.
        event: String,
        /// The PMU's name.
        pmu: String,
        /// The PMUs of the machine.
        known: String,
    },
    /// The text of an event has a syntax error.
    #[error("event '{event}': {what}")]
    EventSyntax {
        /// The event as given.
        event: String,
        /// The error.
        what: String,
    },
    /// The CPU's PMU does not have the event.
    #[error("event '{event}' is one of a PMU that does not count on CPU {cpu}")]
    NotOnCpu {
        /// Name of the event.
        event: String,
        /// The CPU.
        cpu: u32,
    },
    /// The kernel refuses an event.
    #[error("cannot open event '{event}' on CPU {cpu}{}: {source}. {}", thread.map_or(String::new(), |t| format!(" for thread {t}")), advice(source, *member))]
    Open {
        /// Name of the event.
        event: String,
        /// The CPU.
        cpu: u32,
        /// The thread; None if all of the CPU is counted.
        thread: Option<Tid>,
        /// True if the event joins a group.
        member: bool,
        /// The kernel's error.
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
        /// The kernel's error.
        source: io::Error,
    },
    /// An ioctl failed.
    #[error("perf event on CPU {cpu}: {call}: {source}")]
    Control {
        /// The CPU.
        cpu: u32,
        /// The call.
        call: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The shim cannot be used in a container's PID namespace.
    #[error("{0}; run it outside of the container")]
    PidNamespace(&'static str),
    /// The kernel has no probes.
    #[error(
        "event '{event}': this kernel has no PMU '{kind}': it is built without CONFIG_{}_EVENTS, or older than 4.17",
        kind.to_uppercase()
    )]
    NoProbes {
        /// The event as given.
        event: String,
        /// The PMU.
        kind: &'static str,
    },
    /// tracefs has no such dynamic event.
    #[error(
        "tracefs has no probe '{event}': 'perf probe --list' shows those that there are. It is to be mounted at /sys/kernel/tracing; 'uprobe:FILE:FUNCTION' and 'kprobe:FUNCTION' need neither"
    )]
    NoDynamicEvent {
        /// The event as given.
        event: String,
    },
    /// The file of a uprobe cannot be read.
    #[error("event '{event}': {problem}")]
    ProbedFile {
        /// The event as given.
        event: String,
        /// The problem, with the file.
        problem: String,
    },
    /// The place of a uprobe is not in its file.
    #[error("event '{event}': {file}: {source}")]
    ProbedPlace {
        /// The event as given.
        event: String,
        /// The file.
        file: String,
        /// The reason.
        source: PlaceError,
    },
    /// A libjvm cannot be read. The text names it.
    #[error("{0}")]
    UnreadableLibjvm(String),
    /// A libjvm has not the functions where an event is sampled.
    #[error(
        "event '{event}': {file} has no symbol of {}, or not as in OpenJDK 11 to 25. A library without .symtab needs its debug symbols in /usr/lib/debug: the JDK's -dbg package (openjdk-17-dbg), or what 'debuginfod-find debuginfo {file}' prints, as /usr/lib/debug/.build-id/ab/cdef.debug for the build-id abcdef",
        functions.join(", ")
    )]
    NoJvmFunctions {
        /// The event.
        event: &'static str,
        /// The library's path.
        file: String,
        /// The functions that it may be sampled at.
        functions: Vec<&'static str>,
    },
    /// The kernel refuses a probe.
    #[error(
        "the kernel refuses the probe '{event}': {source}. {}",
        probe_advice(source)
    )]
    Probe {
        /// Name of the event.
        event: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Only the BPF shim supports off-CPU time, tracepoints and probes.
    #[error(
        "event '{event}' needs the BPF shim: root, or CAP_BPF and CAP_PERFMON; leave it out (or --off-cpu, --wall), or do not name another source with --shim"
    )]
    NeedsBpf {
        /// Name of the event.
        event: String,
    },
    /// The shim failed.
    #[error(transparent)]
    Shim(#[from] varid_shim::BpfError),
    /// The kernel module samples one event only.
    #[error(
        "the kernel module samples one event at a time, and no groups (a PMU whose interrupt does not arrive would need one): name one, such as '-e cpu-clock', or take another source with --shim"
    )]
    OneEvent,
    /// The kernel module does not support the modifiers.
    #[error(
        "the kernel module does not know the modifiers '{modifiers}' of event '{event}', only u and k: leave them out, or take another source with --shim"
    )]
    ModuleModifiers {
        /// Name of the event.
        event: String,
        /// The letters of the modifiers.
        modifiers: String,
    },
    /// The kernel module failed.
    #[error(transparent)]
    Module(#[from] varid_shim::ModuleError),
    /// The BPF shim's ring cannot be watched by epoll.
    #[error("cannot watch the BPF shim's ring: {0}")]
    Watch(io::Error),
    /// The list of online CPUs cannot be read.
    #[error("cannot read /sys/devices/system/cpu/online: {0}")]
    Cpus(io::Error),
}

impl SamplerError {
    /// Returns true if the kernel does not permit this to the user.
    pub fn is_refusal(&self) -> bool {
        let denied =
            |source: &io::Error| matches!(source.raw_os_error(), Some(libc::EACCES | libc::EPERM));
        matches!(self, Self::Open { source, .. } if denied(source))
    }

    /// Returns true if the CPU does not have the event. Another CPU may have it.
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

/// Explains why the kernel refuses a probe, and what helps.
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

/// Ends a sentence about an unknown name with the similar known name, if there is one.
fn suggestion(meant: Option<&str>) -> String {
    meant.map_or_else(
        || ".".to_owned(),
        |meant| format!(": did you mean '{meant}'?"),
    )
}

/// Explains an error of perf_event_open(2), and what helps. `member`: the event belongs to a group.
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
