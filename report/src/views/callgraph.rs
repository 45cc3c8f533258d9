//! The call graph: each method with its callers and callees.

use std::{cmp::Reverse, collections::HashMap};

use super::{
    groups,
    kind::TableKind,
    measured,
    rows::{self, Row},
};
use crate::{
    columns::{Column, Columns, Object, OutputFormat, Sheet, SheetLine, SheetRole, Value},
    frames::SymbolId,
    measures::{MeasureColumns, ShownMeasures},
    scope::{Scope, percent},
    shares::Share,
    view::{GroupBy, ReportTable, TableChoice, TableNeed},
    weights::Weight,
};

/// A method with its callers and callees.
#[derive(Debug, Clone)]
struct Method<'p> {
    /// The method. The percentages of its callers and callees refer to its total.
    row: Row<'p>,
    /// Its callers, sorted by descending share.
    callers: Vec<Neighbour<'p>>,
    /// Its callees, sorted by descending share. A recursive method is in both lists.
    callees: Vec<Neighbour<'p>>,
}

/// A caller or callee.
#[derive(Debug, Clone)]
struct Neighbour<'p> {
    /// The row, without its own share.
    row: Row<'p>,
    /// The samples with this caller and callee. Each sample counts once, even if the pair is in the stack several times.
    weight: Weight,
}

/// Returns the methods of a view in the order of its table by symbol, and the number of hidden ones.
fn methods<'p>(scope: &Scope<'p>) -> (Vec<Method<'p>>, usize) {
    let rows = rows::rows(scope, GroupBy::Symbol, scope.view);
    let (mut callers, mut callees): (Neighbours, Neighbours) = Default::default();
    let symbol_of = |frame| scope.symbol_of(frame);
    for ((caller, callee), weight) in scope.weights.by_call(symbol_of, symbol_of) {
        callers.entry(callee).or_default().push((caller, weight));
        callees.entry(caller).or_default().push((callee, weight));
    }
    let neighbours = |of: &mut Neighbours, row: &Row| {
        let id = row.symbol().map(|symbol| symbol.id);
        let found = id.and_then(|id| of.remove(&id)).unwrap_or_default();
        sorted(scope, found, row.share.total)
    };
    let method = |row: Row<'p>| Method {
        callers: neighbours(&mut callers, &row),
        callees: neighbours(&mut callees, &row),
        row,
    };
    (rows.shown.into_iter().map(method).collect(), rows.hidden)
}

type Neighbours = HashMap<SymbolId, Vec<(SymbolId, Weight)>>;

fn sorted<'p>(
    scope: &Scope<'p>,
    found: Vec<(SymbolId, Weight)>,
    all: Weight,
) -> Vec<Neighbour<'p>> {
    let value = |neighbour: &Neighbour| scope.value(neighbour.weight);
    let mut neighbours: Vec<Neighbour> = found
        .into_iter()
        .filter_map(|(id, weight)| {
            let row = rows::symbol_row(scope, id, Share::default())?;
            Some(Neighbour { row, weight })
        })
        .filter(|neighbour| percent(value(neighbour), scope.value(all)) >= scope.view.min_percent)
        .collect();
    let order = |neighbour: &Neighbour<'p>| {
        let symbol = neighbour.row.symbol();
        let name = symbol.map(|symbol| (symbol.symbol.name.as_str(), symbol.symbol.inlined));
        let id = symbol.map(|symbol| symbol.id);
        (Reverse(value(neighbour)), name, neighbour.row.image(), id)
    };
    neighbours.sort_by(|one, other| order(one).cmp(&order(other)));
    neighbours
}

/// A line of the graph: a method, one of its callers or callees, or its own samples.
#[derive(Debug, Clone)]
struct Line<'m, 'p> {
    relation: Relation,
    /// The method that the line belongs to.
    method: &'m Row<'p>,
    /// The caller or callee, or the method itself.
    other: &'m Row<'p>,
    weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The method with its total.
    Method,
    Caller,
    Callee,
    /// The method's own samples.
    Own,
}

impl<'m, 'p> Line<'m, 'p> {
    const fn neighbour(method: &'m Method<'p>, relation: Relation, of: &'m Neighbour<'p>) -> Self {
        Self {
            relation,
            method: &method.row,
            other: &of.row,
            weight: of.weight,
        }
    }

    const fn own(method: &'m Method<'p>, relation: Relation) -> Self {
        Self {
            relation,
            method: &method.row,
            other: &method.row,
            weight: method.row.share.own,
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
fn sheets<'p>(scope: &Scope<'p>, format: OutputFormat) -> Vec<Sheet<'p>> {
    let (methods, hidden) = methods(scope);
    let sheet = match format {
        OutputFormat::Text => text(scope, &methods),
        OutputFormat::Json => json(scope, &methods),
        OutputFormat::Csv => csv(scope, &methods),
    };
    vec![Sheet { hidden, ..sheet }]
}

/// Like `opreport --callgraph`: callers are indented above the method; callees and the method's own samples are
/// indented below it.
fn text<'p>(scope: &Scope<'p>, methods: &[Method<'p>]) -> Sheet<'p> {
    let columns = line_columns(&scope.measures).of(OutputFormat::Text);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, OutputFormat::Text);
    sheet.intro = Some(
        "Callers stand above each method, callees below; their percentages are of the method's total",
    );
    sheet.width = scope.view.text.width;
    sheet.lines.push(SheetLine::Rule);
    for method in methods {
        let line = |relation, neighbour| Line::neighbour(method, relation, neighbour);
        let callers = method.callers.iter();
        let mut lines: Vec<Line> = callers
            .map(|caller| line(Relation::Caller, caller))
            .collect();
        lines.push(Line::own(method, Relation::Method));
        // The method's own samples are sorted among its callees.
        let own = method.row.share.own;
        let more = |callee: &&Neighbour| scope.value(callee.weight) > scope.value(own);
        let (before, after): (Vec<_>, Vec<_>) = method.callees.iter().partition(more);
        lines.extend(
            before
                .into_iter()
                .map(|callee| line(Relation::Callee, callee)),
        );
        if !own.is_zero() {
            lines.push(Line::own(method, Relation::Own));
        }
        lines.extend(
            after
                .into_iter()
                .map(|callee| line(Relation::Callee, callee)),
        );
        for line in &lines {
            sheet.push(&columns, scope, line);
        }
        sheet.lines.push(SheetLine::Rule);
    }
    sheet
}

/// Makes a row for each pair of caller and callee, from the methods' lists.
fn csv<'p>(scope: &Scope<'p>, methods: &[Method<'p>]) -> Sheet<'p> {
    let columns = line_columns(&scope.measures).of(OutputFormat::Csv);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, OutputFormat::Csv);
    for method in methods {
        let line = |relation, neighbour| Line::neighbour(method, relation, neighbour);
        let callers = method.callers.iter();
        let callees = method.callees.iter();
        let lines = std::iter::once(Line::own(method, Relation::Own))
            .chain(callers.map(|caller| line(Relation::Caller, caller)))
            .chain(callees.map(|callee| line(Relation::Callee, callee)));
        for line in lines {
            sheet.push(&columns, scope, &line);
        }
    }
    sheet
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
        let stem = "  ".to_owned();
        match line.relation {
            Relation::Method => Value::Name(name),
            Relation::Own => Value::Branch {
                stem,
                name: format!("{name} [self]").into(),
            },
            Relation::Caller | Relation::Callee => Value::Branch { stem, name },
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
            Relation::Caller => "caller",
            Relation::Callee => "callee",
        };
        name.into()
    });
    [
        Column::new(|_, line: &Line<'m, 'p>| layer(line.method)).csv("layer"),
        Column::new(|_, line: &Line<'m, 'p>| line.method.image().into()).csv("image"),
        Column::new(|_, line: &Line<'m, 'p>| line.method.symbol_name().into()).csv("symbol"),
        relation.csv("relation"),
        Column::new(|_, line: &Line<'m, 'p>| layer(line.other)).csv("other_layer"),
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

/// The methods, each with the lists of its callers and callees.
fn json<'p>(scope: &Scope<'p>, methods: &[Method<'p>]) -> Sheet<'p> {
    let row_columns = groups::symbol_columns(&scope.measures).of(OutputFormat::Json);
    let mut sheet = Sheet::new(SheetRole::Rows, &row_columns, OutputFormat::Json);
    sheet.header.extend(["callers", "callees"].map(Into::into));
    for method in methods {
        sheet.push(&row_columns, scope, &method.row);
        let list = |neighbours: &[Neighbour<'p>]| {
            let objects = neighbours
                .iter()
                .map(|neighbour| neighbour_object(scope, method, neighbour));
            Value::List(objects.collect())
        };
        let lists = [list(&method.callers), list(&method.callees)];
        if let Some(SheetLine::Cells(cells)) = sheet.lines.last_mut() {
            cells.extend(lists);
        }
    }
    sheet
}

fn neighbour_object<'p>(
    scope: &Scope<'p>,
    method: &Method<'p>,
    neighbour: &Neighbour<'p>,
) -> Object<'p> {
    let object = Object::new(&groups::symbol_labels(), scope, &neighbour.row);
    let (weight, all) = (neighbour.weight, method.row.share.total);
    match scope.measures.columns {
        MeasureColumns::Samples => object.with([
            ("samples", weight.get(0).into()),
            ("period", weight.get(1).into()),
            (
                "percent",
                Value::Percent(percent(scope.value(weight), scope.value(all))),
            ),
        ]),
        MeasureColumns::Each => object.with([measured::of_neighbour(scope, weight, all)]),
    }
}
