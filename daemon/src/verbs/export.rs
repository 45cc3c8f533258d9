//! `varid export`: writes a session for other viewers.

use crate::cli::selection::{self, FrameDetail, SampleArgs};
use crate::cli::{self, ExportArgs};
use crate::{output, output_file};
use std::io::Write;
use std::process::ExitCode;
use varid_recording::{Contexts, SessionReader};
use varid_report::{
    Content, EventSummary, ExportFormat, ExportRequest, Need, Options, Profile, export,
};

/// Writes the file.
pub fn run(args: ExportArgs) -> anyhow::Result<ExitCode> {
    let format = args.format();
    let format = format.unwrap_or_else(|reason| cli::bad_usage("export", &reason));
    if format.content == Content::Binary && output_file::is_terminal(&args.output) {
        anyhow::bail!("this format is not text: name a file with -o FILE");
    }
    let session = SessionReader::open(&args.input.folder()?)?;
    let contexts = match format.needs(Need::Contexts) {
        true => Some(contexts(&session, &args.samples, format)?),
        false => None,
    };
    let profile = Profile::from_session(&session, &options(&args, format)?)?;
    args.samples.check(&args.measures.shown(&profile), &[])?;
    let event = profile.event(None)?;
    let has_all = format.needs(Need::AllEvents);
    if args.event.is_none() && !has_all && contexts.is_none() {
        note_other_events(&profile, event);
    }
    let number = match &contexts {
        Some(contexts) => format!("{} contexts", contexts.nodes().len()),
        None => format!("{} samples", profile.weight(event.event).samples()),
    };
    for note in profile.recording.notes.iter().chain(&event.notes) {
        output::notice(&format!("note: {note}"));
    }
    let inputs = args.names.files();
    let request = ExportRequest {
        event: (!has_all).then_some(event.event),
        weigh: args.measures.percent_of(),
        measures: args.measures.measure,
        contexts,
        sources: args.source_path,
    };
    let write = |out: &mut dyn Write| -> varid_report::Result<()> {
        export(&profile, &request, format, out)
    };
    if let Some(size) = output_file::write(&args.output, &inputs, write)? {
        let (shown, size) = (args.output.display(), output::size(size));
        output::notice(&format!("varid: {shown}: {size}, {number}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the calling contexts of a session, of which whole trees are exported.
fn contexts(
    session: &SessionReader,
    samples: &SampleArgs,
    format: &ExportFormat,
) -> anyhow::Result<Contexts> {
    let has_parts = samples.layer.is_some() || samples.symbol.is_some();
    if has_parts || samples.choose_samples() {
        anyhow::bail!("{} has whole trees: choose by --pid only", format.name);
    }
    let contexts = session.contexts()?;
    contexts.ok_or_else(|| {
        anyhow::anyhow!("the session has no exact calling contexts: 'varid exact' counts them")
    })
}

/// Returns the options for what the format needs.
fn options(args: &ExportArgs, format: &ExportFormat) -> anyhow::Result<Options> {
    let lines = format.needs(Need::Lines) && !args.no_lines;
    // A method's own lines are known only if functions that were inlined into it are distinguished.
    let code = format.needs(Need::Code) && lines && !args.no_code && !args.names.no_inline;
    if !args.source_path.is_empty() && !code {
        let why = match format.needs(Need::Code) {
            true => "--no-lines and --no-inline leave methods' code out",
            false => "of all formats only html has methods' code",
        };
        anyhow::bail!("--source-path has no use here: {why}");
    }
    let detail = FrameDetail {
        inlined: true,
        lines,
    };
    let mut options = selection::options(args.event.clone(), &args.samples, &args.names, detail);
    options.stacks.leaf = args.samples.code();
    options.sample_table = format.needs(Need::Samples);
    options.sampled_addresses = code;
    Ok(options)
}

/// Prints which other events there are, if any.
fn note_other_events(profile: &Profile, exported: &EventSummary) {
    let name = |event: &EventSummary| profile.description(event.event).name.as_str();
    let others = profile.events.iter();
    let others: Vec<_> = others
        .filter(|other| other.event != exported.event)
        .map(name)
        .collect();
    if !others.is_empty() {
        output::notice(&format!(
            "varid: exporting the samples of {}; --event names another: {}",
            name(exported),
            others.join(", ")
        ));
    }
}
