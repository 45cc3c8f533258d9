//! The call graph: each method with its callers and callees.

use std::{cmp::Ordering, io};

use super::{
    groups,
    kind::TableKind,
    measured,
    rows::{self, Row},
};
use crate::{
    columns::{Column, Columns, Object, OutputFormat, Value},
    frames::SymbolId,
    measures::{MeasureColumns, ShownMeasures},
    scope::{Scope, percent},
    shares::Share,
    sheet::{Cells, DeferredLines, Sheet, SheetLine, SheetRole, TakeLine},
    view::{GroupBy, ReportTable, TableChoice, TableNeed},
    weights::Weight,
};

/// The methods of a view with their callers and callees. A call is small, and there may be millions: what is written of
/// it is made when it is written.
#[derive(Debug)]
struct Graph<'s, 'p> {
    scope: &'s Scope<'p>,
    /// In the order of the table by symbol.
    methods: Vec<Row<'p>>,
    callers: Neighbours,
    callees: Neighbours,
    format: OutputFormat,
}

/// The callers of all symbols, or their callees. A recursive method is in both lists.
#[derive(Debug)]
struct Neighbours(Vec<Neighbour>);

/// A caller or callee.
#[derive(Debug, Clone, Copy)]
struct Neighbour {
    of: SymbolId,
    other: SymbolId,
    /// The samples with this caller and callee. Each sample counts once, even if the pair is in the stack several times.
    weight: Weight,
}

impl Neighbours {
    /// Sorts neighbours by the symbol that they belong to, and those of a symbol by descending share.
    fn new(scope: &Scope, mut neighbours: Vec<Neighbour>) -> Self {
        neighbours.sort_unstable_by(|one, other| {
            let by_symbol = one.of.cmp(&other.of);
            let by_share = || scope.value(other.weight).cmp(&scope.value(one.weight));
            let by_name = || compare_names(scope, one.other, other.other);
            by_symbol.then_with(by_share).then_with(by_name)
        });
        Self(neighbours)
    }

    /// Returns the neighbours of a symbol.
    fn of(&self, symbol: SymbolId) -> &[Neighbour] {
        let start = self.0.partition_point(|neighbour| neighbour.of < symbol);
        let end = self.0.partition_point(|neighbour| neighbour.of <= symbol);
        self.0.get(start..end).unwrap_or_default()
    }
}

/// Compares symbols by name, then by image.
fn compare_names(scope: &Scope, one: SymbolId, other: SymbolId) -> Ordering {
    let key = |id| {
        let symbol = scope.profile.frames.symbol(id);
        let name = symbol.map(|symbol| (symbol.name.as_str(), symbol.inlined));
        (
            name,
            scope.image_of(id).map(|image| image.name.as_str()),
            id,
        )
    };
    key(one).cmp(&key(other))
}

impl<'s, 'p> Graph<'s, 'p> {
    /// Returns the graph of a view, and the number of hidden methods.
    fn new(scope: &'s Scope<'p>, format: OutputFormat) -> (Self, usize) {
        let rows = rows::rows(scope, GroupBy::Symbol, scope.view);
        let symbol_of = |frame| scope.symbol_of(frame);
        let calls = scope.weights.by_call(symbol_of, symbol_of);
        let callers = calls
            .iter()
            .map(|&((other, of), weight)| Neighbour { of, other, weight });
        let callers = Neighbours::new(scope, callers.collect());
        let callees =
            calls
                .into_iter()
                .map(|((of, other), weight)| Neighbour { of, other, weight });
        let graph = Self {
            scope,
            methods: rows.shown,
            callers,
            callees: Neighbours::new(scope, callees.collect()),
            format,
        };
        (graph, rows.hidden)
    }

    /// Returns the lines of a method's callers or callees in order, without those that the view hides.
    fn lines<'g>(&'g self, method: &'g Row<'p>, side: Side) -> impl Iterator<Item = Line<'g, 'p>> {
        let neighbours = match side {
            Side::Caller => &self.callers,
            Side::Callee => &self.callees,
        };
        let symbol = method.symbol();
        let found = symbol.map(|symbol| neighbours.of(symbol.id));
        let line = move |neighbour: &Neighbour| {
            let line = Line {
                relation: Relation::Neighbour(side),
                method,
                other: rows::symbol_row(self.scope, neighbour.other, Share::default())?,
                weight: neighbour.weight,
            };
            let is_shown = line.percent(self.scope) >= self.scope.view.min_percent;
            is_shown.then_some(line)
        };
        found.unwrap_or_default().iter().filter_map(line)
    }

    fn cells<R>(&self, columns: Columns<'p, R>) -> Cells<'s, 'p, R> {
        Cells::new(self.scope, columns.of(self.format))
    }

    /// Like `opreport --callgraph`: callers are indented above the method; callees and the method's own samples are
    /// indented below it.
    fn text(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        let mut cells = self.cells(line_columns(&self.scope.measures));
        take(None)?;
        for method in &self.methods {
            for line in self.lines(method, Side::Caller) {
                take(Some(cells.of(&line)))?;
            }
            take(Some(cells.of(&Line::own(method, Relation::Method))))?;
            // The method's own samples are sorted among its callees.
            let value = |weight| self.scope.value(weight);
            let own = method.share.own;
            let mut own_line = (!own.is_zero()).then(|| Line::own(method, Relation::Own));
            for line in self.lines(method, Side::Callee) {
                if value(line.weight) <= value(own)
                    && let Some(own) = own_line.take()
                {
                    take(Some(cells.of(&own)))?;
                }
                take(Some(cells.of(&line)))?;
            }
            if let Some(own) = own_line {
                take(Some(cells.of(&own)))?;
            }
            take(None)?;
        }
        Ok(())
    }

    /// A row for each pair of caller and callee.
    fn csv(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        let mut cells = self.cells(line_columns(&self.scope.measures));
        for method in &self.methods {
            let lines = std::iter::once(Line::own(method, Relation::Own))
                .chain(self.lines(method, Side::Caller))
                .chain(self.lines(method, Side::Callee));
            for line in lines {
                take(Some(cells.of(&line)))?;
            }
        }
        Ok(())
    }

    /// The methods, each with the lists of its callers and callees.
    fn json(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        let mut cells = self.cells(groups::symbol_columns(&self.scope.measures));
        let labels = groups::symbol_labels();
        for method in &self.methods {
            let list = |side| {
                let lines = self.lines(method, side);
                let object = |line| neighbour_object(self.scope, &labels, &line);
                Value::List(lines.map(object).collect())
            };
            let lists = NEIGHBOURS.map(|(_, side)| list(side));
            take(Some(cells.with(method, lists)))?;
        }
        Ok(())
    }
}

/// The lists of a method in JSON.
const NEIGHBOURS: [(&str, Side); 2] = [("callers", Side::Caller), ("callees", Side::Callee)];

impl DeferredLines for Graph<'_, '_> {
    fn each(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        match self.format {
            OutputFormat::Text => self.text(take),
            OutputFormat::Json => self.json(take),
            OutputFormat::Csv => self.csv(take),
        }
    }
}

/// A line of the graph: a method, one of its callers or callees, or its own samples.
#[derive(Debug, Clone)]
struct Line<'m, 'p> {
    relation: Relation,
    /// The method that the line belongs to. The percentages of its callers and callees refer to its total.
    method: &'m Row<'p>,
    /// The caller or callee without a share, or the method itself.
    other: Row<'p>,
    weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The method with its total.
    Method,
    Neighbour(Side),
    /// The method's own samples.
    Own,
}

/// The side of a method that a neighbour is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Caller,
    Callee,
}

impl<'m, 'p> Line<'m, 'p> {
    fn own(method: &'m Row<'p>, relation: Relation) -> Self {
        Self {
            relation,
            method,
            other: method.clone(),
            weight: method.share.own,
        }
    }

    fn is_method(&self) -> bool {
        self.relation == Relation::Method
    }

    /// Returns the percentage in the method's total.
    fn percent(&self, scope: &Scope) -> f64 {
        let all = self.method.share.total;
        percent(scope.value(self.weight), scope.value(all))
    }
}

/// The table.
pub static TABLE: TableKind = TableKind {
    table: ReportTable {
        name: "callgraph",
        aliases: &[],
        about: "Callers, then the method, then its callees",
        choice: TableChoice::OwnOption,
        rows: "symbol",
        needs: &[TableNeed::Inlined],
        group: None,
        measures: &[],
    },
    sheets,
};

/// Makes one sheet: the methods with lists of callers and callees in JSON, otherwise the lines of the graph.
fn sheets<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Vec<Sheet<'s>> {
    let mut sheet = match format {
        OutputFormat::Json => {
            let columns = groups::symbol_columns(&scope.measures).of(format);
            let mut sheet = Sheet::new(SheetRole::Rows, &columns, format);
            sheet.header.extend(NEIGHBOURS.map(|(key, _)| key.into()));
            sheet
        }
        OutputFormat::Text | OutputFormat::Csv => {
            let columns = line_columns(&scope.measures).of(format);
            Sheet::new(SheetRole::Rows, &columns, format)
        }
    };
    if format == OutputFormat::Text {
        sheet.intro = Some(
            "Callers stand above each method, callees below; their percentages are of the method's total",
        );
        sheet.width = scope.view.text.width;
    }
    let (graph, hidden) = Graph::new(scope, format);
    sheet.hidden = hidden;
    sheet.lines.push(SheetLine::Deferred(Box::new(graph)));
    vec![sheet]
}

type LineColumn<'m, 'p> = Column<'p, Line<'m, 'p>>;

/// The columns of the graph's lines.
fn line_columns<'m, 'p: 'm>(measures: &ShownMeasures) -> Columns<'p, Line<'m, 'p>> {
    let labels = text_labels().into_iter().chain(csv_labels());
    let shares = text_values(measures)
        .into_iter()
        .chain(csv_values(measures));
    Columns {
        labels: labels.collect(),
        shares: shares.collect(),
    }
}

/// The names in text. Callers and callees are indented.
fn text_labels<'m, 'p: 'm>() -> [LineColumn<'m, 'p>; 2] {
    let image: LineColumn = Column::new(|_, line: &Line<'m, 'p>| {
        let name = line.other.image().unwrap_or_default();
        match line.relation {
            Relation::Method => name.into(),
            _ => format!("  {name}").into(),
        }
    });
    let symbol: LineColumn = Column::new(|_, line: &Line<'m, 'p>| {
        let name = line.other.symbol_name();
        let stem = "  ".into();
        match line.relation {
            Relation::Method => Value::Name(name),
            Relation::Own => Value::Branch {
                stem,
                name: format!("{name} [self]").into(),
            },
            Relation::Neighbour(_) => Value::Branch { stem, name },
        }
    });
    [image.text("image name"), symbol.text("symbol name")]
}

/// The names of a pair in CSV.
fn csv_labels<'m, 'p: 'm>() -> [LineColumn<'m, 'p>; 7] {
    fn layer<'p>(row: &Row<'p>) -> Value<'p> {
        row.layer().map(|layer| layer.name()).into()
    }
    let relation: LineColumn = Column::new(|_, line: &Line<'m, 'p>| {
        let name = match line.relation {
            Relation::Method | Relation::Own => "self",
            Relation::Neighbour(Side::Caller) => "caller",
            Relation::Neighbour(Side::Callee) => "callee",
        };
        name.into()
    });
    [
        Column::new(|_, line: &Line<'m, 'p>| layer(line.method)).csv("layer"),
        Column::new(|_, line: &Line<'m, 'p>| line.method.image().into()).csv("image"),
        Column::new(|_, line: &Line<'m, 'p>| line.method.symbol_name().into()).csv("symbol"),
        relation.csv("relation"),
        Column::new(|_, line: &Line<'m, 'p>| layer(&line.other)).csv("other_layer"),
        Column::new(|_, line: &Line<'m, 'p>| line.other.image().into()).csv("other_image"),
        Column::new(|_, line: &Line<'m, 'p>| line.other.symbol_name().into()).csv("other_symbol"),
    ]
}

/// The values in text: percentages of the method and of the whole.
fn text_values<'m, 'p: 'm>(measures: &ShownMeasures) -> [LineColumn<'m, 'p>; 4] {
    let value: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'m, 'p>| {
        let value = scope.count(line.weight);
        if line.is_method() {
            value.into()
        } else {
            format!("  {value}").into()
        }
    });
    let share: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'m, 'p>| {
        Value::Percent(if line.is_method() {
            scope.percent(line.weight)
        } else {
            line.percent(scope)
        })
    });
    let total: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'m, 'p>| {
        let total = scope.count(line.method.share.total);
        line.is_method().then_some(total).into()
    });
    let total_share: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'m, 'p>| {
        let percent = scope.percent(line.method.share.total);
        let shown = line.is_method().then_some(Value::Percent(percent));
        shown.unwrap_or(Value::Absent)
    });
    [
        value.text(value_name(measures)),
        share.text("%"),
        total.text("total"),
        total_share.text("%"),
    ]
}

/// The name of the values in text.
fn value_name(measures: &ShownMeasures) -> String {
    let first = measures.list.first();
    first.map_or_else(String::new, |measure| measure.name.clone())
}

/// The values of a pair in CSV: samples with percentage and period, or each measure with its percentage.
fn csv_values<'m, 'p: 'm>(measures: &ShownMeasures) -> Vec<Column<'p, Line<'m, 'p>>> {
    fn value<'p>(_: &Scope<'p>, line: &Line<'_, 'p>, place: usize) -> Value<'p> {
        line.weight.get(place).into()
    }
    fn share<'p>(_: &Scope<'p>, line: &Line<'_, 'p>, place: usize) -> Value<'p> {
        let all = line.method.share.total;
        Value::Percent(percent(line.weight.get(place), all.get(place)))
    }
    if measures.are_samples() {
        let percent = Column::new(|scope: &Scope<'p>, line: &Line<'m, 'p>| {
            Value::Percent(line.percent(scope))
        });
        return vec![
            Column::of_measure(value, 0).csv("samples"),
            percent.csv("percent"),
            Column::of_measure(value, 1).csv("period"),
        ];
    }
    let measures = measures.list.iter().enumerate();
    measures
        .flat_map(|(place, measure)| {
            [
                Column::of_measure(value, place).csv(measure.name.clone()),
                Column::of_measure(share, place).csv(format!("{} percent", measure.name)),
            ]
        })
        .collect()
}

fn neighbour_object<'p>(
    scope: &Scope<'p>,
    labels: &[Column<'p, Row<'p>>],
    line: &Line<'_, 'p>,
) -> Object<'p> {
    let object = Object::new(labels, scope, &line.other);
    let (weight, all) = (line.weight, line.method.share.total);
    match scope.measures.columns {
        MeasureColumns::Samples => object.with([
            ("samples", weight.get(0).into()),
            ("period", weight.get(1).into()),
            ("percent", Value::Percent(line.percent(scope))),
        ]),
        MeasureColumns::Each => object.with([measured::of_neighbour(scope, weight, all)]),
    }
}
