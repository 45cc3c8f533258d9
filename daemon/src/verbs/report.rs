//! `varid report`: prints a session's profile.

use super::{export, pager};
use crate::cli::selection::{self, FrameDetail};
use crate::cli::{ExportArgs, ReportArgs};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use varid_recording::SessionReader;
use varid_report::{
    ExportFormat, Options, OutputFormat, Profile, TableNeed, TextLimits, View, render,
};

/// On a terminal, maximum number of missing files that are listed.
const MISSING: usize = 3;

/// Prints the report.
pub fn run(mut args: ReportArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = args.page.html.take() {
        return export::run(page(args, file));
    }
    let session = SessionReader::open(&args.input.folder()?)?;
    let profile = Profile::from_session(&session, &options(&args))?;
    let table = args.table.table();
    let shown = args.measures.shown(&profile);
    args.samples.check(&shown, table.measures)?;
    let format = OutputFormat::from(args.format);
    // Only people use a terminal. A pipe gets the complete output.
    let terminal = (format == OutputFormat::Text)
        .then(pager::columns)
        .flatten();
    let view = view(&args, terminal);
    match terminal {
        Some(_) => {
            let mut text = Vec::new();
            write(&profile, &view, format, &mut text)?;
            pager::print(terminal, &text)?;
        }
        // A call graph has millions of lines.
        None => pager::stream(|out| write(&profile, &view, format, out))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the arguments of the export of a page with all views.
fn page(args: ReportArgs, output: PathBuf) -> ExportArgs {
    ExportArgs {
        input: args.input,
        format: ExportFormat::named("html"),
        output,
        event: args.event,
        samples: args.samples,
        names: args.names,
        no_lines: false,
        source_path: args.page.source_path,
        no_code: false,
        measures: args.measures,
    }
}

/// Returns the options for what the table needs. Debug information is read only for views that show it.
fn options(args: &ReportArgs) -> Options {
    let table = args.table.table();
    let detail = FrameDetail {
        inlined: table.needs(TableNeed::Inlined),
        lines: table.needs(TableNeed::Lines),
    };
    Options {
        sampled_frames: table.needs(TableNeed::SampledFrames),
        ..selection::options(args.event.clone(), &args.samples, &args.names, detail)
    }
}

/// Returns the view of the first event.
fn view(args: &ReportArgs, terminal: Option<usize>) -> View {
    let min_percent = args.min_percent();
    View {
        event: None,
        table: args.table.table(),
        side_by_side: args.table.is_side_by_side(),
        code: args.samples.code(),
        limit: args.rows.limit,
        order: args.table.order(),
        min_percent,
        measures: args.measures.measure.clone(),
        percent_of: args.measures.percent_of(),
        text: TextLimits {
            missing: terminal.filter(|_| !args.text.all_rows).map(|_| MISSING),
            ..pager::limits(terminal, args.text.wide, args.text.all_rows, min_percent)
        },
    }
}

/// Writes the view of each event as text, or as JSON or CSV that of the first one.
fn write(
    profile: &Profile,
    view: &View,
    format: OutputFormat,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let all_events = view.side_by_side || view.table.needs(TableNeed::AllEvents);
    let shown = match format {
        OutputFormat::Text if !all_events => profile.events.iter().collect(),
        // All events are in one table. JSON and CSV are for programs: one document per event.
        OutputFormat::Text | OutputFormat::Json | OutputFormat::Csv => vec![profile.event(None)?],
    };
    for (number, event) in shown.into_iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let view = View {
            event: Some(event.event),
            ..view.clone()
        };
        render(profile, &view, format, out)?;
    }
    Ok(())
}
