//! `varid export`: writes a session for other viewers.

use crate::cli::{self, ExportArgs, selection};
use crate::{output, output_file};
use std::io::Write;
use std::process::ExitCode;
use varid_model::Layer;
use varid_recording::SessionReader;
use varid_report::{Content, ExportRequest, Need, Profile, export};

/// Writes the file.
pub fn run(args: ExportArgs) -> anyhow::Result<ExitCode> {
    let format = args.format();
    let format = format.unwrap_or_else(|reason| cli::bad_usage("export", &reason));
    if format.content == Content::Binary && output_file::is_terminal(&args.output) {
        anyhow::bail!("this format is not text: name a file with -o FILE");
    }
    args.samples.check(&args.measures.measure, &[])?;
    let session = SessionReader::open(&args.input.folder()?)?;
    let names_event = args.event.is_some();
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
    let inputs = args.names.files();
    let layer = args.samples.layer.map(Layer::from);
    let symbol = args.samples.symbol.clone();
    let mut options = selection::options(args.event, args.samples, args.names, (true, lines));
    options.stacks.leaf_layer = layer;
    options.stacks.leaf_symbol = symbol;
    options.sample_table = format.needs(Need::Samples);
    options.sampled_addresses = code;
    let profile = Profile::from_session(&session, &options)?;
    let event = profile.event(None)?;
    let has_all = format.needs(Need::AllEvents);
    if profile.events.len() > 1 && !names_event && !has_all {
        let name = &profile.description(event.event).name;
        let others = profile.events.iter();
        let others = others.filter(|other| other.event != event.event);
        let others: Vec<_> = others
            .map(|other| profile.description(other.event).name.as_str())
            .collect();
        output::notice(&format!(
            "varid: exporting the samples of {name}; --event names another: {}",
            others.join(", ")
        ));
    }
    for note in profile.recording.notes.iter().chain(&event.notes) {
        output::notice(&format!("note: {note}"));
    }
    let request = ExportRequest {
        event: (!has_all).then_some(event.event),
        weigh: args.measures.percent_of(),
        measures: args.measures.measure,
        sources: args.source_path,
    };
    let write = |out: &mut dyn Write| -> varid_report::Result<()> {
        export(&profile, &request, format, out)
    };
    if let Some(size) = output_file::write(&args.output, &inputs, write)? {
        let (shown, size) = (args.output.display(), output::size(size));
        let samples = profile.weight(event.event).samples();
        output::notice(&format!("varid: {shown}: {size}, {samples} samples"));
    }
    Ok(ExitCode::SUCCESS)
}
