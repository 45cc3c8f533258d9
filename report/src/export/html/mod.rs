//! How does a profile become a page that a browser shows without network?
//!
//! | question | file |
//! |---|---|
//! | what does the page know | `data` |
//! | how are its numbers written | `columns` |
//! | which calling contexts does it draw | `tree` |
//! | what does it look like | `page.html`, `style.css` |
//! | what does it do | `*.js`, one program: each file answers the question of its first line |

mod columns;
mod data;
mod tree;

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

use super::walk::Walk;
use crate::{error::Result, view::PercentOf};

const STYLE: &str = include_str!("style.css");
const BODY: &str = include_str!("page.html");

/// One module of ECMAScript.
const SCRIPT: &str = concat!(
    include_str!("data.js"),
    include_str!("model.js"),
    include_str!("format.js"),
    include_str!("state.js"),
    include_str!("layout.js"),
    include_str!("flame.js"),
    include_str!("timeline.js"),
    include_str!("layers.js"),
    include_str!("methods.js"),
    include_str!("trees.js"),
    include_str!("method.js"),
    include_str!("main.js"),
);

/// Writes the page; all that was recorded is in base64.
pub fn write(walk: &Walk, weigh: PercentOf, out: &mut dyn Write) -> Result<()> {
    write_head((STYLE, SCRIPT), out)?;
    write!(
        out,
        r#"<body>
{BODY}
<script type="application/octet-stream" id="data">"#
    )?;
    let mut packed = GzEncoder::new(
        EncoderWriter::new(&mut *out, &STANDARD),
        Compression::new(4),
    );
    data::write(walk, weigh, &mut packed)?;
    packed.finish()?.finish()?;
    write!(
        out,
        "</script>\n<script type=\"module\">{SCRIPT}</script>\n</body>\n</html>\n"
    )?;
    Ok(())
}

/// Writes what comes before the body of a page. The policy in it allows this style and this script only, and no request.
pub(crate) fn write_head((style, script): (&str, &str), out: &mut dyn Write) -> io::Result<()> {
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
