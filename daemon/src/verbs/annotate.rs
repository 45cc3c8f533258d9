//! `varid annotate`: the lines and instructions of a method with their samples.

use super::pager;
use crate::cli::selection::{self, FrameDetail};
use crate::cli::{AnnotateArgs, AnnotateFormatArg};
use std::path::PathBuf;
use std::process::ExitCode;
use varid_recording::SessionReader;
use varid_report::{
    AnnotateRequest, Annotated, AnnotationText, Options, Profile, annotate, write_annotation_json,
    write_annotation_text, write_candidates, write_candidates_json,
};

/// Returns the entries of class paths.
pub fn class_path(paths: &[String]) -> Vec<PathBuf> {
    let entries = paths.iter().flat_map(|path| path.split(':'));
    let entries = entries.filter(|entry| !entry.is_empty());
    entries.map(PathBuf::from).collect()
}

/// Prints the method's lines and instructions. If several methods match, prints these, with exit code 1.
pub fn run(args: AnnotateArgs) -> anyhow::Result<ExitCode> {
    let session = SessionReader::open(&selection::folder(
        args.session
            .session
            .as_deref()
            .or(args.session.input.as_deref()),
    )?)?;
    let request = AnnotateRequest {
        method: args.method,
        image: args.image,
        code: args.samples.code(),
        event: None,
        measures: args.measures.of_one(),
        percent_of: args.measures.percent_of(),
        sources: args.source_path,
        class_path: class_path(&args.class_path),
        limit: args.lines.limit,
        context: args.lines.context,
    };
    let detail = FrameDetail {
        inlined: true,
        lines: true,
    };
    let mut options = Options {
        sampled_addresses: true,
        ..selection::options(args.event, &args.samples, &args.names, detail)
    };
    // Code that is inlined into a method counts for the method here, but its lines must not be confused with the method's own.
    options.names.inlined = true;
    let profile = Profile::from_session(&session, &options)?;
    args.samples.check(&args.measures.shown(&profile), &[])?;
    let format = args.output.format;
    let terminal = (format == AnnotateFormatArg::Text)
        .then(pager::columns)
        .flatten();
    let mut text = Vec::new();
    let found = annotate(&profile, &request)?;
    match (&found, format) {
        (Annotated::Method(method), AnnotateFormatArg::Text) => {
            let look = AnnotationText {
                width: terminal.filter(|_| !args.output.wide),
                colour: pager::has_colour(terminal),
            };
            write_annotation_text(method, look, &mut text)?;
        }
        (Annotated::Method(method), AnnotateFormatArg::Json) => {
            write_annotation_json(method, &mut text)?;
        }
        (Annotated::Candidates(several), AnnotateFormatArg::Text) => {
            write_candidates(several, &mut text)?;
        }
        (Annotated::Candidates(several), AnnotateFormatArg::Json) => {
            write_candidates_json(several, &mut text)?;
        }
    }
    pager::print(terminal, &text)?;
    Ok(match found {
        Annotated::Method(_) => ExitCode::SUCCESS,
        Annotated::Candidates(_) => ExitCode::FAILURE,
    })
}
