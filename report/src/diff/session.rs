//! Computes the rows of one session.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use varid_model::Layer;
use varid_recording::{Manifest, SessionState, TargetKind};

use super::{DiffView, tables};
use crate::{
    activity::Activity,
    error::{Error, Result},
    measures::ShownMeasures,
    profile::Profile,
    scope::{Scope, percent},
    shares::Share,
    unit::is_wait_event,
    view::{GroupBy, RowOrder},
    views::rows::{self, Row},
    weights::Weight,
};

/// Identifies the same row in another session. It only has names, no addresses, processes or build-ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub layer: Option<Layer>,
    pub image: Option<String>,
    pub symbol: Option<String>,
    /// The file with its folders, and the line.
    pub line: Option<(String, u32)>,
    pub process: Option<String>,
    pub thread: Option<String>,
    pub service: Option<String>,
    pub activity: Option<Activity>,
}

impl RowKey {
    fn of(row: &Row, by_symbol_only: bool) -> Self {
        let symbol = row.symbol().is_some().then(|| row.symbol_name());
        let is_left_out = by_symbol_only && symbol.is_some();
        let image = row.image().filter(|_| !is_left_out);
        Self {
            layer: row.layer(),
            image: image.map(|name| file_name(name).to_owned()),
            symbol: symbol.map(Into::into),
            line: row.line().map(|line| (line.file.to_string(), line.line)),
            // A process without a name is identified by its pid.
            process: row.process().map(|name| name.into_owned()),
            thread: row.thread().map(str::to_owned),
            service: row.service().map(str::to_owned),
            activity: row.activity(),
        }
    }
}

/// Returns an image's name without folders, because each installation puts an app's archive into another folder. Paths
/// inside an archive are kept.
pub fn file_name(image: &str) -> &str {
    let archive = image.split('!').next().unwrap_or(image);
    let folder = archive
        .rfind('/')
        .map_or(0, |slash| slash.saturating_add(1));
    match image.get(folder..) {
        Some(name) if !name.is_empty() => name,
        _ => image,
    }
}

/// A session of a comparison.
#[derive(Debug, Clone)]
pub struct SessionShares {
    pub recording: DiffRecording,
    /// The event, or the named measure.
    pub event: String,
    /// The unit of absolute values.
    pub unit: String,
    pub measures: ShownMeasures,
    /// Whether its samples are waits, whose number does not indicate their duration.
    pub is_wait_event: bool,
    /// The reason why the sums of its periods are unreliable. None if they are reliable.
    pub not_absolute: Option<String>,
    /// Samples and records that are missing.
    pub missing: MissingCounts,
    /// The weight of all samples.
    pub all: Weight,
    /// The weight of the samples in the view's layer and symbols.
    pub selected: Weight,
    /// By index of the table.
    pub tables: Vec<BTreeMap<RowKey, Weight>>,
}

/// The recording of a session.
#[derive(Debug, Clone)]
pub struct DiffRecording {
    pub folder: PathBuf,
    pub target: String,
    pub machine: String,
    pub start: String,
    /// The options that select a part, as on the command line.
    pub selection: String,
    /// The duration of the selected part.
    pub duration: Duration,
    /// Whether it is the complete run of a command.
    pub is_command: bool,
}

impl DiffRecording {
    fn of(profile: &Profile) -> Self {
        let recording = &profile.recording;
        let manifest = &recording.manifest;
        let time = profile.options.time;
        Self {
            folder: recording.session.clone(),
            target: manifest.target.value.clone(),
            machine: format!("{} {}", manifest.host.machine, manifest.host.kernel),
            start: manifest.wall_start.clone(),
            selection: profile.options.describe(),
            duration: time.map_or(recording.duration, |span| {
                span.length_in(recording.duration)
            }),
            // An imported recording does not show whether the command ended by itself or by Ctrl-C.
            is_command: manifest.target.kind == TargetKind::Command && manifest.imported.is_none(),
        }
    }
}

/// What the values of a session do not have.
#[derive(Debug, Clone, Copy)]
pub struct MissingCounts {
    /// Samples that are not attributed.
    pub unattributed: u64,
    /// Lost records.
    pub lost: u64,
    /// How often the kernel throttled the events.
    pub throttled: u64,
}

impl SessionShares {
    pub fn new(profile: &Profile, diff: &DiffView) -> Result<Self> {
        let view = &diff.view;
        if view.measures.len() > 1 {
            return Err(Error::SeveralMeasures {
                what: "a comparison",
            });
        }
        let mut scope = Scope::of_event(profile, view, profile.event(None)?)?;
        // Merge functions with the same name.
        scope.merge_symbols(|symbol, image| {
            let image = image.filter(|_| !diff.by_symbol_only);
            let image = image.map(|image| file_name(&image.name));
            (symbol.layer, image, &symbol.name, symbol.inlined)
        });
        let recording = &profile.recording;
        let manifest = &recording.manifest;
        if scope.value(scope.all) == 0 {
            return Err(Error::NothingCounts {
                session: recording.session.clone(),
                selection: profile.options.describe(),
            });
        }
        let selected = scope.selected_share();
        let named = scope.measures.list.first();
        let named = named.filter(|_| !scope.measures.are_samples());
        let event = named.map_or(&scope.description.name, |measure| &measure.name);
        let unit = named.map_or(scope.unit(), |measure| measure.unit.as_str());
        Ok(Self {
            recording: DiffRecording::of(profile),
            event: event.clone(),
            unit: unit.to_owned(),
            measures: scope.measures.clone(),
            is_wait_event: is_wait_event(scope.description),
            not_absolute: not_absolute(&scope, manifest),
            missing: MissingCounts {
                unattributed: scope.event.unattributed_samples(),
                lost: recording.lost,
                throttled: manifest.counts.throttled,
            },
            all: scope.all,
            selected: taken(selected, view.order),
            tables: tables(view)
                .into_iter()
                .map(|by| table(&scope, diff, by))
                .collect(),
        })
    }

    /// Returns the weight of a row in a table.
    pub fn weight(&self, table: usize, key: &RowKey) -> Weight {
        let table = self.tables.get(table);
        let weight = table.and_then(|table| table.get(key));
        weight.copied().unwrap_or_default()
    }

    /// Returns a weight as a percentage of the session.
    pub fn percent(&self, weight: Weight) -> f64 {
        percent(self.measures.value(weight), self.measures.value(self.all))
    }

    /// Returns the number of samples, or the value of the named measure.
    pub fn count(&self, weight: Weight) -> u64 {
        self.measures.count(weight)
    }

    /// Returns the absolute value of a weight: the sum of periods, or the value of the named measure.
    pub fn amount(&self, weight: Weight) -> u64 {
        match self.measures.are_samples() {
            true => weight.get(1),
            false => weight.get(0),
        }
    }

    /// Returns true if the values have a sampling error.
    pub fn varies_by_sample(&self) -> bool {
        self.measures.are_samples() && !self.is_wait_event
    }
}

/// Returns the compared weight of a share.
const fn taken(share: Share, order: RowOrder) -> Weight {
    match order {
        RowOrder::Total => share.total,
        RowOrder::Own | RowOrder::Name => share.own,
    }
}

/// Returns the rows of a table that have a weight.
fn table(scope: &Scope, diff: &DiffView, by: GroupBy) -> BTreeMap<RowKey, Weight> {
    let mut table: BTreeMap<RowKey, Weight> = BTreeMap::new();
    for row in rows::selected(scope, by, &diff.view) {
        let weight = taken(row.share, diff.view.order);
        if !weight.is_zero() {
            // Threads and processes with the same name are one row.
            let key = RowKey::of(&row, diff.by_symbol_only);
            table.entry(key).or_default().add(weight);
        }
    }
    table
}

/// Returns the reason why the sums of a session's periods are unreliable.
fn not_absolute(scope: &Scope, manifest: &Manifest) -> Option<String> {
    /// As a percentage of the records.
    const MOST_LOST: f64 = 1.0;
    let recording = &scope.profile.recording;
    let folder = recording.session.display();
    let lost = percent(
        recording.lost,
        scope.event.recorded.saturating_add(recording.lost),
    );
    if manifest.state != SessionState::Complete {
        return Some(format!("{folder} has no end"));
    }
    if !scope.measures.are_sampled() {
        return None;
    }
    if lost > MOST_LOST {
        return Some(format!("{folder} has lost {lost:.1} % of its records"));
    }
    if manifest.counts.throttled > 0 {
        return Some(format!("the kernel throttled the events of {folder}"));
    }
    if scope.description.multiplexed().is_some() {
        return Some(format!(
            "the event of {folder} had no counter for some of the time"
        ));
    }
    if scope.samples.period() == 0 {
        return Some(format!("the samples of {folder} have no periods"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn an_image_is_called_by_its_file() {
        for (image, name) in [
            ("libc.so.6", "libc.so.6"),
            ("/data/app/~~x==/org.example-1/base.apk", "base.apk"),
            ("/data/app/x/base.apk!classes2.dex", "base.apk!classes2.dex"),
            (
                "base.apk!lib/arm64/libfoo.so",
                "base.apk!lib/arm64/libfoo.so",
            ),
            ("folder/", "folder/"),
            ("", ""),
        ] {
            assert_eq!(file_name(image), name);
        }
    }
}
