//! `varid symbols --mapping MAPPING [TRACE...]`: restores the original names in stack traces.

use super::Errors;
use anyhow::Context;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use varid_symbolizer::retrace::Mapping;

/// Maximum length of a stack trace's line. A longer line is copied unchanged.
const MAX_LINE: u64 = 1 << 16;

/// Separates the files into stack traces and files with code.
pub fn split(files: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    files.iter().cloned().partition(|path| {
        // Every code format has zeros in its header.
        let text = || {
            let mut start = Vec::new();
            File::open(path)?.take(4096).read_to_end(&mut start)?;
            io::Result::Ok(!start.contains(&0))
        };
        path.as_os_str() == "-" || path.is_file() && text().unwrap_or_default()
    })
}

/// Writes the stack traces, or the frames, with the original names. Without either, reads standard input.
pub fn run(
    mapping: &Mapping,
    traces: &[PathBuf],
    frames: &[String],
    errors: &mut Errors,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let standard_input = [PathBuf::from("-")];
    let traces = match traces {
        [] if frames.is_empty() => &standard_input,
        traces => traces,
    };
    for trace in traces {
        errors.report(retrace_file(mapping, trace, &mut out));
    }
    let of_frames = frames.iter().try_for_each(|frame| {
        let lines = mapping.retrace(&as_line(frame));
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    });
    until_closed(of_frames.and_then(|()| out.flush())).context("cannot answer")
}

fn retrace_file(mapping: &Mapping, path: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let shown = path.display();
    let written = if path.as_os_str() == "-" {
        retrace(mapping, io::stdin().lock(), out)
    } else {
        let file = File::open(path).with_context(|| format!("{shown}: cannot open"))?;
        retrace(mapping, BufReader::new(file), out)
    };
    until_closed(written).with_context(|| format!("{shown}: cannot retrace"))
}

/// Treats a closed pipe as success.
fn until_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn retrace(mapping: &Mapping, mut input: impl BufRead, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    // A part of a long line is not a line.
    let mut in_long_line = false;
    loop {
        line.clear();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return out.flush();
        }
        let (text, end): (&[u8], &[u8]) = match line.as_slice() {
            [text @ .., b'\r', b'\n'] => (text, b"\r\n"),
            [text @ .., b'\n'] => (text, b"\n"),
            text => (text, b""),
        };
        let is_piece = in_long_line || line.len() as u64 == MAX_LINE;
        in_long_line = is_piece && end.is_empty();
        match std::str::from_utf8(text) {
            Ok(text) if !is_piece => {
                let lines = mapping.retrace(text);
                out.write_all(lines.join("\n").as_bytes())?;
            }
            _ => out.write_all(text)?,
        }
        out.write_all(end)?;
    }
}

/// Returns the line of a stack trace for a frame `a.b.c` or `a.b.c:7`. Such a line is returned unchanged.
fn as_line(frame: &str) -> String {
    if frame.contains('(') {
        return frame.to_owned();
    }
    match frame.rsplit_once(':') {
        Some((method, line)) => format!("at {method}(SourceFile:{line})"),
        None => format!("at {frame}(SourceFile)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_what_is_no_text_stays() {
        let mapping =
            Mapping::parse(b"org.Main -> a:\n    1:1:int f():7:7 -> b\n".to_vec()).unwrap();
        let long = "at a.b(SourceFile:1) ".repeat(5000);
        for (input, expected) in [
            (
                "\tat a.b(SourceFile:1)\r\nend",
                "\tat org.Main.f(Main.java:7)\r\nend",
            ),
            (&*long, &*long),
        ] {
            let mut out = Vec::new();
            retrace(&mapping, input.as_bytes(), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        retrace(&mapping, &b"\xff at a.b(SourceFile:1)\n"[..], &mut out).unwrap();
        assert_eq!(out, b"\xff at a.b(SourceFile:1)\n");
    }

    #[test]
    fn a_frame_is_a_line_of_a_stack_trace() {
        assert_eq!(as_line("a.b.c:7"), "at a.b.c(SourceFile:7)");
        assert_eq!(as_line("a.b.c"), "at a.b.c(SourceFile)");
        assert_eq!(as_line("  at a.b(X.kt:7)"), "  at a.b(X.kt:7)");
    }
}
