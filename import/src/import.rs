//! Imports a source of any format into a session.

use crate::{
    error::{Error, Result},
    format::ImportFormat,
    formats, other_format,
    request::ImportRequest,
    start,
    summary::ImportSummary,
};

/// Writes the session of a source. Without `format`, it is detected from the content.
///
/// # Errors
///
/// The source cannot be read, has another format or no samples, or the session cannot be written. An incomplete session is removed, and a
/// session that existed in the folder before is kept.
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
