//! `varid report`: prints a session's profile.

use super::{export, pager};
use crate::cli::{ExportArgs, ReportArgs, selection};
use std::process::ExitCode;
use varid_model::Layer;
use varid_recording::SessionReader;
use varid_report::{
    ExportFormat, GroupBy, Options, OutputFormat, Profile, ReportTable, TextLimits, View, render,
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
            by_samples: args.by_samples,
        });
    }
    let by_calls = args.table() == ReportTable::By(GroupBy::Calls);
    if by_calls && args.samples.chooses_in_processes() {
        anyhow::bail!(
            "calls are counted for whole processes: choose by --pid, --layer and --symbol only"
        );
    }
    let session = SessionReader::open(&args.input.folder()?)?;
    let (table, order, min_percent) = (args.table(), args.order(), args.min_percent());
    let sampled_frames = table == ReportTable::SampledFrames;
    let by_line = [ReportTable::By, ReportTable::SideBySide].map(|table| table(GroupBy::Line));
    let lines = sampled_frames || by_line.contains(&table);
    let all_events = matches!(table, ReportTable::Events | ReportTable::SideBySide(_));
    // Debug information is read only for views that need it.
    let calls = matches!(table, ReportTable::Callgraph | ReportTable::Tree(_));
    let inlined = !sampled_frames && (lines || calls);
    let layer = args.samples.layer.map(Layer::from);
    let symbol = args.samples.symbol.clone();
    let options = Options {
        sampled_frames,
        ..selection::options(args.event, args.samples, args.names, (inlined, lines))
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
        layer,
        symbol,
        limit: args.limit,
        order,
        min_percent,
        percent_of: selection::percent_of(args.by_samples),
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
