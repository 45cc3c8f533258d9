//! Compares the sessions of two sides and tests whether the differences are significant.
//!
//! | question | file |
//! |---|---|
//! | what did each row take in one session | `session` |
//! | which rows differ, and how surely | `comparison` |
//! | is one side slower as a whole | `total` |
//! | how likely is a difference by chance | `statistics` |
//! | by what is that tested | `tested_by` |
//! | which calling contexts differ | `tree` |
//! | which image has another name on the other side | `renamed_images` |
//! | which columns does the table have | `table` |
//! | how does it look | `text`, `json`, `html` |

mod comparison;
mod html;
mod json;
mod renamed_images;
mod session;
mod statistics;
mod table;
mod tested_by;
mod text;
mod total;
mod tree;

use std::io::Write;

pub use total::{Total, TotalChange};

use crate::{
    columns::OutputFormat,
    error::{Error, Result},
    profile::Profile,
    render::csv,
    view::{GroupBy, View},
};
use comparison::Comparison;
use session::SessionShares;
use tree::DiffTree;

/// The side of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The baseline.
    A,
    /// The sessions that are compared with it.
    B,
}

impl Side {
    const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// The quantity that is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Quantity {
    /// A row's share of its session.
    #[default]
    Share,
    /// Time or events of a row.
    Absolute,
}

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffView {
    /// Its table is [`ReportTable::OVERVIEW`](crate::ReportTable::OVERVIEW) for layers, then symbols, or one of
    /// [`ReportTable::by`](crate::ReportTable::by). Its order selects whether own or total values are compared. Its
    /// event is ignored, because each profile contributes one.
    pub view: View,
    /// The compared quantity.
    pub quantity: Quantity,
    /// Level of significance: the false discovery rate of rows, and the false positive rate of the total.
    pub level: f64,
    /// Whether functions with the same name are one row, regardless of their images.
    pub by_symbol_only: bool,
    /// Whether [`Diff::write_html`] draws a flame graph.
    pub flame_graph: bool,
}

/// A comparison of sessions.
#[derive(Debug, Clone)]
pub struct Diff {
    view: DiffView,
    /// By [`Side`].
    sides: [Vec<SessionShares>; 2],
    tree: DiffTree,
}

impl Diff {
    /// Makes a comparison without sessions.
    #[must_use]
    pub fn new(view: DiffView) -> Self {
        Self {
            view,
            sides: <[Vec<_>; 2]>::default(),
            tree: DiffTree::default(),
        }
    }

    /// Adds the first event of a session.
    ///
    /// # Errors
    ///
    /// It has no selected samples, or another event than the previous sessions.
    pub fn add(&mut self, side: Side, profile: &Profile) -> Result<()> {
        let session = SessionShares::new(profile, &self.view)?;
        let before = self.sides.iter().flatten().next();
        if let Some(expected) = before.filter(|before| before.event != session.event) {
            return Err(Error::OtherEvent {
                session: session.recording.folder,
                found: session.event,
                expected: expected.event.clone(),
            });
        }
        if self.view.flame_graph {
            self.tree.add(side, profile, &session.measures);
        }
        if let Some(sessions) = self.sides.get_mut(side.index()) {
            sessions.push(session);
        }
        Ok(())
    }

    /// Returns the change of the total time, or number of events, of all selected samples.
    ///
    /// # Errors
    ///
    /// A side has no session, or the sums of the sessions cannot be compared.
    pub fn total(&self) -> Result<TotalChange> {
        self.comparison()?.total.map_err(Error::NotAbsolute)
    }

    /// Writes the comparison.
    ///
    /// # Errors
    ///
    /// Writing to `out` fails; a side has no session; absolute values are requested and cannot be compared.
    pub fn render(&self, format: OutputFormat, out: &mut dyn Write) -> Result<()> {
        let comparison = self.comparison()?;
        match format {
            OutputFormat::Text => text::write(&comparison, out)?,
            OutputFormat::Json => json::write(&comparison, out)?,
            OutputFormat::Csv => {
                if let Some(table) = comparison.tables.last() {
                    csv::write_sheet(&table::sheet(&comparison, table, format), out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the comparison as an HTML page.
    ///
    /// # Errors
    ///
    /// As for [`Diff::render`].
    pub fn write_html(&self, out: &mut dyn Write) -> Result<()> {
        html::write(&self.comparison()?, &self.tree, out)
    }

    fn comparison(&self) -> Result<Comparison<'_>> {
        let [a, b] = &self.sides;
        if a.is_empty() || b.is_empty() {
            return Err(Error::NoSessions);
        }
        Comparison::new(&self.view, [a, b])
    }
}

/// Returns the tables of a view.
fn tables(view: &View) -> Vec<GroupBy> {
    match view.table.group {
        Some(by) => vec![by],
        None => vec![GroupBy::Layer, GroupBy::Symbol],
    }
}
