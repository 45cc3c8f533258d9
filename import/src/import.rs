//! How does a source become a session, whatever its format?

use crate::{
    error::{Error, Result},
    format::ImportFormat,
    formats, other_format,
    request::ImportRequest,
    start,
    summary::ImportSummary,
};

/// Writes the session of a source. Without `format` its content tells which one it has.
///
/// # Errors
///
/// The source cannot be read, has another format or no samples; the session cannot be written. What was begun of it is removed, and a
/// session that was in its folder before is still there.
pub fn import(mut request: ImportRequest, format: Option<&ImportFormat>) -> Result<ImportSummary> {
    if request.input.lies_in(&request.output) {
        let path = request.output;
        return Err(Error::HoldsSource { path });
    }
    let start = request.input.start(start::LEN)?;
    let format = format.or_else(|| ImportFormat::detect(&start));
    let Some(format) = format else {
        if let Some(what) = other_format::of_start(&start) {
            let path = request.input.path;
            return Err(Error::OtherFormat { path, what });
        }
        let start = start.get(..start.len().min(40)).unwrap_or_default();
        return Err(Error::UnknownFormat {
            path: request.input.path,
            neither: formats::neither(),
            start: String::from_utf8_lossy(start).into_owned(),
        });
    };
    let ((mut writer, summary), path) = (format.read)(request)?;
    if writer.counts().samples == 0 {
        let left_out: Vec<_> = summary
            .excluded
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        return Err(Error::NoSamples {
            path,
            why: match (&left_out[..], &summary.notes[..]) {
                ([], []) => "it holds none".to_owned(),
                ([], notes) => notes.join("; "),
                (left_out, _) => {
                    format!("those it holds are not imported: {}", left_out.join(", "))
                }
            },
        });
    }
    writer.finish()?;
    Ok(summary)
}
