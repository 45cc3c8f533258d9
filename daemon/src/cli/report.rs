//! The arguments of `varid report`.

use super::selection::{InputArgs, MeasureArgs, NameArgs, SampleArgs};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use varid_report::{GroupBy, OutputFormat, ReportTable, RowOrder, TableChoice, TreeDirection};

/// `varid report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub table: TableArgs,
    /// Only this event of the session, with or without its modifiers [default: one after the
    /// other; of JSON and CSV the first that has samples].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub rows: RowArgs,
    #[command(flatten)]
    pub measures: MeasureArgs,
    #[command(flatten)]
    pub text: TextArgs,
    #[command(flatten)]
    pub page: PageArgs,
    /// For people or for programs.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
}

/// Which table, and the order of its rows.
#[derive(Debug, Args)]
pub struct TableArgs {
    /// One table, after that of layers [default: layers, images, symbols].
    #[arg(long, value_parser = table_parser(|_| true), conflicts_with_all = ["callgraph", "tree"])]
    pub by: Option<&'static ReportTable>,
    /// Callers, then the method, then its callees, each with its share.
    #[arg(short = 'g', long, alias = "call-graph")]
    pub callgraph: bool,
    /// Whole stacks as a tree: top-down, callers first, or bottom-up, leaves first.
    #[arg(
        long,
        value_enum,
        value_name = "FROM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "top-down",
        conflicts_with = "callgraph"
    )]
    pub tree: Option<TreeArg>,
    /// Sort rows by self, total or name; or perf's keys for a table: comm, pid, dso, symbol, srcline.
    #[arg(long, value_name = "KEY", value_parser = sort_key, conflicts_with = "tree")]
    pub sort: Option<SortArg>,
    /// The shares of all events in one table, and of a group the ratios; by symbol, or what --by says.
    #[arg(long, conflicts_with_all = ["callgraph", "tree", "measure"])]
    pub group: bool,
    /// The same as --sort total, as perf has it.
    #[arg(long, hide = true, conflicts_with_all = ["no_children", "tree"])]
    pub children: bool,
    /// The same as --sort self, as perf has it.
    #[arg(long, hide = true, conflicts_with = "tree")]
    pub no_children: bool,
    /// Text, as it is anyway; as perf has it.
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// How many rows.
#[derive(Debug, Args)]
pub struct RowArgs {
    /// At most so many rows of a table, or lines of a tree.
    #[arg(short = 'n', long, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Only rows of at least this share [default: 0; of a tree 0.5].
    #[arg(long, value_name = "PERCENT", visible_alias = "percent-limit")]
    pub min_percent: Option<f64>,
}

/// How text looks on a terminal.
#[derive(Debug, Args)]
pub struct TextArgs {
    /// On a terminal: whole names, however wide the lines get.
    #[arg(long)]
    pub wide: bool,
    /// On a terminal: small rows and all that is missing, too.
    #[arg(long)]
    pub all_rows: bool,
}

/// A page instead of text.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// A page with all views for a browser, into FILE; no text. -: standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "callgraph", "tree", "sort", "group", "limit", "min_percent", "format"])]
    pub html: Option<PathBuf>,
    /// With --html: the sources that it shows are in this folder, or in this archive (jar, zip, apk). May be repeated.
    #[arg(
        long,
        value_name = "DIR|JAR|APK",
        visible_alias = "source",
        requires = "html"
    )]
    pub source_path: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TreeArg {
    /// From the outermost callers down.
    #[value(alias = "caller")]
    TopDown,
    /// From the leaves up to their callers.
    #[value(alias = "callee")]
    BottomUp,
}

/// What `--sort` means: an order of rows, or a table by perf's name.
#[derive(Debug, Clone, Copy)]
pub enum SortArg {
    Order(RowOrder),
    By(&'static ReportTable),
}

/// Parses one of varid's keys, or perf's keys, separated by commas.
fn sort_key(text: &str) -> Result<SortArg, String> {
    match text {
        "self" => return Ok(SortArg::Order(RowOrder::Own)),
        "total" => return Ok(SortArg::Order(RowOrder::Total)),
        "name" => return Ok(SortArg::Order(RowOrder::Name)),
        _ => {}
    }
    let mut keys: Vec<_> = text
        .split(',')
        .map(|key| match key.trim() {
            "sym" => "symbol",
            key => key,
        })
        .collect();
    keys.sort_unstable();
    let by = match keys[..] {
        ["comm"] | ["tid"] | ["comm", "tid"] | ["comm", "pid"] => GroupBy::Thread,
        ["pid"] => GroupBy::Process,
        ["dso"] => GroupBy::Image,
        ["symbol"] | ["dso", "symbol"] => GroupBy::Symbol,
        ["srcline"] | ["srcline", "symbol"] | ["dso", "srcline", "symbol"] => GroupBy::Line,
        _ => {
            return Err(
                "no table has these keys: there are self, total and name for an order, and comm, pid, dso, symbol, dso,symbol and \
                 srcline for a table; --thread, --app and --focus choose what is in it"
                    .to_owned(),
            );
        }
    };
    Ok(SortArg::By(ReportTable::by(by)))
}

/// Parses the name of a table that passes a test.
pub fn table_parser(
    is_taken: fn(&ReportTable) -> bool,
) -> impl TypedValueParser<Value = &'static ReportTable> {
    let taken = ReportTable::all()
        .filter(move |table| table.choice != TableChoice::OwnOption && is_taken(table));
    let value = |table: &'static ReportTable| {
        let value = PossibleValue::new(table.name).help(table.about);
        value
            .aliases(table.aliases.iter().copied())
            .hide(table.choice == TableChoice::Hidden)
    };
    let names = PossibleValuesParser::new(taken.map(value));
    names.try_map(|name| ReportTable::named(&name).ok_or("no table has this name"))
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatArg {
    Text,
    Json,
    Csv,
}

impl From<FormatArg> for OutputFormat {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Text => Self::Text,
            FormatArg::Json => Self::Json,
            FormatArg::Csv => Self::Csv,
        }
    }
}

impl From<TreeArg> for TreeDirection {
    fn from(tree: TreeArg) -> Self {
        match tree {
            TreeArg::TopDown => Self::TopDown,
            TreeArg::BottomUp => Self::BottomUp,
        }
    }
}

impl ReportArgs {
    /// Returns the minimum share of a row.
    pub fn min_percent(&self) -> f64 {
        /// perf's default for call graphs.
        const TREE: f64 = 0.5;
        let default = if self.table.tree.is_some() { TREE } else { 0.0 };
        self.rows.min_percent.unwrap_or(default)
    }
}

impl TableArgs {
    /// The table that the arguments mean.
    pub fn table(&self) -> &'static ReportTable {
        let by = match self.sort {
            Some(SortArg::By(by)) => self.by.or(Some(by)),
            _ => self.by,
        };
        match (self.tree, by, self.callgraph) {
            (Some(tree), ..) => ReportTable::tree(tree.into()),
            (None, _, true) => ReportTable::CALLGRAPH,
            (None, Some(by), false) => by,
            (None, None, false) if self.group => ReportTable::by(GroupBy::Symbol),
            (None, None, false) => ReportTable::OVERVIEW,
        }
    }

    /// Whether each row has the shares of all events.
    pub fn is_side_by_side(&self) -> bool {
        self.group && self.table().group.is_some()
    }

    /// The order of the rows that the arguments mean.
    pub const fn order(&self) -> RowOrder {
        match self.sort {
            Some(SortArg::Order(order)) => order,
            _ if self.children => RowOrder::Total,
            _ => RowOrder::Own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        report: ReportArgs,
    }

    fn parsed(line: &str) -> Result<ReportArgs, clap::Error> {
        let words = std::iter::once("varid").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.report)
    }

    #[test]
    fn perf_s_words_for_a_table_mean_ours() {
        let by = ReportTable::by;
        for (line, table) in [
            ("--sort dso", by(GroupBy::Image)),
            ("--sort sym,dso", by(GroupBy::Symbol)),
            ("--sort comm", by(GroupBy::Thread)),
            ("--by srcline", by(GroupBy::Line)),
            ("--tree session", ReportTable::tree(TreeDirection::TopDown)),
            ("--tree=callee", ReportTable::tree(TreeDirection::BottomUp)),
            ("--no-children --stdio", ReportTable::OVERVIEW),
            ("--no-children --sort symbol", by(GroupBy::Symbol)),
            ("-g session", ReportTable::CALLGRAPH),
            ("--sort total", ReportTable::OVERVIEW),
            ("--by calls", ReportTable::named("calls").unwrap()),
            ("--group", by(GroupBy::Symbol)),
            ("--group --sort dso", by(GroupBy::Image)),
        ] {
            assert_eq!(parsed(line).unwrap().table.table(), table, "{line}");
        }
        let order = |line| parsed(line).unwrap().table.order();
        assert_eq!(order("--children"), RowOrder::Total);
        assert_eq!(order("--children --sort dso"), RowOrder::Total);
        assert_eq!(order("--sort name --by image"), RowOrder::Name);
        assert_eq!(order("--no-children"), RowOrder::Own);
        let limits = |line| {
            let args = parsed(line).unwrap();
            (args.rows.limit, args.min_percent())
        };
        assert_eq!(limits("--percent-limit 2 -n 5"), (Some(5), 2.0));
        assert_eq!(limits("--tree"), (None, 0.5));
        assert_eq!(limits("--callgraph"), (None, 0.0));
        let session = parsed("--tree session").unwrap().input.session;
        assert_eq!(session, Some("session".into()));
    }

    #[test]
    fn what_no_table_has_is_refused() {
        let error = parsed("--sort comm,dso,sym").unwrap_err().to_string();
        assert!(error.contains("dso,symbol"), "{error}");
        for line in ["--tree --by image", "--focus *.draw", "--time 3..1"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
