//! The frames in which threads were sampled.

use serde::Serialize;
use varid_model::Layer;

use crate::{dim::Dim, dim_rows::hex};

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
