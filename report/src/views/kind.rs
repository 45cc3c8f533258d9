//! A kind of table: what is known of it, and what makes it.

use crate::{
    columns::{OutputFormat, Sheet},
    scope::Scope,
    view::ReportTable,
};

/// A kind of table. A kind is a file in this folder and a line in the list of all.
#[derive(Debug)]
pub struct TableKind {
    pub table: ReportTable,
    /// Makes the sheets, in the order in which people are shown them.
    pub sheets: for<'p> fn(&Scope<'p>, OutputFormat) -> Vec<Sheet<'p>>,
}
