//! A kind of table: its description and the function that makes it.

use crate::{columns::OutputFormat, scope::Scope, sheet::Sheet, view::ReportTable};

/// A kind of table. Each kind has a file in this folder and an entry in the list of tables.
#[derive(Debug)]
pub struct TableKind {
    pub table: ReportTable,
    /// Makes the sheets in display order.
    pub sheets: for<'s> fn(&'s Scope<'_>, OutputFormat) -> Vec<Sheet<'s>>,
}
