//! The frames in which threads were sampled, with their mappings.

use std::collections::BTreeMap;

use varid_model::Pid;

use super::{groups, kind::TableKind};
use crate::{
    columns::{Column, Columns, Object, OutputFormat, Value},
    sampled_frames::{FrameMapping, SampledFrame},
    scope::Scope,
    sheet::{Sheet, SheetRole},
    view::{ReportTable, TableChoice, TableNeed},
};

/// The table.
pub static TABLE: TableKind = TableKind {
    table: ReportTable {
        name: "vm-frame",
        aliases: &["dim"],
        about: "The VM's frames that were sampled, with their addresses, threads and mappings",
        choice: TableChoice::ByName,
        rows: "dim",
        needs: &[TableNeed::SampledFrames, TableNeed::Lines],
        group: None,
        measures: &[],
    },
    sheets,
};

/// Makes the sheet of frames. In text, a sheet of mappings follows.
fn sheets<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Vec<Sheet<'s>> {
    let (rows, hidden) = rows(scope);
    let columns = frame_columns().of(format);
    let mut frames = Sheet::new(SheetRole::Rows, &columns, format);
    for row in &rows {
        frames.push(&columns, scope, row);
    }
    frames.hidden = hidden;
    let mappings = (format == OutputFormat::Text).then(|| mappings(scope, &rows));
    [frames].into_iter().chain(mappings).collect()
}

/// Returns the frames of the view, and the number that its limits hide.
fn rows<'p>(scope: &Scope<'p>) -> (Vec<&'p SampledFrame>, usize) {
    let view = scope.view;
    let selected = |row: &&SampledFrame| {
        view.code.has_layer(row.layer)
            && view
                .code
                .symbol
                .as_ref()
                .is_none_or(|pattern| pattern.matches(&symbol(row)))
    };
    let frames = scope.event.sampled_frames.iter();
    let mut rows: Vec<_> = frames.filter(selected).collect();
    let found = rows.len();
    rows.retain(|row| scope.sample_percent(row.share.total) >= view.min_percent);
    view.truncate(&mut rows);
    let hidden = found.saturating_sub(rows.len());
    (rows, hidden)
}

/// The method's name as in other tables.
fn symbol(row: &SampledFrame) -> String {
    let class = row.code.class.strip_prefix('L');
    match class.and_then(|class| class.strip_suffix(';')) {
        Some(class) => format!("{}.{}", class.replace('/', "."), row.code.method),
        None => row.code.method.clone(),
    }
}

type FrameColumn<'p> = Column<'p, &'p SampledFrame>;

/// Text has the column names of the paper's Table IV: tgid for the process, pid for the thread.
fn frame_columns<'p>() -> Columns<'p, &'p SampledFrame> {
    let uid: FrameColumn = Column::new(|_, row| row.thread.uid.into());
    let pid: FrameColumn = Column::new(|_, row| row.thread.pid.get().into());
    let tid: FrameColumn = Column::new(|_, row| row.thread.tid.get().into());
    let depth: FrameColumn = Column::new(|_, row| row.depth.into());
    let frame: FrameColumn = Column::new(|_, row| Value::hex(row.frame.get()));
    let layer: FrameColumn = Column::new(|_, row| row.layer.name().into());
    let thread = [
        uid.text_or_dash("uid").data("uid"),
        pid.text("tgid").data("pid"),
        tid.text("pid").data("tid"),
    ];
    let frame = [
        depth.text("depth").data("depth"),
        frame.text("frame").data("frame"),
        layer.text("layer").data("layer"),
    ];
    let labels = thread.into_iter().chain(place_columns()).chain(frame);
    Columns {
        labels: labels.chain(mapping_of_frame()).collect(),
        shares: share_columns(),
    }
}

/// The position of the frame: the instruction, its method and its line.
fn place_columns<'p>() -> [FrameColumn<'p>; 8] {
    let pc: FrameColumn = Column::new(|_, row| row.code.pc.into());
    let vma: FrameColumn = Column::new(|_, row| Value::hex(row.code.vma.get()));
    let method: FrameColumn = Column::new(|_, row| row.code.method.as_str().into());
    let class: FrameColumn = Column::new(|_, row| {
        let class = Some(row.code.class.as_str());
        class.filter(|class| !class.is_empty()).into()
    });
    let file: FrameColumn = Column::new(|_, row| row.code.file.as_deref().into());
    let line: FrameColumn = Column::new(|_, row| Value::Signed(row.code.line));
    let marked_line: FrameColumn = Column::new(|_, row| match row.approximate.is_zero() {
        true => Value::Signed(row.code.line),
        false => format!("~{}", row.code.line).into(),
    });
    let approximate: FrameColumn =
        Column::new(|_, row| groups::approximate(row.approximate.samples()));
    [
        pc.text("pc").data("pc"),
        vma.text("vma").data("vma"),
        method.text_or_dash("method name").data("method"),
        class.text_or_dash("class description").data("class"),
        file.text_or_dash("source file").data("file"),
        marked_line.text("line#"),
        line.data("line"),
        approximate.data("approximate"),
    ]
}

/// The mapping of the frame: an object in JSON, cells in CSV. Text has a table of mappings.
fn mapping_of_frame<'p>() -> [FrameColumn<'p>; 5] {
    let mapping: FrameColumn = Column::new(|scope, row| match &row.mapping {
        Some(mapping) => {
            let columns = mapping_columns().of(OutputFormat::Json);
            Value::Object(Object::new(&columns, scope, &(row.thread.pid, mapping)))
        }
        None => Value::Absent,
    });
    let start: FrameColumn = Column::new(|_, row| row.mapping.as_ref().map(start_of).into());
    let end: FrameColumn = Column::new(|_, row| row.mapping.as_ref().map(end_of).into());
    let mode: FrameColumn = Column::new(|_, row| row.mapping.as_ref().and_then(mode_of).into());
    let mapped: FrameColumn = Column::new(|_, row| row.mapping.as_ref().map(file_of).into());
    [
        mapping.json("map"),
        start.csv("map_start"),
        end.csv("map_end"),
        mode.csv("map_mode"),
        mapped.csv("map_file"),
    ]
}

fn share_columns<'p>() -> Vec<FrameColumn<'p>> {
    let own: FrameColumn = Column::new(|_, row| row.share.own.samples().into());
    let total: FrameColumn = Column::new(|_, row| row.share.total.samples().into());
    let percent: FrameColumn =
        Column::new(|scope, row| Value::Percent(scope.sample_percent(row.share.total)));
    let own_period: FrameColumn = Column::new(|_, row| row.share.own.period().into());
    let total_period: FrameColumn = Column::new(|_, row| row.share.total.period().into());
    vec![
        total.clone().text("samples"),
        percent.text("%"),
        own.data("self"),
        total.data("total"),
        own_period.data("self_period"),
        total_period.data("total_period"),
    ]
}

type ProcessMapping<'p> = (Pid, &'p FrameMapping);

/// The distinct mappings of the frames.
fn mappings<'p>(scope: &Scope<'p>, rows: &[&'p SampledFrame]) -> Sheet<'p> {
    let columns = mapping_columns().of(OutputFormat::Text);
    let mut sheet = Sheet::new(SheetRole::TextOnly, &columns, OutputFormat::Text);
    let mappings = rows
        .iter()
        .filter_map(|row| Some((row.thread.pid, row.mapping.as_ref()?)));
    let sorted: BTreeMap<_, ProcessMapping> = mappings
        .map(|(pid, mapping)| {
            let range = (pid, mapping.start, mapping.end);
            let key = (range, mode_of(mapping), file_of(mapping));
            (key, (pid, mapping))
        })
        .collect();
    for row in sorted.values() {
        sheet.push(&columns, scope, row);
    }
    sheet
}

fn mapping_columns<'p>() -> Columns<'p, ProcessMapping<'p>> {
    type MappingColumn<'p> = Column<'p, ProcessMapping<'p>>;
    let pid: MappingColumn = Column::new(|_, (pid, _)| pid.get().into());
    let start: MappingColumn = Column::new(|_, (_, mapping)| start_of(mapping).into());
    let end: MappingColumn = Column::new(|_, (_, mapping)| end_of(mapping).into());
    let mode: MappingColumn = Column::new(|_, (_, mapping)| mode_of(mapping).into());
    let file: MappingColumn = Column::new(|_, (_, mapping)| file_of(mapping).into());
    Columns {
        labels: vec![
            pid.text("tgid"),
            start.text("start addr.").json("start"),
            end.text("end addr.").json("end"),
            mode.text_or_dash("mode").json("mode"),
            file.text("mapped file name").json("file"),
        ],
        shares: Vec::new(),
    }
}

fn start_of(mapping: &FrameMapping) -> String {
    mapping.start.to_string()
}

fn end_of(mapping: &FrameMapping) -> String {
    mapping.end.to_string()
}

fn mode_of(mapping: &FrameMapping) -> Option<String> {
    mapping.mode.map(|mode| mode.to_string())
}

fn file_of(mapping: &FrameMapping) -> String {
    mapping.file.to_string_lossy().into_owned()
}
