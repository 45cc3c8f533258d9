//! Text for people on a terminal: how wide it is, and what shows a page at a time.

use crate::output;
use console::Term;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, atomic::AtomicBool};
use varid_report::TextLimits;

/// On a terminal, rows below so many percent are one line.
const FOLD_BELOW: f64 = 0.5;

/// Columns of the terminal that standard output is; none if it is something else.
pub fn columns() -> Option<usize> {
    let terminal = Term::stdout();
    if !terminal.is_term() {
        return None;
    }
    // A terminal without a size, as of a serial line, has lines of any length.
    let columns = terminal.size_checked().map(|(_, columns)| columns);
    Some(columns.map_or(usize::MAX, usize::from))
}

/// Whether text for people may have colours: on a terminal, unless the user wants none (<https://no-color.org>).
pub fn has_colour(terminal: Option<usize>) -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    terminal.is_some() && !is_off
}

/// How tables fit a terminal of so many columns; what is no terminal gets all of them. A bound that the user names shows the rows above it.
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

/// Prints text: page by page on a terminal, whose columns [`columns`] has told.
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

/// Shows text through `$VARID_PAGER`, `$PAGER` or `less`, or directly where that is empty, `cat`, or not there.
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
    // As git has it: colours as they are, the text stays, and what fits the screen needs no key.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    // Ctrl-C is the pager's: varid waits for it.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::<AtomicBool>::default())?;
    let Ok(mut pager) = pager.stdin(Stdio::piped()).spawn() else {
        return output::bytes(text);
    };
    let written = pager
        .stdin
        .take()
        .map_or(Ok(()), |mut input| input.write_all(text));
    // A shell's status for a command that is not there.
    if pager.wait()?.code() == Some(127) {
        return output::bytes(text);
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
