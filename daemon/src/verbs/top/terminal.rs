//! How is the terminal taken, and given back whatever happens?
//!
//! It is restored when [`Screen`] is dropped, which signals and errors lead to, before a panic's message, and while the program is suspended.

use anyhow::Context;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use std::io::{self, BufWriter, Stdout};
use std::os::fd::AsFd;
use std::sync::Once;
use std::time::Duration;
use varid_top::ratatui::backend::CrosstermBackend;
use varid_top::ratatui::crossterm::event::{self, Event};
use varid_top::ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use varid_top::ratatui::crossterm::{cursor, execute};
use varid_top::ratatui::{Frame, Terminal};

/// The terminal, while it is drawn on.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter() -> anyhow::Result<Self> {
        restore_at_panics();
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))
            .context("cannot use the terminal")?;
        // Dropped from here on, also where the next step fails.
        let screen = Self { terminal };
        take().context("cannot use the terminal")?;
        Ok(screen)
    }

    /// Draws; only what has changed is written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Lines of the terminal.
    pub fn height(&self) -> io::Result<u16> {
        self.terminal.size().map(|size| size.height)
    }

    /// The next event, if one comes in time.
    pub fn event(&self, wait: Duration) -> io::Result<Option<Event>> {
        // crossterm reads the end of a terminal that is gone for ever, so it is looked for before.
        if !is_there(Duration::ZERO)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !event::poll(Duration::ZERO)? {
            if !is_there(wait)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !event::poll(Duration::ZERO)? {
                return Ok(None);
            }
        }
        event::read().map(Some)
    }

    /// Gives the terminal back and stops, until the shell continues the program.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        raise(Signal::SIGTSTP)?;
        take()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Waits until there is something to read, or a signal comes, so long at most; whether the terminal is still there.
fn is_there(wait: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, wait) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    let [stdin] = &fds;
    Ok(stdin
        .revents()
        .is_none_or(|events| !events.intersects(gone)))
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
}

/// The terminal may be gone.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// A panic's message is for the terminal as it was.
fn restore_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            report(panic);
        }));
    });
}
