//! Detects an image that has another name on the other side.
//!
//! If a program was built or installed under another name, the sides have no rows in common, although the functions are
//! the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    comparison::{Comparison, DiffRow},
    session::RowKey,
};

/// The minimum share of the common functions, as a percentage of a side.
const LEAST: f64 = 5.0;

/// Two images with the same functions, each of which is on one side only.
#[derive(Debug, Clone, PartialEq)]
pub struct RenamedImage<'c> {
    pub a: &'c str,
    pub b: &'c str,
}

impl fmt::Display for RenamedImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { a, b } = self;
        write!(
            f,
            "{a} of A and {b} of B have functions of the same names: --by-symbol-only compares them"
        )
    }
}

/// Returns the pair of images that have the most in common and differ only by name.
pub fn renamed_images<'c>(comparison: &'c Comparison<'_>) -> Option<RenamedImage<'c>> {
    let rows = || comparison.tables.iter().flat_map(|table| &table.rows);
    let (mut of_a, mut of_b) = (BTreeSet::new(), BTreeSet::new());
    for row in rows() {
        let image = row.key.image.as_deref();
        of_a.extend(image.filter(|_| row.a.samples > 0));
        of_b.extend(image.filter(|_| row.b.samples > 0));
    }
    // Returns the function (layer, name and line), its image and its row.
    let function = |row: &'c DiffRow| {
        let RowKey {
            layer,
            image,
            symbol,
            line,
            ..
        } = &row.key;
        Some(((layer, symbol.as_deref()?, line), image.as_deref()?, row))
    };
    let mut gone = BTreeMap::new();
    for (name, image, row) in rows().filter_map(function) {
        if !of_b.contains(image) {
            gone.insert(name, (image, row.a.percent));
        }
    }
    let mut common: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for (name, image, row) in rows().filter_map(function) {
        let known = gone.get(&name).filter(|_| !of_a.contains(image));
        if let Some((before, percent)) = known {
            *common.entry((before, image)).or_default() += percent.max(row.b.percent);
        }
    }
    let most = common
        .into_iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    let ((a, b), _) = most.filter(|(_, percent)| *percent >= LEAST)?;
    Some(RenamedImage { a, b })
}
