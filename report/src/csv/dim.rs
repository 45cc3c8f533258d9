//! The frames in which threads were sampled, each with its mapping.

use std::io::{self, Write};

use super::record;
use crate::{
    dim_rows::{cells_of_map, hex, rows},
    profile::Profile,
    view::View,
};

/// The places with the mapping of each.
pub fn write(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
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
    record(header.into_iter().map(str::to_owned), out)?;
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
        record(place.into_iter().chain(map).chain(numbers), out)?;
    }
    Ok(())
}
