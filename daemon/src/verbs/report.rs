//! `varid report`: prints a session's profile.

use super::{export, pager};
use crate::cli::{ExportArgs, ReportArgs, selection};
use std::process::ExitCode;
use varid_model::Layer;
use varid_recording::SessionReader;
use varid_report::{
    ExportFormat, Options, OutputFormat, Profile, TableNeed, TextLimits, View, render,
};

/// On a terminal, maximum number of missing files that are listed.
const MISSING: usize = 3;

/// Prints the report.
pub fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    if let Some(output) = args.html {
        return export::run(ExportArgs {
            input: args.input,
            format: ExportFormat::named("html"),
            output,
            event: args.event,
            samples: args.samples,
            names: args.names,
            no_lines: false,
            source_path: args.source_path,
            no_code: false,
            measures: args.measures,
        });
    }
    let table = args.table();
    args.samples.check(&args.measures.measure, table.measures)?;
    let percent_of = args.measures.percent_of();
    let session = SessionReader::open(&args.input.folder()?)?;
    let (order, min_percent) = (args.order(), args.min_percent());
    let side_by_side = args.is_side_by_side();
    let all_events = side_by_side || table.needs(TableNeed::AllEvents);
    // Debug information is read only for views that show it.
    let read = (
        table.needs(TableNeed::Inlined),
        table.needs(TableNeed::Lines),
    );
    let layer = args.samples.layer.map(Layer::from);
    let symbol = args.samples.symbol.clone();
    let options = Options {
        sampled_frames: table.needs(TableNeed::SampledFrames),
        ..selection::options(args.event, args.samples, args.names, read)
    };
    let profile = Profile::from_session(&session, &options)?;
    let format = OutputFormat::from(args.format);
    // Only people use a terminal. A pipe gets the complete output.
    let terminal = (format == OutputFormat::Text)
        .then(pager::columns)
        .flatten();
    let view = View {
        event: None,
        table,
        side_by_side,
        layer,
        symbol,
        limit: args.limit,
        order,
        min_percent,
        measures: args.measures.measure,
        percent_of,
        text: TextLimits {
            missing: terminal.filter(|_| !args.all_rows).map(|_| MISSING),
            ..pager::limits(terminal, args.wide, args.all_rows, min_percent)
        },
    };
    let mut text = Vec::new();
    let shown = match format {
        OutputFormat::Text if !all_events => profile.events.len(),
        // All events are in one table. JSON and CSV are for programs: one document per event.
        OutputFormat::Text | OutputFormat::Json | OutputFormat::Csv => 1,
    };
    for event in profile.events.iter().take(shown) {
        if !text.is_empty() {
            text.extend(b"\n");
        }
        let view = View {
            event: Some(event.event),
            ..view.clone()
        };
        render(&profile, &view, format, &mut text)?;
    }
    pager::print(terminal, &text)?;
    Ok(ExitCode::SUCCESS)
}
