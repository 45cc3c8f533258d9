//! Profiles as a self-contained HTML page, which works offline.
//!
//! | question | file |
//! |---|---|
//! | what does the page know of an event or measure | `data` |
//! | which code does it have | `code` |
//! | how are its numbers written | `columns` |
//! | which calling contexts does it draw | `tree` |
//! | what does it look like | `page.html`, `style.css` |
//! | what does it do | `*.js`, one program: each file answers the question of its first line |

mod code;
mod columns;
mod data;
mod tree;

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

use super::{
    Content, ExportFormat, FormatMeasures, Input, Need,
    palette::style_sheet,
    walk::{Walk, plain},
};
use crate::error::Result;

const STYLE: &str = include_str!("style.css");
const BODY: &str = include_str!("page.html");

/// The scripts, concatenated to one ECMAScript module.
const SCRIPT: &str = concat!(
    include_str!("data.js"),
    include_str!("model.js"),
    include_str!("transform.js"),
    include_str!("format.js"),
    include_str!("link.js"),
    include_str!("state.js"),
    include_str!("canvas.js"),
    include_str!("layout.js"),
    include_str!("chart_layout.js"),
    include_str!("heat_layout.js"),
    include_str!("picture.js"),
    include_str!("flame.js"),
    include_str!("chart.js"),
    include_str!("heat.js"),
    include_str!("timeline.js"),
    include_str!("layers.js"),
    include_str!("finding.js"),
    include_str!("caches.js"),
    include_str!("methods.js"),
    include_str!("trees.js"),
    include_str!("code.js"),
    include_str!("method.js"),
    include_str!("events.js"),
    include_str!("main.js"),
);

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "html",
    aliases: &[],
    about: "A page with all views, for any browser, without network",
    endings: &[".html"],
    needs: &[Need::Samples, Need::Lines, Need::Code, Need::AllEvents],
    measures: FormatMeasures::Several,
    content: Content::Text,
    write,
};

/// Writes the page. Recorded data is encoded in base64. Each event, or each named measure, has a block of data and, if
/// the profile has sampled addresses, a block of code.
fn write(input: &Input<'_>, out: &mut dyn Write) -> Result<()> {
    let (profile, request) = (input.profile, input.request);
    let walks = walks(input)?;
    let name = |walk: &Walk| plain(walk.name()).into_owned();
    let shown: Vec<String> = walks.iter().map(name).collect();

    let layers = style_sheet(|layer, colour| format!(":root {{ --{layer}: {colour}; }}\n"));
    write_head(&format!("{layers}{STYLE}"), SCRIPT, out)?;
    writeln!(out, "<body>\n{BODY}")?;
    for (number, walk) in walks.iter().enumerate() {
        let symbols = write_block("data", number, out, |block| {
            data::write(walk, &shown, block)
        })?;
        if profile.options.sampled_addresses {
            write_block("code", number, out, |block| {
                code::write(walk, request, &symbols, block)
            })?;
        }
    }
    write!(
        out,
        "<script type=\"module\">{SCRIPT}</script>\n</body>\n</html>\n"
    )?;
    Ok(())
}

/// Returns what the page lets the user select: the events, or the named measures of one event.
fn walks<'p>(input: &Input<'p>) -> Result<Vec<Walk<'p>>> {
    let (profile, request, first) = (input.profile, input.request, &input.walk);
    if !first.measures.are_samples() {
        return Ok(first.by_measure());
    }
    let others = profile
        .events
        .iter()
        .filter(|other| request.event.is_none() && other.event != first.event.event)
        .map(|other| Walk::new(profile, Some(other.event), request));
    std::iter::once(Ok(first.clone())).chain(others).collect()
}

/// Writes an element with bytes as base64 of gzip. Its id consists of the kind and the number of the event, or of the
/// kind alone for the first event.
fn write_block<T>(
    kind: &str,
    number: usize,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let id = match number {
        0 => kind.to_owned(),
        _ => format!("{kind}-{number}"),
    };
    write!(out, r#"<script type="application/octet-stream" id="{id}">"#)?;
    let mut packed = GzEncoder::new(
        EncoderWriter::new(&mut *out, &STANDARD),
        Compression::new(4),
    );
    let written = write(&mut packed)?;
    packed.finish()?.finish()?;
    writeln!(out, "</script>")?;
    Ok(written)
}

/// Writes the start of a page. Its content security policy only allows this style and this script, and no requests.
pub(crate) fn write_head(style: &str, script: &str, out: &mut dyn Write) -> io::Result<()> {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let (script, of_style) = (hash(script), hash(style));
    write!(
        out,
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{of_style}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="varid">
<title>varid</title>
<style>{style}</style>
</head>
"#
    )
}
