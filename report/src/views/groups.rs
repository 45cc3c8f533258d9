//! The tables by layer, image, symbol, line, thread, process, service and activity.

use super::{
    kind::TableKind,
    measured::{self, Measured, OwnValue},
    rows::{Row, Rows, rows},
};
use crate::{
    activity::Activity,
    columns::{Column, Columns, OutputFormat, Value},
    measures::{MeasureColumns, ShownMeasures},
    scope::Scope,
    shares::Share,
    sheet::{Sheet, SheetRole},
    view::{GroupBy, ReportTable, TableChoice, TableNeed, View},
    weights::Weight,
};

/// The name of the image column in text.
const IMAGE_NAME: &str = "image name";

/// The minimum width in columns for lines with their images.
const WIDE: usize = 100;

/// The default table: images, then symbols.
pub static OVERVIEW: TableKind = TableKind {
    table: ReportTable {
        name: "overview",
        aliases: &[],
        about: "Layers, images, symbols.",
        choice: TableChoice::OwnOption,
        rows: "symbol",
        needs: &[],
        group: None,
        measures: &[],
    },
    sheets: overview,
};

/// Defines a table for one kind of group.
macro_rules! group {
    ($name:ident: $group:ident, $aliases:expr, $needs:expr, $about:literal) => {
        pub static $name: TableKind = TableKind {
            table: ReportTable {
                name: GroupBy::$group.name(),
                aliases: &$aliases,
                about: $about,
                choice: TableChoice::ByName,
                rows: GroupBy::$group.name(),
                needs: &$needs,
                group: Some(GroupBy::$group),
                measures: &[],
            },
            sheets: |scope, format| sheets(scope, GroupBy::$group, format),
        };
    };
}

group!(IMAGE: Image, ["dso"], [], "Dex files, libraries, programs");
group!(SYMBOL: Symbol, ["sym"], [], "Methods and functions");
group!(
    LINE: Line, ["srcline"], [TableNeed::Lines, TableNeed::Inlined], "Source lines"
);
group!(THREAD: Thread, ["comm"], [], "Threads");
group!(PROCESS: Process, ["pid"], [], "Processes");
group!(
    SERVICE: Service, [], [], "Services: the configuration's sets of processes"
);
group!(LAYER: Layer, [], [], "App, framework, VM, native code, kernel");
group!(
    ACTIVITY: Activity, [], [], "A JVM's program, garbage collection, JIT compilation, class loading"
);

/// Methods with counted calls: the table of symbols with other default measures.
pub static CALLS: TableKind = TableKind {
    table: ReportTable {
        name: "calls",
        aliases: &[],
        about: "Methods with exact counts of their calls",
        choice: TableChoice::Hidden,
        rows: GroupBy::Symbol.name(),
        needs: &[],
        group: None,
        measures: &["calls", "returns", "unwinds"],
    },
    sheets: |scope, format| sheets(scope, GroupBy::Symbol, format),
};

/// Images, then symbols.
fn overview<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Vec<Sheet<'s>> {
    let images = match format {
        OutputFormat::Text | OutputFormat::Json => {
            let sheet = sheet(scope, GroupBy::Image, scope.view, format);
            let role = SheetRole::Images;
            Some(Sheet { role, ..sheet })
        }
        OutputFormat::Csv => None,
    };
    let symbols = sheet(scope, GroupBy::Symbol, scope.view, format);
    images.into_iter().chain([symbols]).collect()
}

/// One table.
fn sheets<'s>(scope: &'s Scope<'_>, by: GroupBy, format: OutputFormat) -> Vec<Sheet<'s>> {
    match (by, format) {
        // Every text report already starts with it.
        (GroupBy::Layer, OutputFormat::Text) => Vec::new(),
        _ => vec![sheet(scope, by, scope.view, format)],
    }
}

/// Makes a table of the rows of a view.
pub fn sheet<'s>(
    scope: &'s Scope<'_>,
    by: GroupBy,
    view: &View,
    format: OutputFormat,
) -> Sheet<'s> {
    let mut columns = columns(by, &scope.measures);
    let is_narrow = view.text.width.is_some_and(|width| width < WIDE);
    if by == GroupBy::Line && is_narrow {
        // The file of a line already identifies the image.
        for column in &mut columns.labels {
            if is_named(column, IMAGE_NAME) {
                *column = column.clone().without_text();
            }
        }
    }
    let columns = columns.of(format);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, format);
    let Rows { mut shown, hidden } = rows(scope, by, view);
    if format == OutputFormat::Text {
        sheet.folded = fold(scope, view.text.fold_below, &mut shown);
    }
    for row in &shown {
        sheet.push(&columns, scope, row);
    }
    (sheet.hidden, sheet.width) = (hidden, view.text.width);
    sheet
}

/// Returns true if text has a column under this name.
pub fn is_named<R>(column: &Column<'_, R>, name: &str) -> bool {
    let found = column.name(OutputFormat::Text);
    found.is_some_and(|found| found == name)
}

/// Removes the rows with small totals from a table. Returns the line that stands for them.
fn fold(scope: &Scope<'_>, below: f64, shown: &mut Vec<Row<'_>>) -> Option<String> {
    let large = |row: &Row| scope.percent(row.share.total) >= below;
    // A single row is not folded, because the folded line would be as long.
    if shown.iter().filter(|row| !large(row)).count() < 2 {
        return None;
    }
    let mut count = 0_usize;
    let mut own = Weight::default();
    shown.retain(|row| {
        let is_large = large(row);
        if !is_large {
            count = count.saturating_add(1);
            own.add(row.share.own);
        }
        is_large
    });
    let (value, unit) = (scope.count(own), scope.measures.count_unit());
    let percent = scope.percent(own);
    Some(format!(
        "({count} rows below {below} %: {value} {unit}, {percent:.2} %; --all-rows shows them)"
    ))
}

type RowColumn<'p> = Column<'p, Row<'p>>;

/// The columns of a table.
fn columns<'p>(by: GroupBy, measures: &ShownMeasures) -> Columns<'p, Row<'p>> {
    let mut shares = match measures.columns {
        MeasureColumns::Samples => sample_shares(),
        MeasureColumns::Each => measured::columns(measures, OwnValue::Leaf),
    };
    // Threads and processes have no callees, so total and own share would be equal.
    if let GroupBy::Process | GroupBy::Thread | GroupBy::Service | GroupBy::Activity = by {
        let mut in_text = 0_u8;
        for column in &mut shares {
            let is_total = in_text >= 2;
            if column.name(OutputFormat::Text).is_some() {
                in_text = in_text.saturating_add(1);
            }
            if is_total {
                *column = column.clone().without_text();
            }
        }
    }
    Columns {
        labels: labels(by),
        shares,
    }
}

impl Measured for Row<'_> {
    fn share(&self) -> Share {
        self.share
    }
}

fn labels<'p>(by: GroupBy) -> Vec<RowColumn<'p>> {
    let symbol_names = [image().text(IMAGE_NAME).data("image"), symbol_name()];
    let symbol_parts = [
        symbol().json("symbol"),
        signature().json("signature"),
        recorded().json("recorded_symbol"),
        inlined(),
    ];
    match by {
        GroupBy::Layer => vec![layer().text("layer").data("layer")],
        GroupBy::Image => vec![
            layer().data("layer"),
            image().text(IMAGE_NAME).data("image"),
        ],
        GroupBy::Symbol => {
            let names = [layer().data("layer")].into_iter().chain(symbol_names);
            names.chain(symbol_parts).collect()
        }
        GroupBy::Line => {
            let layer = layer().text("layer").data("layer");
            let source_line =
                Column::new(|_, row: &Row<'p>| source_line(row)).text_or_dash("source line");
            let file = Column::new(|_, row: &Row<'p>| row.line().map(|line| &*line.file).into())
                .data("file");
            let line = Column::new(|_, row: &Row<'p>| row.line().map(|line| line.line).into())
                .data("line");
            let approximate = Column::new(|scope: &Scope<'p>, row: &Row<'p>| {
                approximate(scope.count(row.approximate))
            })
            .data("approximate");
            let names = [layer, source_line].into_iter().chain(symbol_names);
            let line = [file, line, approximate];
            names.chain(symbol_parts).chain(line).collect()
        }
        GroupBy::Service => vec![
            Column::new(|_, row: &Row<'p>| row.service().into())
                .text_or_dash("service")
                .data("service"),
        ],
        GroupBy::Activity => vec![
            Column::new(|_, row: &Row<'p>| row.activity().map(Activity::name).into())
                .text("activity")
                .data("activity"),
        ],
        GroupBy::Process => process().into(),
        GroupBy::Thread => {
            let tid = Column::new(|_, row: &Row<'p>| row.tid().map(|tid| tid.get()).into());
            let thread = Column::new(|_, row: &Row<'p>| row.thread().into());
            let thread = [
                tid.text("tid").data("tid"),
                thread.text("thread").data("thread"),
            ];
            process().into_iter().chain(thread).collect()
        }
    }
}

/// Returns the label columns without shares.
pub fn labels_alone<'p>(by: GroupBy) -> Columns<'p, Row<'p>> {
    Columns {
        labels: labels(by),
        shares: Vec::new(),
    }
}

/// The labels of a method in a call graph, in JSON.
pub fn symbol_labels<'p>() -> Vec<RowColumn<'p>> {
    labels(GroupBy::Symbol)
}

/// The columns of a method in JSON.
pub fn symbol_columns<'p>(measures: &ShownMeasures) -> Columns<'p, Row<'p>> {
    columns(GroupBy::Symbol, measures)
}

fn layer<'p>() -> RowColumn<'p> {
    Column::new(|_, row| row.layer().map(|layer| layer.name()).into())
}

fn image<'p>() -> RowColumn<'p> {
    Column::new(|_, row| row.image().into())
}

/// The name, with a mark if it is inlined. JSON has a separate key.
fn symbol_name<'p>() -> RowColumn<'p> {
    let column = Column::new(|_, row: &Row<'p>| Value::Name(row.symbol_name()));
    column.text("symbol name").csv("symbol")
}

fn symbol<'p>() -> RowColumn<'p> {
    Column::new(|_, row| {
        let name = row.symbol().map(|subject| subject.symbol.plain_name());
        name.into()
    })
}

fn signature<'p>() -> RowColumn<'p> {
    Column::new(|_, row| {
        let symbol = row.symbol().map(|subject| subject.symbol);
        let signature = symbol.and_then(|symbol| symbol.signature.as_deref());
        signature.into()
    })
}

fn recorded<'p>() -> RowColumn<'p> {
    Column::new(|_, row| {
        let recorded = row
            .symbol()
            .and_then(|subject| subject.symbol.recorded.as_deref());
        recorded.into()
    })
}

fn inlined<'p>() -> RowColumn<'p> {
    let column = Column::new(|_, row: &Row<'p>| match row.symbol() {
        Some(subject) if subject.symbol.inlined => Value::True,
        _ => Value::Absent,
    });
    column.json("inlined")
}

/// `file:line` without the file's folder, as in perf. `file:~line` if some samples are approximate.
fn source_line<'p>(row: &Row<'p>) -> Value<'p> {
    let mark = if row.approximate.is_zero() { "" } else { "~" };
    // The line identifies the row, so it is never cut.
    let whole = row.line().map(|line| Value::Branch {
        stem: format!("{}:{mark}{}", line.file_name(), line.line).into(),
        name: "".into(),
    });
    whole.into()
}

/// The number of samples with an approximate instruction. Absent if 0.
pub fn approximate<'p>(samples: u64) -> Value<'p> {
    Some(samples).filter(|samples| *samples > 0).into()
}

fn process<'p>() -> [RowColumn<'p>; 2] {
    let pid = Column::new(|_, row: &Row<'p>| row.pid().map(|pid| pid.get()).into());
    let process = Column::new(|_, row: &Row<'p>| row.process().into());
    [
        pid.text("pid").data("pid"),
        process.text("process").data("process"),
    ]
}

/// The columns of samples.
fn sample_shares<'p>() -> Vec<RowColumn<'p>> {
    let own = || Column::new(|_, row: &Row| row.share.own.get(0).into());
    let total = || Column::new(|_, row: &Row| row.share.total.get(0).into());
    let own_percent =
        Column::new(|scope: &Scope, row: &Row| Value::Percent(scope.percent(row.share.own)));
    let total_percent =
        Column::new(|scope: &Scope, row: &Row| Value::Percent(scope.percent(row.share.total)));
    let own_period = Column::new(|_, row: &Row| row.share.own.get(1).into());
    let total_period = Column::new(|_, row: &Row| row.share.total.get(1).into());
    vec![
        own().text("samples").data("self"),
        // JSON has it before the percentages.
        total().json("total"),
        own_percent.text("%").data("self_percent"),
        total().text("total").csv("total"),
        total_percent.text("%").data("total_percent"),
        own_period.data("self_period"),
        total_period.data("total_period"),
    ]
}
