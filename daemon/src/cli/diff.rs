//! The arguments of `varid diff`.

use super::report::{FormatArg, table_parser};
use super::selection::{MeasureArgs, NameArgs, SampleArgs};
use clap::Args;
use std::path::PathBuf;
use varid_report::ReportTable;

/// `varid diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub sides: SideArgs,
    /// One table [default: layers, then symbols].
    #[arg(long, value_parser = table_parser(|table| table.group.is_some()))]
    pub by: Option<&'static ReportTable>,
    #[command(flatten)]
    pub comparison: ComparisonArgs,
    /// Only this event of the sessions, with or without its modifiers [default: the first of A that has samples].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub rows: DiffRowArgs,
    #[command(flatten)]
    pub measures: MeasureArgs,
    /// Functions of one name are one row, in whichever file they are: for files that have another name in B.
    #[arg(long)]
    pub by_symbol_only: bool,
    #[command(flatten)]
    pub output: DiffOutputArgs,
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
}

/// Which sessions.
#[derive(Debug, Args)]
pub struct SideArgs {
    /// Two sessions, A and B, by folder or by name; with --against those of A.
    #[arg(value_name = "SESSION", required = true)]
    pub sessions: Vec<PathBuf>,
    /// The sessions of B. With several on a side, what varies from one to the next is not taken for a change.
    #[arg(long, value_name = "SESSION", num_args = 1..)]
    pub against: Vec<PathBuf>,
}

/// What is compared, and when it counts as different.
#[derive(Debug, Args)]
pub struct ComparisonArgs {
    /// Compare what rows took with what they called [default: by themselves].
    #[arg(long)]
    pub total: bool,
    /// Compare time or events, of commands a run, else a second [default: shares].
    #[arg(long)]
    pub absolute: bool,
    /// Rows are marked at this false discovery rate, and the total counts at this rate of false alarms.
    #[arg(long, value_name = "RATE", default_value = "0.05", value_parser = level)]
    pub level: f64,
    /// Exit code 3 if B took more than so many percent more than A in all, or in the --layer and --symbol that are chosen, and not by chance.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
}

/// How many rows.
#[derive(Debug, Args)]
pub struct DiffRowArgs {
    /// At most so many rows of a table.
    #[arg(short = 'n', long, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Only rows that have at least this share on one of the sides.
    #[arg(
        long,
        value_name = "PERCENT",
        visible_alias = "percent-limit",
        default_value = "0",
        hide_default_value = true
    )]
    pub min_percent: f64,
}

/// How the result looks.
#[derive(Debug, Args)]
pub struct DiffOutputArgs {
    /// On a terminal: whole names, however wide the lines get.
    #[arg(long)]
    pub wide: bool,
    /// On a terminal: small rows, too.
    #[arg(long)]
    pub all_rows: bool,
    /// A page with the tables and a flame graph for a browser, into FILE; no text. -: standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub html: Option<PathBuf>,
    /// For people or for programs.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
}

/// The sessions of each side.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    pub a: &'a [PathBuf],
    pub b: &'a [PathBuf],
}

/// Parses a probability that a test can use.
fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok();
    let level = level.filter(|level| *level > 0.0 && *level < 1.0);
    level.ok_or_else(|| "a rate is between 0 and 1: 0.05, 1e-6".to_owned())
}

/// Parses a percentage, with or without the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let number = number.filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a bound is a number of percent: 5, 2.5%".to_owned())
}

impl DiffArgs {
    /// The table that the arguments mean.
    pub fn table(&self) -> &'static ReportTable {
        self.by.unwrap_or_default()
    }
}

impl SideArgs {
    /// Returns the sessions, or None if there are not two sides.
    pub fn sides(&self) -> Option<Sides<'_>> {
        let (a, b) = match (self.sessions.as_slice(), self.against.as_slice()) {
            ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
            (_, []) => return None,
            sides => sides,
        };
        Some(Sides { a, b })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        diff: DiffArgs,
    }

    fn parsed(line: &str) -> Result<DiffArgs, clap::Error> {
        let words = std::iter::once("varid").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.diff)
    }

    #[test]
    fn sessions_stand_on_two_sides() {
        let sides = |line: &str| {
            let args = parsed(line).unwrap();
            let names = |side: &[PathBuf]| {
                let names = side.iter().map(|path| path.display().to_string());
                names.collect::<Vec<_>>().join(" ")
            };
            args.sides
                .sides()
                .map(|Sides { a, b }| (names(a), names(b)))
        };
        let of = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(sides("x y"), of("x", "y"));
        assert_eq!(sides("x y --against z w --by line"), of("x y", "z w"));
        assert_eq!(sides("x --against z"), of("x", "z"));
        assert_eq!(sides("x"), None);
        assert_eq!(sides("x y z"), None);
        assert!(parsed("--against z").is_err());
    }

    #[test]
    fn bounds_are_numbers_that_can_be_kept() {
        let bound = |line| parsed(line).unwrap().comparison.fail_if_slower;
        assert_eq!(bound("x y --fail-if-slower 5%"), Some(5.0));
        assert_eq!(bound("x y --fail-if-slower 0"), Some(0.0));
        for line in [
            "x y --fail-if-slower -1",
            "x y --fail-if-slower inf",
            "x y --level 0",
            "x y --level nan",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
