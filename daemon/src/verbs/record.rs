//! `varid record`: a session in the foreground.

use super::config::refused;
use super::launch::Held;
use crate::cli::{self, RecordArgs};
use crate::new_session::{NewSession, SessionFolder};
use crate::output;
use crate::priority;
use crate::sandbox::{self, Recorded};
use crate::sessions;
use anyhow::Context;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use varid_recording::SessionReader;
use varid_sampler::event::syntax::has_uprobe;
use varid_session::request::{Configured, TargetSpec};
use varid_session::{Session, SessionControl, SessionError};
use varid_vm::VmKinds;

/// Set if standard output is a connection whose end must end the recording.
pub const TIED: &str = "VARID_TIED";

/// The note for a recording with compressed records.
pub const COMPRESSED: &str = "its records are compressed: varid and perf 5.2 or later read them, samply and most other readers show nothing; 'varid compress --undo' makes them plain";

/// The message for a recording without a target.
const NOTHING: &str = "nothing to profile: give a command, or --app, --service, --pid or --all (or a --config file that names apps, services or all)";

/// A shell's exit code for a command that a signal has ended is this plus the signal's number.
const SIGNAL: u8 = 128;

/// Records until the command ends, the duration is over, or a signal arrives. The exit code is the command's if it ended by itself
/// before a signal ended the recording, else 0.
pub fn run(args: &RecordArgs, vms: VmKinds) -> anyhow::Result<ExitCode> {
    let command = !args.command.is_empty();
    let named = &args.session.target;
    if command && !(named.apps.is_empty() && named.services.is_empty()) {
        cli::bad_usage(
            "record",
            "an app or service is recorded whenever it runs: with a command name no other process, or --all or --pid",
        );
    }
    let configured = match args.request().read() {
        Ok(configured) => configured,
        Err(error) => return Ok(refused(&error)),
    };
    if command {
        return record_command(args, configured, vms);
    }
    let Some(target) = configured.target() else {
        cli::bad_usage("record", NOTHING)
    };
    record(target, configured, None, vms).map(|_| ExitCode::SUCCESS)
}

/// Launches and records the command, and exits with its status.
fn record_command(
    args: &RecordArgs,
    configured: Configured,
    vms: VmKinds,
) -> anyhow::Result<ExitCode> {
    let mut held = Held::start(&args.command)?;
    let arguments = args.command.iter().map(|one| one.to_string_lossy());
    let line = arguments.collect::<Vec<_>>().join(" ");
    let own = TargetSpec::Command(varid_model::Pid::new(held.child.id()), line);
    let target = configured.target().unwrap_or(own);
    let result = record(target, configured, Some(&mut held), vms);
    let full =
        |error: &anyhow::Error| matches!(error.downcast_ref(), Some(SessionError::Full { .. }));
    if result.as_ref().is_err_and(full) {
        // The recording has ended normally, and the command has not failed.
        tracing::info!("the command runs on");
        let _ = held.child.wait();
    }
    let status = end(&mut held, result.is_err());
    match (result?, status) {
        (Ended::Target, Some(status)) => Ok(code(status)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the exit code for the command's status. A failure is also reported.
pub fn code(status: ExitStatus) -> ExitCode {
    if status.success() {
        return ExitCode::SUCCESS;
    }
    tracing::warn!("the command failed: {status}");
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    let exited = status.code().and_then(|code| u8::try_from(code).ok());
    match (exited, signal) {
        (Some(code), _) => ExitCode::from(code),
        (None, Some(signal)) => ExitCode::from(SIGNAL.saturating_add(signal)),
        (None, None) => ExitCode::FAILURE,
    }
}

/// Returns the privileges that the events need.
fn recorded(events: &[String]) -> Recorded {
    match events.iter().any(|text| has_uprobe(text)) {
        true => Recorded::Uprobes,
        false => Recorded::Events,
    }
}

/// The reason for the end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// No process is left to profile, or the duration is over.
    Target,
    /// A signal.
    Request,
}

/// A session that is sampling, and the conditions for its end.
#[derive(Debug)]
struct Prepared {
    session: Session,
    control: Arc<SessionControl>,
    output: SessionOutput,
    /// Process id of the command whose end ends the recording of other processes.
    watched: Option<u32>,
    /// True if a command may use the terminal, too. No progress line is drawn then.
    shares_terminal: bool,
}

/// The session's output, which is reported when it has ended.
#[derive(Debug)]
struct SessionOutput {
    folder: PathBuf,
    is_compressed: bool,
}

/// A session that has ended.
#[derive(Debug)]
struct Finished {
    result: Result<PathBuf, SessionError>,
    samples: u64,
    ended: Ended,
    output: SessionOutput,
}

/// Records a target. `held`: the command that was launched for the recording.
fn record(
    target: TargetSpec,
    configured: Configured,
    held: Option<&mut Held>,
    vms: VmKinds,
) -> anyhow::Result<Ended> {
    prepare(target, configured, held, vms)?.run().finish()
}

/// Drops privileges, starts the session, and releases the command.
fn prepare(
    target: TargetSpec,
    configured: Configured,
    held: Option<&mut Held>,
    vms: VmKinds,
) -> anyhow::Result<Prepared> {
    priority::raise();
    sandbox::enter(recorded(&configured.config.settings.events))?;
    let control = Arc::new(SessionControl::default());
    watch_signals(&control.stop)?;
    let folder = SessionFolder::of(&configured.request, &target).with_context(|| {
        let folder = crate::paths::sessions();
        let folder = folder.display();
        format!("cannot create a session in {folder}; -o names another place")
    })?;
    let output = SessionOutput {
        folder: folder.path.clone(),
        is_compressed: configured.request.output.compress,
    };
    let watched = match &target {
        TargetSpec::Command(..) => None,
        _ => held.as_ref().map(|held| held.child.id()),
    };
    let records_all = target == TargetSpec::All;
    let shares_terminal = held.is_some();
    let session = NewSession {
        target,
        configured,
        folder,
        vms,
    };
    let session = session.begin(control.clone(), |session| {
        let program = held.as_ref().map(|held| held.program.as_path());
        let environment = session.prepare_command(program)?;
        held.map_or(Ok(()), |held| held.release(&environment))
    })?;
    if records_all && watched.is_none() {
        tracing::info!("profiling everything: Ctrl-C ends it");
    }
    Ok(Prepared {
        session,
        control,
        output,
        watched,
        shares_terminal,
    })
}

/// Sets `stop` when a signal arrives. If [`TIED`] is set, also when the reader of standard output is gone.
fn watch_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot watch for signals")?;
    }
    if std::env::var_os(TIED).is_some() {
        end_with_the_reader(stop.clone());
    }
    Ok(())
}

impl Prepared {
    /// Records until the session ends.
    fn run(self) -> Finished {
        let control = self.control;
        let command_ended = Arc::new(AtomicBool::new(false));
        if let Some(command) = self.watched {
            end_with(command, command_ended.clone(), control.stop.clone());
        }
        let over = Arc::new(AtomicBool::new(false));
        let progress = (!self.shares_terminal)
            .then(|| show_progress(control.clone(), over.clone()))
            .flatten();
        let result = self.session.run();
        over.store(true, Ordering::Relaxed);
        // It only draws, so an error of the join does no harm.
        let _ = progress.map(JoinHandle::join);
        let is_stopped = control.stop.load(Ordering::Relaxed);
        Finished {
            result,
            samples: control.samples.load(Ordering::Relaxed),
            ended: match is_stopped && !command_ended.load(Ordering::Relaxed) {
                true => Ended::Request,
                false => Ended::Target,
            },
            output: self.output,
        }
    }
}

impl Finished {
    /// Notes the session as the last one, and reports its folder.
    fn finish(self) -> anyhow::Result<Ended> {
        // A session that has filled the disk is also complete.
        if matches!(self.result, Ok(_) | Err(SessionError::Full { .. })) {
            let folder = &self.output.folder;
            let is_last = sessions::set_last(folder);
            if let Err(error) = &is_last {
                tracing::warn!(
                    "cannot note that this is the last session: {error}; name it with -i"
                );
            }
            // What came when the disk was full already is lost, and counted so.
            let kept = self.result.is_err().then(|| SessionReader::open(folder));
            let samples = match kept {
                Some(Ok(session)) => session.manifest().counts.samples,
                Some(Err(_)) | None => self.samples,
            };
            let unit = if samples == 1 { "sample" } else { "samples" };
            output::notice(&format!("varid: {samples} {unit} in {}", folder.display()));
            if self.output.is_compressed {
                output::notice(&format!("varid: {COMPRESSED}"));
            }
            // A board's build has no reports.
            #[cfg(feature = "host")]
            output::notice(&format!(
                "varid: {} shows it",
                report_command(is_last.is_ok(), folder)
            ));
        }
        self.result?;
        Ok(self.ended)
    }
}

/// Returns the command that shows a session, quoted for a shell.
#[cfg(feature = "host")]
pub fn report_command(is_last: bool, session: &std::path::Path) -> String {
    let name = session.to_string_lossy();
    match is_last {
        true => "'varid report'".to_owned(),
        false => format!("varid report -i {}", varid_report::shell_word(&name)),
    }
}

/// Ends the recording of other processes when the command has ended. The command is not reaped here.
fn end_with(command: u32, ended: Arc<AtomicBool>, stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let pid = Pid::from_raw(command.cast_signed());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(pid), flags) == Err(Errno::EINTR) {}
        ended.store(true, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    });
}

/// Ends the recording when the reader of standard output is gone. A closing terminal sends a signal, but a connection that carries
/// the output away from this machine does not.
fn end_with_the_reader(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let stdout = std::io::stdout();
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        // The only possible event is that the reader is gone. A signal may interrupt the wait.
        while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
        stop.store(true, Ordering::Relaxed);
    });
}

/// Draws a progress line if standard error is a terminal.
#[cfg(feature = "host")]
fn show_progress(control: Arc<SessionControl>, over: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    use indicatif::{ProgressBar, ProgressStyle};
    let bar = ProgressBar::new_spinner();
    if bar.is_hidden() {
        return None;
    }
    bar.set_style(ProgressStyle::default_spinner());
    Some(std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            bar.set_message(format!(
                "{} samples, {} processes, {} lost",
                control.samples.load(Ordering::Relaxed),
                control.processes.load(Ordering::Relaxed),
                control.lost.load(Ordering::Relaxed)
            ));
            bar.tick();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        bar.finish_and_clear();
    }))
}

/// Left out to make a board's build smaller.
#[cfg(not(feature = "host"))]
fn show_progress(_: Arc<SessionControl>, _: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    None
}

/// Ends the command with its recording, as perf does. Returns its status if it had ended by itself.
fn end(held: &mut Held, failed: bool) -> Option<ExitStatus> {
    let running = matches!(held.child.try_wait(), Ok(None));
    if running {
        let signal = if failed {
            Signal::SIGKILL
        } else {
            Signal::SIGTERM
        };
        // It may have ended meanwhile.
        let _ = kill(Pid::from_raw(held.child.id() as i32), signal);
    }
    held.child.wait().ok().filter(|_| !running)
}
