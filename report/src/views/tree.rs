//! The call tree, top-down or bottom-up.

use std::borrow::Cow;

use super::{
    groups,
    kind::TableKind,
    measured::{self, Measured, OwnValue},
    rows::{self, Row},
};
use crate::{
    call_tree::{CallTree, TreeNode},
    columns::{Column, Columns, OutputFormat, Value},
    frames::ProfileSymbol,
    measures::{MeasureColumns, ShownMeasures},
    scope::Scope,
    shares::Share,
    sheet::{Sheet, SheetRole},
    view::{ReportTable, TableChoice, TableNeed, TreeDirection},
};

/// The longest prefix of a name. A longer one is cut at its left end.
const WIDEST_STEM: usize = 30;

/// A line of the tree.
#[derive(Debug)]
struct Line<'t, 'p> {
    node: &'t TreeNode,
    /// None for a frame without a function.
    row: Option<Row<'p>>,
    /// The connecting lines before the name.
    stem: String,
}

/// The top-down tree, which starts with the outermost frames.
pub static TOP_DOWN: TableKind = TableKind {
    table: ReportTable {
        name: "tree",
        aliases: &[],
        about: "Whole stacks, the outermost callers first",
        choice: TableChoice::OwnOption,
        rows: "tree",
        needs: &[TableNeed::Inlined],
        group: None,
        measures: &[],
    },
    sheets: |scope, format| sheets(scope, TreeDirection::TopDown, format),
};

/// The bottom-up tree, which starts with the leaves.
pub static BOTTOM_UP: TableKind = TableKind {
    table: ReportTable {
        name: "tree-bottom-up",
        aliases: &[],
        about: "Whole stacks, the leaves first",
        choice: TableChoice::OwnOption,
        rows: "tree-bottom-up",
        needs: &[TableNeed::Inlined],
        group: None,
        measures: &[],
    },
    sheets: |scope, format| sheets(scope, TreeDirection::BottomUp, format),
};

/// Makes one sheet with a line for each node, in preorder.
fn sheets<'s>(
    scope: &'s Scope<'_>,
    direction: TreeDirection,
    format: OutputFormat,
) -> Vec<Sheet<'s>> {
    let tree = CallTree::new(scope, direction);
    let width = scope.view.text.width;
    let images = scope.view.text.has_room_for_images();
    let columns = columns(direction, images, &scope.measures).of(format);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, format);
    for line in lines(scope, &tree) {
        sheet.push(&columns, scope, &line);
    }
    let hidden = tree.all_hidden();
    sheet.width = width;
    if format == OutputFormat::Text {
        sheet.intro = Some(match direction {
            TreeDirection::TopDown => {
                "Top-down: callers, and below them what they call. A single callee is not indented"
            }
            TreeDirection::BottomUp => {
                "Bottom-up: where samples were, and below that who called it. A single caller is not indented"
            }
        });
        sheet.folded = (hidden.nodes > 0).then(|| {
            let (value, unit) = (scope.count(hidden.total), scope.measures.count_unit());
            let (nodes, percent) = (hidden.nodes, scope.percent(hidden.total));
            format!(
                "(hidden by --percent-limit or -n: {nodes} branches, {value} {unit}, {percent:.2} %)"
            )
        });
    } else {
        sheet.hidden = hidden.nodes;
    }
    vec![sheet]
}

/// Returns the nodes with their prefixes.
fn lines<'t, 'p>(scope: &Scope<'p>, tree: &'t CallTree) -> Vec<Line<'t, 'p>> {
    let mut lines = Vec::with_capacity(tree.nodes.len());
    // For each node: the prefix of the lines below it, and the number of its children that have no line yet.
    let mut below: Vec<(String, usize)> = Vec::with_capacity(tree.nodes.len());
    // Top-level nodes are connected like children.
    let tops = tree.nodes.iter().filter(|node| node.parent.is_none());
    let tops = tops.count();
    let mut tops_left = tops;
    for node in &tree.nodes {
        let (stem, siblings, left) = match node.parent {
            Some(parent) => {
                let siblings = tree.nodes.get(parent).map_or(0, |parent| parent.children);
                let above = below.get_mut(parent);
                let (stem, left) = above.map_or((String::new(), 0), |(stem, left)| {
                    *left = left.saturating_sub(1);
                    (stem.clone(), *left)
                });
                (stem, siblings, left)
            }
            None => {
                tops_left = tops_left.saturating_sub(1);
                (String::new(), tops, tops_left)
            }
        };
        let (stem, rest) = match (siblings, left) {
            (1, _) => (stem.clone(), stem),
            (_, 0) => (format!("{stem}'- "), format!("{stem}   ")),
            _ => (format!("{stem}|- "), format!("{stem}|  ")),
        };
        let share = Share {
            own: node.own,
            total: node.total,
        };
        let row = node.symbol;
        let row = row.and_then(|symbol| rows::symbol_row(scope, symbol, share));
        lines.push(Line {
            node,
            row,
            stem: cut_left(stem),
        });
        below.push((cut_left(rest), node.children));
    }
    lines
}

/// Cuts the left end of an ASCII prefix and marks it with `>`.
fn cut_left(stem: String) -> String {
    match stem.len().checked_sub(WIDEST_STEM) {
        None | Some(0) => stem,
        Some(over) => {
            let kept = stem.get(over.saturating_add(1)..).unwrap_or_default();
            format!(">{kept}")
        }
    }
}

type LineColumn<'t, 'p> = Column<'p, Line<'t, 'p>>;

fn columns<'t, 'p: 't>(
    direction: TreeDirection,
    images: bool,
    measures: &ShownMeasures,
) -> Columns<'p, Line<'t, 'p>> {
    let depth: LineColumn = Column::new(|_, line: &Line<'t, 'p>| count(line.node.depth));
    let frames: LineColumn = Column::new(|_, line: &Line<'t, 'p>| count(line.node.frames));
    let labels = [depth.data("depth")].into_iter();
    Columns {
        labels: labels
            .chain(names(direction, images))
            .chain([frames.data("frames")])
            .collect(),
        shares: match measures.columns {
            MeasureColumns::Samples => sample_shares(direction),
            MeasureColumns::Each => measure_shares(direction, measures),
        },
    }
}

/// The name columns of nodes. `images` adds image names to text.
fn names<'t, 'p: 't>(direction: TreeDirection, images: bool) -> [LineColumn<'t, 'p>; 8] {
    let layer: LineColumn = Column::new(|_, line: &Line<'t, 'p>| {
        let layer = line.row.as_ref().and_then(Row::layer);
        layer.map(|layer| layer.name()).into()
    });
    let image: LineColumn =
        Column::new(|_, line: &Line<'t, 'p>| line.row.as_ref().and_then(Row::image).into());
    let image = match images {
        true => image.text("image name"),
        false => image,
    };
    let branch: LineColumn = Column::new(|_, line: &Line<'t, 'p>| {
        let name = line.name();
        let name = match line.node.frames {
            0 | 1 => name,
            frames => format!("{name} ({frames} deep)").into(),
        };
        let stem = line.stem.clone().into();
        Value::Branch { stem, name }
    });
    let symbol: LineColumn = Column::new(|_, line: &Line<'t, 'p>| {
        let symbol = line.symbol();
        symbol.map(|symbol| symbol.plain_name()).into()
    });
    let marked_symbol: LineColumn = Column::new(|_, line: &Line<'t, 'p>| line.name().into());
    let recorded: LineColumn = Column::new(|_, line: &Line<'t, 'p>| {
        let symbol = line.symbol();
        symbol.and_then(|symbol| symbol.recorded.as_deref()).into()
    });
    let signature: LineColumn = Column::new(|_, line: &Line<'t, 'p>| {
        let symbol = line.symbol();
        let signature = symbol.and_then(|symbol| symbol.signature.as_deref());
        signature.into()
    });
    let inlined: LineColumn = Column::new(|_, line: &Line<'t, 'p>| match line.symbol() {
        Some(symbol) if symbol.inlined => Value::True,
        _ => Value::Absent,
    });
    let calls = match direction {
        TreeDirection::TopDown => "calls",
        TreeDirection::BottomUp => "callers",
    };
    [
        layer.text("layer").data("layer"),
        image.data("image"),
        branch.text(calls),
        symbol.json("symbol"),
        marked_symbol.csv("symbol"),
        signature.json("signature"),
        recorded.json("recorded_symbol"),
        inlined.json("inlined"),
    ]
}

fn sample_shares<'t, 'p: 't>(direction: TreeDirection) -> Vec<LineColumn<'t, 'p>> {
    let total: LineColumn = Column::new(|_, line: &Line<'t, 'p>| line.node.total.get(0).into());
    let total_period: LineColumn =
        Column::new(|_, line: &Line<'t, 'p>| line.node.total.get(1).into());
    let total_percent: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'t, 'p>| {
        Value::Percent(scope.percent(line.node.total))
    });
    let own: LineColumn = Column::new(|_, line: &Line<'t, 'p>| line.node.own.get(0).into());
    let own_period: LineColumn = Column::new(|_, line: &Line<'t, 'p>| line.node.own.get(1).into());
    let own_percent: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'t, 'p>| {
        Value::Percent(scope.percent(line.node.own))
    });
    let hidden: LineColumn = Column::new(|_, line: &Line<'t, 'p>| count(line.node.hidden.nodes));
    let hidden_total: LineColumn =
        Column::new(|_, line: &Line<'t, 'p>| line.node.hidden.total.get(0).into());
    let hidden_period: LineColumn =
        Column::new(|_, line: &Line<'t, 'p>| line.node.hidden.total.get(1).into());
    let own = match direction {
        TreeDirection::TopDown => [
            own.data("self"),
            own_percent.text("self %").data("self_percent"),
            own_period.data("self_period"),
        ],
        TreeDirection::BottomUp => [
            own.data("outermost"),
            own_percent.data("outermost_percent"),
            own_period.data("outermost_period"),
        ],
    };
    let total = [
        total.data("total"),
        total_percent.text("total %").data("total_percent"),
        total_period.data("total_period"),
    ];
    let hidden = [
        hidden.data("hidden"),
        hidden_total.data("hidden_total"),
        hidden_period.data("hidden_period"),
    ];
    total.into_iter().chain(own).chain(hidden).collect()
}

impl Measured for Line<'_, '_> {
    fn share(&self) -> Share {
        Share {
            own: self.node.own,
            total: self.node.total,
        }
    }
}

/// The columns of named measures. Text has the percentages of the first one, as for samples.
fn measure_shares<'t, 'p: 't>(
    direction: TreeDirection,
    measures: &ShownMeasures,
) -> Vec<LineColumn<'t, 'p>> {
    let total: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'t, 'p>| {
        Value::Percent(scope.percent(line.node.total))
    });
    let own: LineColumn = Column::new(|scope: &Scope<'p>, line: &Line<'t, 'p>| {
        Value::Percent(scope.percent(line.node.own))
    });
    let hidden: LineColumn = Column::new(|_, line: &Line<'t, 'p>| count(line.node.hidden.nodes));
    let (of, own) = match direction {
        TreeDirection::TopDown => (OwnValue::Leaf, Some(own.text("self %"))),
        TreeDirection::BottomUp => (OwnValue::Outermost, None),
    };
    let numbers = measured::columns(measures, of).into_iter().map(|column| {
        match groups::is_named(&column, "%") || groups::is_named(&column, "total") {
            true => column.without_text(),
            false => column,
        }
    });
    let percents = [total.text("total %")].into_iter().chain(own);
    let columns = percents.chain(numbers);
    columns.chain([hidden.data("hidden")]).collect()
}

fn count<'p>(number: usize) -> Value<'p> {
    Value::Count(u64::try_from(number).unwrap_or(u64::MAX))
}

impl<'p> Line<'_, 'p> {
    fn symbol(&self) -> Option<&'p ProfileSymbol> {
        let symbol = self.row.as_ref().and_then(Row::symbol);
        symbol.map(|subject| subject.symbol)
    }

    fn name(&self) -> Cow<'p, str> {
        let unknown = || Cow::Borrowed("[unknown]");
        self.row.as_ref().map_or_else(unknown, Row::symbol_name)
    }
}
