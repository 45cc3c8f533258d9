//! Text for people on a terminal: how wide it is, and what shows a page at a time.

use crate::output;
use console::Term;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, atomic::AtomicBool};

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

/// Shows text through `$VARID_PAGER`, `$PAGER` or `less`, or directly where that is empty, `cat`, or not there.
///
/// # Errors
///
/// Those of writing and waiting; that the reader has seen enough is none.
pub fn show(text: &[u8]) -> anyhow::Result<()> {
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
