//! Text for people on a terminal: its width, and the pager. What programs read, without one.

use crate::output;
use anyhow::Context;
use console::Term;
use std::io::{self, BufWriter, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, atomic::AtomicBool};
use varid_report::TextLimits;

/// On a terminal, rows below this percentage are combined in one line.
const FOLD_BELOW: f64 = 0.5;

/// Returns the columns of standard output's terminal, or None if it is not a terminal.
pub fn columns() -> Option<usize> {
    let terminal = Term::stdout();
    if !terminal.is_term() {
        return None;
    }
    // A terminal without a size, such as a serial line, has no maximum line length.
    let columns = terminal.size_checked().map(|(_, columns)| columns);
    Some(columns.map_or(usize::MAX, usize::from))
}

/// Returns true if text may have colours: on a terminal, unless the user has disabled them (<https://no-color.org>).
pub fn has_colour(terminal: Option<usize>) -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    terminal.is_some() && !is_off
}

/// Returns the limits of tables on a terminal of this width. Without a terminal there are none. If the user sets a minimum, the rows above
/// it are shown.
pub fn limits(terminal: Option<usize>, wide: bool, all_rows: bool, min_percent: f64) -> TextLimits {
    terminal.map_or_else(TextLimits::default, |columns| TextLimits {
        width: (!wide).then_some(columns),
        colour: has_colour(terminal),
        fold_below: if all_rows || min_percent > 0.0 {
            0.0
        } else {
            FOLD_BELOW
        },
        missing: None,
    })
}

/// Prints text: through the pager on a terminal, whose width [`columns`] has returned.
///
/// # Errors
///
/// Writing or waiting fails. A closed pipe is not an error.
pub fn print(terminal: Option<usize>, text: &[u8]) -> anyhow::Result<()> {
    match terminal {
        Some(_) => show(text),
        None => output::bytes(text),
    }
}

/// Writes to standard output what `make` writes, while it is made, without a pager.
///
/// # Errors
///
/// Making or writing fails. A closed pipe is not an error.
pub fn stream(make: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let flush = |mut out: BufWriter<_>| out.flush().context("cannot write");
    match make(&mut out).and_then(|()| flush(out)) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        written => written,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Shows text through `$VARID_PAGER`, `$PAGER` or `less`. Prints it directly if that is empty, `cat`, or does not exist.
fn show(text: &[u8]) -> anyhow::Result<()> {
    let named = ["VARID_PAGER", "PAGER"];
    let named = named.into_iter().find_map(std::env::var_os);
    let mut pager = match &named {
        Some(command) if command.is_empty() || command == "cat" => return output::bytes(text),
        Some(command) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(command);
            shell
        }
        None => Command::new("less"),
    };
    // git's defaults: colours are passed through, the text stays on the screen, and text that fits on it needs no key.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    // The pager handles Ctrl-C, and varid waits for it.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::<AtomicBool>::default())?;
    let Ok(mut pager) = pager.stdin(Stdio::piped()).spawn() else {
        return output::bytes(text);
    };
    let written = pager
        .stdin
        .take()
        .map_or(Ok(()), |mut input| input.write_all(text));
    // The shell's status for a command that does not exist.
    if pager.wait()?.code() == Some(127) {
        return output::bytes(text);
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_whose_reader_has_left_is_no_error() {
        let of =
            |kind: io::ErrorKind| anyhow::Error::from(varid_report::Error::Output(kind.into()));
        assert!(is_closed_pipe(&of(io::ErrorKind::BrokenPipe)));
        assert!(!is_closed_pipe(&of(io::ErrorKind::StorageFull)));
    }
}
