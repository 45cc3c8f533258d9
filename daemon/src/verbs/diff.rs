//! `varid diff`: compares sessions.

use super::pager;
use crate::cli::selection::{self, FrameDetail};
use crate::cli::{self, DiffArgs, Sides};
use crate::{output, output_file, sessions};
use anyhow::{Context, bail};
use std::process::ExitCode;
use varid_recording::SessionReader;
use varid_report::{
    Diff, DiffView, Options, OutputFormat, Profile, Quantity, RowOrder, ShownSignatures, Side,
    TableNeed, TotalChange, View,
};

/// The exit code if B is slower than permitted.
const SLOWER: u8 = 3;

/// Prints the comparison.
pub fn run(args: DiffArgs) -> anyhow::Result<ExitCode> {
    let Some(sides) = args.sides.sides() else {
        cli::bad_usage(
            "diff",
            "two sessions are compared, 'varid diff A B', or several: 'varid diff A A2 --against B B2'",
        );
    };
    let format = OutputFormat::from(args.output.format);
    let terminal = (format == OutputFormat::Text && args.output.html.is_none())
        .then(pager::columns)
        .flatten();
    let mut diff = Diff::new(view(&args, terminal));
    add(&mut diff, sides, &args)?;
    // If a judgement is requested but not possible, nothing is printed.
    let slower = args
        .comparison
        .fail_if_slower
        .map(|bound| is_slower(&diff, bound, args.comparison.level))
        .transpose()?;
    match &args.output.html {
        Some(path) => {
            output_file::write(path, &args.names.files(), |out| diff.write_html(out))?;
        }
        None => {
            let mut text = Vec::new();
            diff.render(format, &mut text)?;
            pager::print(terminal, &text)?;
        }
    }
    Ok(slower.unwrap_or(ExitCode::SUCCESS))
}

fn view(args: &DiffArgs, terminal: Option<usize>) -> DiffView {
    DiffView {
        view: View {
            table: args.table(),
            code: args.samples.code(),
            order: match args.comparison.total {
                true => RowOrder::Total,
                false => RowOrder::Own,
            },
            limit: args.rows.limit,
            min_percent: args.rows.min_percent,
            percent_of: args.measures.percent_of(),
            measures: args.measures.of_one(),
            text: pager::limits(
                terminal,
                args.output.wide,
                args.output.all_rows,
                args.rows.min_percent,
            ),
            ..View::default()
        },
        quantity: match args.comparison.absolute {
            true => Quantity::Absolute,
            false => Quantity::Share,
        },
        level: args.comparison.level,
        by_symbol_only: args.by_symbol_only,
        flame_graph: args.output.html.is_some(),
    }
}

fn options(args: &DiffArgs) -> Options {
    let lines = args.table().needs(TableNeed::Lines);
    let detail = FrameDetail {
        inlined: lines || args.output.html.is_some(),
        lines,
    };
    let mut options = selection::options(args.event.clone(), &args.samples, &args.names, detail);
    // A method may be overloaded in one session only.
    options.names.signatures = ShownSignatures::OfAll;
    options
}

/// Adds the sessions one after the other. Each profile is dropped before the next one is read.
fn add(diff: &mut Diff, sides: Sides<'_>, args: &DiffArgs) -> anyhow::Result<()> {
    let mut options = options(args);
    for (side, folders) in [(Side::A, sides.a), (Side::B, sides.b)] {
        for folder in folders {
            let folder = sessions::named(folder)?;
            let session = SessionReader::open(&folder)?;
            let profile = Profile::from_session(&session, &options)
                .with_context(|| folder.display().to_string())?;
            args.samples.check(&args.measures.shown(&profile), &[])?;
            diff.add(side, &profile)?;
            // The other sessions are read for the first one's event, if it has samples.
            if options.event.is_none() && profile.default_measure().is_none() {
                let event = profile.event(None)?.event;
                options.event = Some(profile.description(event).name.clone());
            }
        }
    }
    Ok(())
}

/// Returns the exit code, and prints the reason.
fn is_slower(diff: &Diff, bound: f64, level: f64) -> anyhow::Result<ExitCode> {
    let change: TotalChange = diff.total().context("--fail-if-slower")?;
    if change.probability.is_none() {
        bail!(
            "--fail-if-slower: the number of waits says nothing of how long they take, and exact counts have no error of sampling: give several sessions a side, as in diff A A2 A3 --against B B2 B3"
        );
    }
    let is_slower = change.is_slower(bound, level);
    let verdict = if is_slower { "slower" } else { "not slower" };
    output::message(&format!(
        "varid: B is {verdict} by more than {bound} % and more than chance (a p of at most {level:?}): {change}"
    ));
    Ok(if is_slower {
        ExitCode::from(SLOWER)
    } else {
        ExitCode::SUCCESS
    })
}
