//! The frames in which threads were sampled, as the paper's tables.

use std::io::{self, Write};

use super::{columns, hidden_rows};
use crate::{
    dim::Dim,
    dim_rows::{cells_of_map, hex, rows},
    profile::Profile,
    rows::percent,
    view::View,
};
use varid_recording::terminal::one_line;

const IN_METHODS: [&str; 12] = [
    "uid",
    "tgid",
    "pid",
    "pc",
    "vma",
    "method name",
    "class description",
    "source file",
    "line#",
    "depth",
    "frame",
    "layer",
];
const IN_MEMORY: [&str; 5] = [
    "tgid",
    "start addr.",
    "end addr.",
    "mode",
    "mapped file name",
];

/// The paper's tables: places, and the mappings that they are in.
pub fn write(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let (rows, hidden) = rows(profile, view);
    let all = view.percent_of.value(profile.weight());
    let places = rows.iter().map(|row| {
        let total = percent(view.percent_of.value(row.share.total), all);
        let mut cells = vec![row.share.total.samples.to_string(), format!("{total:.2}")];
        cells.extend(cells_of(row));
        cells
    });
    let header = [&["samples", "%"], &IN_METHODS[..]].concat();
    columns(&header, &places.collect::<Vec<_>>(), None, out)?;
    hidden_rows(hidden, out)?;
    writeln!(out)?;
    let mut maps: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.pid, row.map.as_ref()?)))
        .map(|(pid, map)| {
            let [start, end, mode, file] = cells_of_map(Some(map), "-");
            (
                (pid, map.start, map.end),
                vec![pid.to_string(), start, end, mode, file],
            )
        })
        .collect();
    maps.sort();
    maps.dedup();
    let maps: Vec<_> = maps.into_iter().map(|(_, cells)| cells).collect();
    columns(&IN_MEMORY, &maps, None, out)?;
    writeln!(out)
}

/// The cells under [`IN_METHODS`].
fn cells_of(row: &Dim) -> Vec<String> {
    let or_dash = |text: &str| match text {
        "" => "-".to_owned(),
        text => one_line(text),
    };
    vec![
        row.uid
            .map_or_else(|| "-".to_owned(), |uid| uid.to_string()),
        row.pid.to_string(),
        row.tid.to_string(),
        row.pc.to_string(),
        hex(row.vma),
        or_dash(&row.method),
        or_dash(&row.class),
        or_dash(row.file.as_deref().unwrap_or_default()),
        row.line.to_string(),
        row.depth.to_string(),
        hex(row.frame),
        row.layer.name().to_owned(),
    ]
}
