//! Which frames of [`Dim`] does a view show?

use crate::{
    dim::{Dim, Map},
    profile::Profile,
    rows::percent,
    view::View,
};
use varid_recording::terminal::one_line;

/// The places that a view shows, and how many its limits hide.
pub fn rows<'p>(profile: &'p Profile, view: &View) -> (Vec<&'p Dim>, usize) {
    let wanted = |row: &&Dim| {
        view.layer.is_none_or(|layer| layer == row.layer)
            && view
                .symbol
                .as_ref()
                .is_none_or(|pattern| pattern.matches(&symbol(row)))
    };
    let mut rows: Vec<&Dim> = profile.dim.iter().filter(wanted).collect();
    let found = rows.len();
    let all = view.percent_of.value(profile.weight());
    let share = |row: &&Dim| percent(view.percent_of.value(row.share.total), all);
    rows.retain(|row| share(row) >= view.min_percent);
    rows.truncate(view.limit.unwrap_or(usize::MAX));
    let hidden = found.saturating_sub(rows.len());
    (rows, hidden)
}

/// The method's name as other tables have it.
fn symbol(row: &Dim) -> String {
    match row
        .class
        .strip_prefix('L')
        .and_then(|c| c.strip_suffix(';'))
    {
        Some(class) => format!("{}.{}", class.replace('/', "."), row.method),
        None => row.method.clone(),
    }
}

/// An address as it is shown.
pub fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// Start, end, mode and file; empty where there is none. `unknown`: the mode, if it is not known.
pub fn cells_of_map(map: Option<&Map>, unknown: &str) -> [String; 4] {
    let Some(map) = map else {
        return Default::default();
    };
    let mode = map
        .mode
        .map_or_else(|| unknown.to_owned(), |mode| mode.to_string());
    let file = one_line(&map.file.to_string_lossy());
    [hex(map.start), hex(map.end), mode, file]
}
