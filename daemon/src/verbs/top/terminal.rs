//! Sets up the terminal, and restores it in all cases.
//!
//! It is restored when [`Screen`] is dropped, also after signals and errors, before a panic's message, and while the program is suspended.

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

/// The terminal while it is in use.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Sets up the terminal.
    pub fn enter() -> anyhow::Result<Self> {
        restore_at_panics();
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))
            .context("cannot use the terminal")?;
        // From here on it is restored by dropping it, even if the next step fails.
        let screen = Self { terminal };
        take().context("cannot use the terminal")?;
        Ok(screen)
    }

    /// Draws the screen. Only changes are written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The height of the terminal.
    pub fn height(&self) -> io::Result<u16> {
        self.terminal.size().map(|size| size.height)
    }

    /// Returns the next event, if one arrives in time.
    pub fn event(&self, wait: Duration) -> io::Result<Option<Event>> {
        // crossterm would read the end of a closed terminal for ever, so that is checked first.
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

    /// Restores the terminal and suspends the program, until the shell continues it.
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

/// Waits until there is input, a signal arrives, or the time is over. Returns true if the terminal still exists.
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

/// Restores the terminal, which may be gone.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic's message is printed.
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
