//! The selections of the user.

use std::path::PathBuf;

use varid_model::Layer;
use varid_report::LiveSpan;

use crate::filter::Filter;
use crate::snapshot::{LineRow, MethodKey, MethodRow, Request, Snapshot, ThreadRow};

/// The selected display, and the cursor.
#[derive(Debug, Clone)]
pub struct State {
    /// The table, which an opened method may cover.
    pub table: Table,
    /// The selected sessions.
    pub choice: Choice,
    /// The samples that count.
    pub span: LiveSpan,
    /// The event, counted from 0.
    pub event: usize,
    /// The rows of the table.
    pub rows: RowSelection,
    /// The text of a new filter that is being typed.
    pub typed: Option<String>,
    /// True if the display is frozen: sessions are not read.
    pub frozen: bool,
    /// The method whose lines are shown.
    pub opened: Option<MethodKey>,
    /// True if the list of keys is shown.
    pub help: bool,
    /// The cursor.
    pub cursor: Cursor,
}

/// Which rows are shown, and their order.
#[derive(Debug, Clone)]
pub struct RowSelection {
    /// The order of methods.
    pub order: Order,
    /// The filter of names.
    pub filter: Filter,
    /// The only layer that is shown, if one is selected.
    pub layer: Option<Layer>,
}

/// The place of the cursor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor {
    /// Its row, from 0.
    pub row: usize,
    /// Its row in the table that the opened method covers.
    pub behind: usize,
}

/// The kind of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Methods and functions.
    Methods,
    /// Threads.
    Threads,
    /// Sessions that can be chosen.
    Sessions,
}

impl Table {
    /// All tables, in the order of their headings.
    pub const ALL: [Self; 3] = [Self::Methods, Self::Threads, Self::Sessions];

    /// The heading.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Methods => "methods",
            Self::Threads => "threads",
            Self::Sessions => "sessions",
        }
    }

    /// The table after this one, in a circle.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Methods => Self::Threads,
            Self::Threads => Self::Sessions,
            Self::Sessions => Self::Methods,
        }
    }

    /// The table before this one, in a circle.
    pub(crate) const fn previous(self) -> Self {
        self.next().next()
    }
}

/// The selected sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All that are running or have been running since the start.
    All,
    /// The one in this folder.
    One(PathBuf),
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By their own share.
    Own,
    /// By their total share, including callees.
    Total,
    /// By name.
    Name,
}

impl Order {
    /// The name of the order.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Total => "total",
            Self::Name => "name",
        }
    }

    /// The order after this one, in a circle.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Own => Self::Total,
            Self::Total => Self::Name,
            Self::Name => Self::Own,
        }
    }
}

/// A row below an opened method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DetailRow<'s> {
    /// A line of it.
    Line(&'s LineRow),
    /// A caller.
    Caller(&'s MethodRow),
}

impl State {
    /// The initial state.
    #[must_use]
    pub fn new(choice: Choice) -> Self {
        Self {
            table: Table::Methods,
            choice,
            span: LiveSpan::Recent,
            event: 0,
            rows: RowSelection {
                order: Order::Own,
                filter: Filter::default(),
                layer: None,
            },
            typed: None,
            frozen: false,
            opened: None,
            help: false,
            cursor: Cursor::default(),
        }
    }

    /// The data that must be requested from the sessions.
    #[must_use]
    pub fn request(&self) -> Request {
        Request {
            span: self.span,
            event: self.event,
            opened: self.opened.clone(),
        }
    }

    /// The shown methods, in order.
    #[must_use]
    pub fn methods<'s>(&self, snapshot: &'s Snapshot) -> Vec<&'s MethodRow> {
        let shown = |row: &&MethodRow| {
            self.rows.layer.is_none_or(|layer| layer == row.key.layer)
                && self.rows.filter.shows(&row.key.name)
        };
        let mut rows: Vec<_> = snapshot.methods.iter().filter(shown).collect();
        self.sort(&mut rows);
        rows
    }

    /// The shown threads, in order.
    #[must_use]
    pub fn threads<'s>(&self, snapshot: &'s Snapshot) -> Vec<&'s ThreadRow> {
        let shown = |row: &&ThreadRow| {
            self.rows.filter.shows(&row.name) || self.rows.filter.shows(&row.process)
        };
        let mut rows: Vec<_> = snapshot.threads.iter().filter(shown).collect();
        rows.sort_by(|one, other| {
            let by_share = match self.rows.order {
                Order::Own | Order::Total => other.own.total_cmp(&one.own),
                Order::Name => one.name.cmp(&other.name),
            };
            by_share.then_with(|| {
                (one.pid, one.tid, &one.name).cmp(&(other.pid, other.tid, &other.name))
            })
        });
        rows
    }

    /// The lines of the opened method, those with the largest share first, then its callers.
    #[must_use]
    pub fn details<'s>(&self, snapshot: &'s Snapshot) -> Vec<DetailRow<'s>> {
        let mut lines: Vec<_> = snapshot.details.lines.iter().collect();
        lines.sort_by(|one, other| {
            let by_share = match self.rows.order {
                Order::Own => other.own.total_cmp(&one.own),
                Order::Total => other.total.total_cmp(&one.total),
                Order::Name => std::cmp::Ordering::Equal,
            };
            by_share.then_with(|| one.place.cmp(&other.place))
        });
        let mut callers: Vec<_> = snapshot.details.callers.iter().collect();
        callers.sort_by(|one, other| {
            let by_share = other.total.total_cmp(&one.total);
            by_share.then_with(|| one.key.cmp(&other.key))
        });
        let lines = lines.into_iter().map(DetailRow::Line);
        lines
            .chain(callers.into_iter().map(DetailRow::Caller))
            .collect()
    }

    /// The number of rows that the cursor can be on.
    #[must_use]
    pub fn rows(&self, snapshot: &Snapshot) -> usize {
        match (&self.opened, self.table) {
            (Some(_), _) => self.details(snapshot).len(),
            (None, Table::Methods) => self.methods(snapshot).len(),
            (None, Table::Threads) => self.threads(snapshot).len(),
            // The first row stands for all sessions.
            (None, Table::Sessions) => snapshot.sessions.len().saturating_add(1),
        }
    }

    fn sort(&self, rows: &mut [&MethodRow]) {
        rows.sort_by(|one, other| {
            let by_share = match self.rows.order {
                Order::Own => {
                    (other.own.total_cmp(&one.own)).then(other.total.total_cmp(&one.total))
                }
                Order::Total => {
                    (other.total.total_cmp(&one.total)).then(other.own.total_cmp(&one.own))
                }
                Order::Name => std::cmp::Ordering::Equal,
            };
            by_share.then_with(|| one.key.cmp(&other.key))
        });
    }
}
