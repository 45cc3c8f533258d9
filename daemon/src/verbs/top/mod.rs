//! `varid top`: shows sessions while they are recorded.
//!
//! It only reads a session's folder: everyone who may read it can watch it, and the recorder has no additional work.
//!
//! - [`sources`]: the running sessions and their contents; [`recorder`]: the session that top records itself;
//! - [`terminal`]: sets up and restores the terminal. The screen and the keys are in `varid_top`.

mod recorder;
mod sources;
mod terminal;

use super::config::refused;
use crate::cli::TopArgs;
use crate::output;
use crate::sessions;
use anyhow::{Context, bail};
use clap::ArgMatches;
use recorder::Recorder;
use sources::Sources;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use terminal::Screen;
use varid_process::clock;
use varid_top::ratatui::crossterm::event::{Event, KeyEventKind};
use varid_top::{Choice, Outcome, Snapshot, State, draw, lines_of_text, page, press};

/// Maximum wait for a key. In between, signals and the recorder are checked.
const TURN: Duration = Duration::from_millis(100);
/// How long records are read before keys are checked.
const SLICE: Duration = Duration::from_millis(50);
/// How long top waits for the first samples of its own recording, which has to start, or whose command may be idle.
const STARTS: Duration = Duration::from_secs(10);
/// Width of text without a terminal, unless `COLUMNS` is set.
const COLUMNS: usize = 120;

/// Shows sessions until the user quits.
pub fn run(args: &TopArgs, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let has_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if args.snapshots.is_none() && !has_terminal {
        bail!(
            "standard input and output are no terminal ('adb shell' and 'ssh' give one with -t): 'varid top -n 5' prints text, 'varid report' what a session holds"
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot watch for signals")?;
    }
    let mut recorder = match args.records() {
        true => match Recorder::start(args, matches)? {
            Ok(recorder) => Some(recorder),
            Err(error) => return Ok(refused(&error)),
        },
        false => None,
    };
    let only = match (&recorder, &args.session) {
        (Some(recorder), _) => Some(recorder.folder().to_owned()),
        (None, Some(named)) => Some(sessions::named(named)?),
        (None, None) => None,
    };
    let shown =
        Top::new(Sources::new(only)?, args.delay).and_then(|mut top| match args.snapshots {
            Some(count) => top.print(count.get(), args.rows, recorder.as_mut(), &stop),
            None => top.watch(recorder.as_mut(), &stop),
        });
    let ended = recorder.map_or(Ok(()), Recorder::end);
    shown.and(ended).map(|()| ExitCode::SUCCESS)
}

/// The state of the display, and its sources.
struct Top {
    sources: Sources,
    state: State,
    snapshot: Snapshot,
    delay: Duration,
    /// Time of the next refresh.
    next: Instant,
}

impl Top {
    fn new(sources: Sources, delay: Duration) -> anyhow::Result<Self> {
        let choice = sources.only().map_or(Choice::All, Choice::One);
        Ok(Self {
            sources,
            state: State::new(choice),
            snapshot: Snapshot::default(),
            delay,
            next: Instant::now(),
        })
    }

    /// Prints the display as text, this many times.
    fn print(
        &mut self,
        count: u32,
        rows: usize,
        mut recorder: Option<&mut Recorder>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let columns = std::env::var("COLUMNS").ok();
        let columns = columns.and_then(|columns| columns.parse().ok());
        let columns = columns.unwrap_or(COLUMNS);
        if let Some(recorder) = recorder.as_deref_mut() {
            self.wait_for_samples(recorder, stop)?;
        }
        for number in 1..=count {
            // The first one shows a session that has been recorded for some time.
            let waits = number > 1 || recorder.is_some();
            let until = clock::after(if waits { self.delay } else { Duration::ZERO });
            while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(TURN.min(until.saturating_duration_since(Instant::now())));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let runs = watch_recorder(recorder.as_deref_mut())?;
            self.sources.refresh(&self.state.choice, runs);
            while self.sources.read(clock::after(SLICE)) {}
            self.snapshot = self.sources.snapshot(&self.state);
            if number == 1 {
                self.check_sessions(runs)?;
            } else {
                output::text("\n")?;
            }
            let text = lines_of_text(&self.state, &self.snapshot, columns, rows);
            output::text(&text)?;
            if !self.snapshot.subject.runs && !runs {
                break;
            }
        }
        Ok(())
    }

    /// Waits until the recording has samples, has ended, or has had none for too long.
    fn wait_for_samples(
        &mut self,
        recorder: &mut Recorder,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let until = clock::after(STARTS);
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            let runs = watch_recorder(Some(recorder))?;
            self.sources.refresh(&self.state.choice, runs);
            self.sources.read(clock::after(SLICE));
            if !runs || self.sources.snapshot(&self.state).subject.samples > 0 {
                break;
            }
            std::thread::sleep(TURN);
        }
        Ok(())
    }

    /// Shows the display on the terminal, and handles keys.
    fn watch(
        &mut self,
        mut recorder: Option<&mut Recorder>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let runs = watch_recorder(recorder.as_deref_mut())?;
        self.sources.refresh(&self.state.choice, runs);
        self.check_sessions(runs)?;
        let mut screen = Screen::enter()?;
        while !stop.load(Ordering::Relaxed) {
            let runs = watch_recorder(recorder.as_deref_mut())?;
            let turned = self
                .turn(runs, &mut screen)
                .and_then(|()| self.take_keys(&mut screen));
            match turned {
                Ok(false) => {}
                Ok(true) => break,
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(error).context("cannot use the terminal"),
            }
        }
        Ok(())
    }

    /// Continues reading for a while, and draws.
    fn turn(&mut self, runs: bool, screen: &mut Screen) -> io::Result<()> {
        let is_due = Instant::now() >= self.next;
        if self.state.frozen || !(is_due || self.sources.is_behind()) {
            return Ok(());
        }
        if is_due {
            self.sources.refresh(&self.state.choice, runs);
            self.next = clock::after(self.delay);
        }
        self.sources.read(clock::after(SLICE));
        self.snapshot = self.sources.snapshot(&self.state);
        let (state, snapshot) = (&self.state, &self.snapshot);
        screen.draw(|frame| draw(frame, state, snapshot))
    }

    /// Waits for keys until there is work to do. Returns true if the user quits.
    fn take_keys(&mut self, screen: &mut Screen) -> io::Result<bool> {
        loop {
            let until = match self.sources.is_behind() && !self.state.frozen {
                true => Instant::now(),
                false if self.state.frozen => clock::after(TURN),
                false => self.next.min(clock::after(TURN)),
            };
            let wait = until.saturating_duration_since(Instant::now());
            match screen.event(wait)? {
                None => return Ok(false),
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    let before = (self.state.choice.clone(), self.state.request());
                    let page = page(screen.height()?);
                    match press(&mut self.state, key, &self.snapshot, page) {
                        Outcome::Quit => return Ok(true),
                        Outcome::Suspend => screen.suspend()?,
                        Outcome::Show => {}
                    }
                    if self.state.choice != before.0 {
                        // Another session may not have been read yet.
                        self.state.frozen = false;
                        self.next = Instant::now();
                    }
                    if (&self.state.choice, self.state.request()) != (&before.0, before.1) {
                        self.snapshot = self.sources.snapshot(&self.state);
                    }
                    let (state, snapshot) = (&self.state, &self.snapshot);
                    screen.draw(|frame| draw(frame, state, snapshot))?;
                }
                Some(_) => {
                    let (state, snapshot) = (&self.state, &self.snapshot);
                    screen.draw(|frame| draw(frame, state, snapshot))?;
                }
            }
        }
    }

    fn check_sessions(&self, runs: bool) -> anyhow::Result<()> {
        if self.sources.is_empty() && !runs {
            bail!(
                "no session runs: 'varid top -- COMMAND', 'varid top --app PACKAGE' and 'varid top -a' start one, 'varid top SESSION' shows a recorded one"
            );
        }
        match self.sources.only_problem() {
            Some(problem) if !runs => bail!("{problem}"),
            _ => Ok(()),
        }
    }
}

/// Returns true if top's own recorder is running. Returns an error if it has ended without a recording.
fn watch_recorder(recorder: Option<&mut Recorder>) -> anyhow::Result<bool> {
    recorder.map_or(Ok(false), Recorder::runs)
}

/// Returns true if the terminal is gone.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    ) || error.raw_os_error() == Some(nix::libc::EIO)
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn records(line: &[&str]) -> bool {
        let line = ["varid", "top"].iter().chain(line);
        match Cli::try_parse_from(line).unwrap().verb {
            Verb::Top(args) => args.records(),
            _ => panic!(),
        }
    }

    #[test]
    fn a_target_or_a_command_starts_a_recording_and_a_session_does_not() {
        assert!(records(&["--", "sh", "-c", "true"]));
        assert!(records(&["-a"]));
        assert!(records(&["--app", "org.example"]));
        assert!(records(&["-p", "7", "--", "sleep", "1"]));
        assert!(!records(&[]));
        assert!(!records(&["session"]));
        let both = ["varid", "top", "session", "-a"];
        assert!(Cli::try_parse_from(both).is_err());
    }
}
