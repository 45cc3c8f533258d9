//! How do the places of samples look, to people and to programs?

use std::io::{self, Write};

use serde::Serialize;
use varid_model::Layer;

use super::{Dim, Map};
use crate::{csv, profile::Profile, rows::percent, text, view::View};

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
pub fn write_text(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let (rows, hidden) = rows(profile, view);
    let all = view.percent_of.value(profile.weight());
    let places = rows.iter().map(|row| {
        let total = percent(view.percent_of.value(row.share.total), all);
        let mut cells = vec![row.share.total.samples.to_string(), format!("{total:.2}")];
        cells.extend(cells_of(row));
        cells
    });
    let header = [&["samples", "%"], &IN_METHODS[..]].concat();
    text::columns(&header, &places.collect::<Vec<_>>(), None, out)?;
    text::hidden_rows(hidden, out)?;
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
    text::columns(&IN_MEMORY, &maps, None, out)?;
    writeln!(out)
}

/// The cells under [`IN_METHODS`].
fn cells_of(row: &Dim) -> Vec<String> {
    let or_dash = |text: &str| match text {
        "" => "-".to_owned(),
        text => text::one_line(text),
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

/// Start, end, mode and file; empty where there is none. `unknown`: the mode, if it is not known.
fn cells_of_map(map: Option<&Map>, unknown: &str) -> [String; 4] {
    let Some(map) = map else {
        return Default::default();
    };
    let mode = map
        .mode
        .map_or_else(|| unknown.to_owned(), |mode| mode.to_string());
    let file = text::one_line(&map.file.to_string_lossy());
    [hex(map.start), hex(map.end), mode, file]
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// The places with the mapping of each.
pub fn write_csv(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let header = [
        "uid",
        "pid",
        "tid",
        "pc",
        "vma",
        "method",
        "class",
        "file",
        "line",
        "depth",
        "frame",
        "layer",
        "map_start",
        "map_end",
        "map_mode",
        "map_file",
        "self",
        "total",
        "self_period",
        "total_period",
    ];
    csv::record(header.into_iter().map(str::to_owned), out)?;
    for row in rows(profile, view).0 {
        let share = row.share;
        let numbers = [
            share.own.samples,
            share.total.samples,
            share.own.period,
            share.total.period,
        ];
        let numbers = numbers.map(|number| number.to_string());
        let place = [
            row.uid.map_or_else(String::new, |uid| uid.to_string()),
            row.pid.to_string(),
            row.tid.to_string(),
            row.pc.to_string(),
            hex(row.vma),
            row.method.clone(),
            row.class.clone(),
            row.file.as_deref().unwrap_or_default().to_owned(),
            row.line.to_string(),
            row.depth.to_string(),
            hex(row.frame),
            row.layer.name().to_owned(),
        ];
        let map = cells_of_map(row.map.as_ref(), "");
        csv::record(place.into_iter().chain(map).chain(numbers), out)?;
    }
    Ok(())
}

/// A place as JSON; addresses are hexadecimal, because programs lose the last digits of larger numbers.
#[derive(Serialize)]
pub struct JsonDim {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    pid: u32,
    tid: u32,
    pc: u64,
    vma: String,
    method: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    line: i64,
    depth: u64,
    frame: String,
    layer: Layer,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<JsonMap>,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    self_period: u64,
    total_period: u64,
}

#[derive(Serialize)]
struct JsonMap {
    start: String,
    end: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    file: String,
}

impl From<&Dim> for JsonDim {
    fn from(row: &Dim) -> Self {
        Self {
            uid: row.uid,
            pid: row.pid,
            tid: row.tid,
            pc: row.pc,
            vma: hex(row.vma),
            method: row.method.clone(),
            class: row.class.clone(),
            file: row.file.as_ref().map(ToString::to_string),
            line: row.line,
            depth: row.depth,
            frame: hex(row.frame),
            layer: row.layer,
            map: row.map.as_ref().map(|map| JsonMap {
                start: hex(map.start),
                end: hex(map.end),
                mode: map.mode.map(|mode| mode.to_string()),
                file: map.file.to_string_lossy().into_owned(),
            }),
            own: row.share.own.samples,
            total: row.share.total.samples,
            self_period: row.share.own.period,
            total_period: row.share.total.period,
        }
    }
}
