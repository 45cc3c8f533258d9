//! The call tree, top-down or bottom-up.

use std::{borrow::Cow, io};

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
    sheet::{Cells, DeferredLines, Sheet, SheetLine, SheetRole, TakeLine},
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
    let columns = columns(scope, direction).of(format);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, format);
    let hidden = tree.all_hidden();
    sheet.width = scope.view.text.width;
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
    if !tree.nodes.is_empty() {
        let lines = TreeLines {
            scope,
            tree,
            direction,
            format,
        };
        sheet.lines.push(SheetLine::Deferred(Box::new(lines)));
    }
    vec![sheet]
}

/// A line for each node, in preorder.
#[derive(Debug)]
struct TreeLines<'s, 'p> {
    scope: &'s Scope<'p>,
    tree: CallTree,
    direction: TreeDirection,
    format: OutputFormat,
}

impl DeferredLines for TreeLines<'_, '_> {
    fn each(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        let columns = columns(self.scope, self.direction).of(self.format);
        let mut cells = Cells::new(self.scope, columns);
        let mut stems = Stems::new(&self.tree);
        for (index, node) in self.tree.nodes.iter().enumerate() {
            let share = Share {
                own: node.own,
                total: node.total,
            };
            let row = node.symbol;
            let line = Line {
                node,
                row: row.and_then(|symbol| rows::symbol_row(self.scope, symbol, share)),
                stem: stems.next(index, node),
            };
            take(Some(cells.of(&line)))?;
        }
        Ok(())
    }
}

/// Makes the prefixes of nodes, one after the other in preorder.
struct Stems {
    /// The last node and those above it. The first one stands above the top-level nodes, which are connected like children.
    path: Vec<Below>,
}

/// What stands before the lines below a node.
#[derive(Debug, Default)]
struct Below {
    /// None for what is above the tree.
    node: Option<usize>,
    prefix: String,
    children: usize,
    /// Number of children that have no line yet.
    left: usize,
}

impl Stems {
    fn new(tree: &CallTree) -> Self {
        let tops = tree.nodes.iter().filter(|node| node.parent.is_none());
        let tops = tops.count();
        let above = Below {
            children: tops,
            left: tops,
            ..Below::default()
        };
        Self { path: vec![above] }
    }

    /// Returns the prefix of the next node.
    fn next(&mut self, index: usize, node: &TreeNode) -> String {
        let parent = self
            .path
            .iter()
            .rposition(|below| below.node == node.parent);
        self.path
            .truncate(parent.map_or(0, |parent| parent.saturating_add(1)));
        let mut above = Below::default();
        let above = self.path.last_mut().unwrap_or(&mut above);
        above.left = above.left.saturating_sub(1);
        let prefix = &above.prefix;
        let (stem, prefix) = match (above.children, above.left) {
            (1, _) => (prefix.clone(), prefix.clone()),
            (_, 0) => (format!("{prefix}'- "), format!("{prefix}   ")),
            _ => (format!("{prefix}|- "), format!("{prefix}|  ")),
        };
        self.path.push(Below {
            node: Some(index),
            prefix: cut_left(prefix),
            children: node.children,
            left: node.children,
        });
        cut_left(stem)
    }
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

fn columns<'t, 'p: 't>(scope: &Scope<'p>, direction: TreeDirection) -> Columns<'p, Line<'t, 'p>> {
    let images = scope.view.text.has_room_for_images();
    let measures = &scope.measures;
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
