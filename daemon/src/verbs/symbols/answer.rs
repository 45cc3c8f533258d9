//! `varid symbols FILE --at ADDRESS...`: resolves addresses.

use super::Errors;
use super::image::{Code, Image, InputFile};
use crate::cli::bad_usage;
use crate::output;
use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use std::io::{self, BufRead, BufWriter, ErrorKind, Read, Write};
use varid_symbolizer::Frame;

/// Maximum length of a line of standard input.
const MAX_LINE: u64 = 4096;

#[derive(Serialize)]
struct Document {
    addresses: Vec<Answer>,
}

/// The result for an address.
#[derive(Serialize)]
struct Answer {
    address: u64,
    /// Innermost first.
    frames: Vec<Answered>,
}

#[derive(Serialize)]
struct Answered {
    #[serde(skip_serializing_if = "String::is_empty")]
    function: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Answers for the single selected image.
pub fn run(
    files: &[InputFile],
    at: &[String],
    json: bool,
    errors: &mut Errors,
) -> anyhow::Result<()> {
    let [file] = files else {
        bad_usage(
            "symbols",
            "--at needs one file: what an address means is its own affair",
        );
    };
    let mut result = Ok(());
    file.visit(errors, |images, errors| {
        result = match images {
            [] => Ok(()),
            // The addresses of an oat file are those of its ELF file.
            [image]
            | [
                image @ Image {
                    code: Code::Elf(_), ..
                },
                ..,
            ] => answer(image, at, json, errors),
            [first, ..] => Err(anyhow!(
                "{} dex files, each with addresses of its own: name one, as {} is",
                images.len(),
                first.name
            )),
        };
    });
    result
}

fn answer(image: &Image<'_>, at: &[String], json: bool, errors: &mut Errors) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut document = Document {
        addresses: Vec::new(),
    };
    let mut one = |text: &str, out: &mut dyn Write, errors: &mut Errors| -> io::Result<()> {
        let Some(address) = errors.report(parse(text)) else {
            return Ok(());
        };
        let frames = image.frames(address);
        if json {
            document.addresses.push(Answer::new(address, &frames));
            return Ok(());
        }
        write(out, address, &frames)
    };
    let written = at.iter().try_for_each(|text| match text.as_str() {
        "-" => from_input(|text, last| {
            one(text, &mut out, errors)?;
            // A program that writes one address at a time waits for each answer.
            if last { out.flush() } else { Ok(()) }
        }),
        text => one(text, &mut out, errors),
    });
    match written.and_then(|()| out.flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        written => written.context("cannot answer")?,
    }
    if json {
        output::json(&document)
    } else {
        Ok(())
    }
}

/// Calls `take` with each line of standard input, and whether it is the last available one.
fn from_input(mut take: impl FnMut(&str, bool) -> io::Result<()>) -> io::Result<()> {
    let mut input = io::BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        // No address is longer, and the rest of such a line is not an address either.
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line.trim_ascii());
        if !text.is_empty() {
            take(&text, input.buffer().is_empty())?;
        }
    }
}

/// Parses an address in addr2line's syntax.
fn parse(text: &str) -> anyhow::Result<u64> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    if digits.starts_with('+') {
        bail!("'{text}' is no hexadecimal address");
    }
    u64::from_str_radix(digits, 16).map_err(|_| anyhow!("'{text}' is no hexadecimal address"))
}

fn write(out: &mut dyn Write, address: u64, frames: &[Frame<'_>]) -> io::Result<()> {
    write!(out, "{address:#x}: ")?;
    let Some((innermost, callers)) = frames.split_first() else {
        return writeln!(out, "??");
    };
    write_frame(out, innermost)?;
    for caller in callers {
        write!(out, " (inlined by) ")?;
        write_frame(out, caller)?;
    }
    Ok(())
}

fn write_frame(out: &mut dyn Write, frame: &Frame<'_>) -> io::Result<()> {
    // Line tables also cover code between functions.
    let function = match &*frame.function {
        "" => "??",
        function => function,
    };
    match &frame.location {
        Some(location) => writeln!(out, "{function} at {}:{}", location.file, location.line),
        None => writeln!(out, "{function}"),
    }
}

impl Answer {
    fn new(address: u64, frames: &[Frame<'_>]) -> Self {
        let frame = |frame: &Frame<'_>| {
            let location = frame.location.as_ref();
            Answered {
                function: frame.function.to_string(),
                file: location.map(|location| location.file.to_string()),
                line: location.map(|location| location.line),
            }
        };
        Self {
            address,
            frames: frames.iter().map(frame).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal_with_or_without_a_prefix() {
        assert_eq!(parse("0x1C4").ok(), Some(0x1c4));
        assert_eq!(parse("1c4").ok(), Some(0x1c4));
        assert_eq!(parse("10").ok(), Some(0x10));
        for bad in ["", "0x", "+1", "-1", "x", "1 2", "10000000000000000"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn inlined_frames_follow_as_addr2line_shows_them() {
        let frame = |function: &'static str, line| Frame {
            function: function.into(),
            location: Some(varid_symbolizer::Location {
                file: "a.c".into(),
                line,
            }),
        };
        let mut text = Vec::new();
        write(&mut text, 16, &[frame("twice", 1), frame("main", 7)]).unwrap();
        write(&mut text, 32, &[]).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "0x10: twice at a.c:1\n (inlined by) main at a.c:7\n0x20: ??\n"
        );
    }
}
