//! Writes every output to a path that the user names: `export -o`, `report --html`, `diff --html`, `symbols --elf` and `--sym`, the
//! manual's pages.
//!
//! | the user names | what happens |
//! |---|---|
//! | nothing that exists | the file is created when its content is complete |
//! | a regular file | a new file takes its place when its content is complete, with the old one's mode, owner and group |
//! | a symbolic link to either | the same where the link leads; the link stays |
//! | a FIFO, a device, a descriptor such as /dev/stdout or /proc/self/fd/3, or `-` | the content is written into it |
//! | a folder, a socket, one of the command's inputs, a file of a session | an error; nothing is changed |
//! | what another user put into a folder such as /tmp | the same |
//!
//! Session folders are not written here: `varid-recording` owns them.

mod destination;
mod replacement;

use anyhow::Context;
use destination::Destination;
use replacement::Replacement;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Size of the write buffer in bytes.
const BUFFER: usize = 1 << 16;

/// Writes `content` to `path`. Returns the size of the file, or None if it is not a regular file. `inputs` are files that the
/// command reads, which it must not replace.
///
/// A pipe that its reader closes early is not an error.
///
/// # Errors
///
/// `path` cannot be written; an existing file is then unchanged. Or `content` returns an error of its own.
pub fn write<E>(
    path: &Path,
    inputs: &[PathBuf],
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<Option<u64>>
where
    anyhow::Error: From<E>,
{
    let shown = path.display();
    match Destination::find(path).with_context(|| format!("cannot write {shown}"))? {
        Destination::Stream(stream) => match fill(stream, content) {
            Err(failure) if failure.output == Some(io::ErrorKind::BrokenPipe) => Ok(None),
            Err(failure) => Err(failure.describe(|| format!("cannot write {shown}"))),
            Ok(()) => Ok(None),
        },
        Destination::File(place) => {
            place.refuse_inputs(inputs)?;
            let replacement = Replacement::begin(&place)?;
            let failed = || match place.found.is_some() {
                true => format!("cannot write {shown}, which stays as it was"),
                false => format!("cannot write {shown}"),
            };
            fill(replacement.file(), content).map_err(|failure| failure.describe(failed))?;
            replacement.finish().with_context(failed).map(Some)
        }
    }
}

/// Returns true if `path` is standard output and that is a terminal.
pub fn is_terminal(path: &Path) -> bool {
    path.as_os_str() == "-" && io::stdout().is_terminal()
}

/// The reason why a file is incomplete.
struct Failure {
    error: anyhow::Error,
    /// The kind of the output's first error. None if `content` returned an error of its own.
    output: Option<io::ErrorKind>,
}

impl Failure {
    /// Converts to an error. `failed` describes an error of the output.
    fn describe(self, failed: impl FnOnce() -> String) -> anyhow::Error {
        match self.output {
            Some(_) => self.error.context(failed()),
            None => self.error,
        }
    }
}

/// Writes `content` into an open file.
fn fill<E>(
    file: impl Write,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure>
where
    anyhow::Error: From<E>,
{
    let file = Observed {
        file,
        failure: None,
    };
    let mut buffer = BufWriter::with_capacity(BUFFER, file);
    let written = content(&mut buffer).map_err(anyhow::Error::from);
    let written = written.and_then(|()| Ok(buffer.flush()?));
    let (file, _) = buffer.into_parts();
    let output = file.failure;
    written.map_err(|error| Failure { error, output })
}

/// A file that stores the kind of its first error, to distinguish it from errors of `content` itself.
struct Observed<F> {
    file: F,
    failure: Option<io::ErrorKind>,
}

impl<F> Observed<F> {
    fn observe<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failure.get_or_insert(error.kind());
        }
        result
    }
}

impl<F: Write> Write for Observed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.observe(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.observe(flushed)
    }
}
