//! Reads and writes `session.json`: what a session says besides its records.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use varid_model::{Layer, MonotonicNs, Pid, Stack};

use crate::{
    error::{Error, Result},
    event::SessionEvents,
    host::Host,
    kept_file::KeptFile,
    recorded_file::RecordedFile,
    regular::open_regular,
    stored_request::StoredRequest,
};

/// The manifest's version that this crate writes, and the latest one it reads.
pub const VERSION: u32 = 1;

/// The most bytes of a manifest, more than any needs. A larger one is neither written nor read.
const MAX_BYTES: u64 = 64 << 20;

/// `session.json`. Unknown keys are ignored, and missing ones have the default of their type, so that recordings stay readable in both
/// directions within one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format's version: [`VERSION`].
    pub version: u32,
    /// The version of varid that wrote it.
    #[serde(default)]
    pub varid: String,
    /// How far the recording got.
    pub state: SessionState,
    /// The start, in nanoseconds of CLOCK_MONOTONIC.
    #[serde(default)]
    pub start_time_ns: MonotonicNs,
    /// The start, in RFC 3339.
    #[serde(default)]
    pub wall_start: String,
    /// The duration in nanoseconds. While the session is live it is that of the last save.
    #[serde(default)]
    pub duration_ns: u64,
    /// The events: the keys `event` and, where there are more, `further_events`.
    #[serde(flatten)]
    pub events: SessionEvents,
    /// What delivered the samples.
    pub source: SampleSource,
    /// How much of the stack was asked for.
    #[serde(default)]
    pub stack: Stack,
    /// How managed frames were found.
    #[serde(default)]
    pub tactic: Tactic,
    /// What was profiled.
    pub target: SessionTarget,
    /// The machine of the recording.
    #[serde(default)]
    pub host: Host,
    /// What became of the samples.
    #[serde(default)]
    pub counts: SampleCounts,
    /// The number of requests for memory and files of processes, with which names and code were read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_requests: u64,
    /// The files that are more than native code.
    #[serde(default)]
    pub images: Vec<SessionImage>,
    /// The files without a build-id. Their names come from the same file only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RecordedFile>,
    /// The files whose symbols the session keeps, although their mappings have their own paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptFile>,
    /// The folders and archives with the classes of Java programs, as their command lines name them. The last part may be `*`: all
    /// archives there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_path: Vec<String>,
    /// How the recording differs from what was requested, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The configuration at the start, in the format of varid.toml.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub configuration: String,
    /// What the recording was asked for. `None` in recordings of earlier versions, and in imported ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<StoredRequest>,
    /// Changes of the configuration during the recording, refused ones included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ConfigurationChange>,
    /// The services that processes count for, each from a time on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// The recording of another profiler from which the session was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
    /// The measures that were computed from the session's counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimates: Vec<EstimatedMeasure>,
}

/// A counter of calling contexts whose values are an estimate: what the counted program would cost on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatedMeasure {
    /// The counter's name.
    pub measure: String,
    /// The name of the target: `jop-2011`.
    pub target: String,
    /// The values of the target that were replaced, as `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The method whose calls were priced. None: all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// What it would be with other method caches, if they were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<EstimatedCache>,
}

/// An estimate with another method cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatedCache {
    /// The cache's size, in bytes.
    pub size: u32,
    /// The number of its blocks.
    pub blocks: u32,
    /// The sum of the measure over all priced calls, in its unit.
    pub cost: u64,
}

/// A recording that varid did not make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// The file's path (lossy if it is not UTF-8).
    pub path: String,
    /// Its format, as `varid import --format` names it.
    pub format: String,
    /// The program that wrote it; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub writer: String,
}

/// A configuration file that was read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationChange {
    /// The time from which it is in force, in nanoseconds of CLOCK_MONOTONIC. Samples from then on follow it.
    pub time_ns: MonotonicNs,
    /// Its new keys that are in force from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Its new keys that are in force from the next session on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The whole configuration from then on, in the format of varid.toml.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub configuration: String,
    /// The error in the file, because of which nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The service that a process counts for from a time on. Before its first membership a process counts for no service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The process.
    pub pid: Pid,
    /// The time from which it counts, in nanoseconds of CLOCK_MONOTONIC.
    pub since_ns: MonotonicNs,
    /// The service. `None` if the process no longer counts for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl Manifest {
    /// Sets the start of the recording to now, which is `time` by CLOCK_MONOTONIC.
    pub fn start(&mut self, time: MonotonicNs) {
        self.start_time_ns = time;
        self.wall_start = rfc3339(SystemTime::now());
    }

    /// Creates the manifest of a recording that starts on this machine now, by the wall clock.
    ///
    /// `start_time_ns` is the time of CLOCK_MONOTONIC at the start.
    #[must_use]
    pub fn new(
        events: impl Into<SessionEvents>,
        source: SampleSource,
        target: SessionTarget,
        start_time_ns: MonotonicNs,
    ) -> Self {
        Self {
            version: VERSION,
            varid: env!("CARGO_PKG_VERSION").to_owned(),
            state: SessionState::Recording,
            start_time_ns,
            wall_start: rfc3339(SystemTime::now()),
            duration_ns: 0,
            events: events.into(),
            source,
            stack: Stack::default(),
            tactic: Tactic::default(),
            target,
            host: Host::this_machine(),
            counts: SampleCounts::default(),
            read_requests: 0,
            images: Vec::new(),
            files: Vec::new(),
            kept: Vec::new(),
            class_path: Vec::new(),
            notes: Vec::new(),
            configuration: String::new(),
            request: None,
            changes: Vec::new(),
            memberships: Vec::new(),
            estimates: Vec::new(),
            imported: None,
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a manifest, or is of a later version.
    pub fn read(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct OnlyVersion {
            version: u32,
        }
        let io = |source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        let bytes = read_bounded(path).map_err(io)?;
        let wrong = |error: serde_json::Error| Error::Manifest {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason: error.to_string(),
        };
        let OnlyVersion { version } = serde_json::from_slice(&bytes).map_err(wrong)?;
        if version > VERSION {
            return Err(Error::Version {
                path: path.to_owned(),
                found: version,
                known: VERSION,
            });
        }
        serde_json::from_slice(&bytes).map_err(wrong)
    }
}

impl Manifest {
    /// Encodes the manifest as session.json.
    pub(crate) fn to_json(&self) -> io::Result<Vec<u8>> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        if json.len() as u64 > MAX_BYTES {
            let message = format!(
                "it has {} bytes, and no reader takes one of more than {MAX_BYTES}",
                json.len()
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(json)
    }

    /// Returns when the recording started, in seconds since 1970. `None` if the manifest does not say.
    #[must_use]
    pub fn wall_start_seconds(&self) -> Option<i64> {
        unix_seconds(&self.wall_start)
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How far a recording got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// The session is live, or its daemon was killed.
    Recording,
    /// The session was stopped in order.
    Complete,
    /// The session was given up. What was recorded until then is readable.
    Failed,
}

/// What delivered the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleSource {
    /// A BPF program on the perf event.
    Bpf,
    /// The kernel module.
    Module,
    /// perf's ring buffer with user registers and a stack copy.
    Perf,
    /// Another profiler, whose recording was imported.
    Import,
    /// An agent in a VM, which counts and does not sample.
    Agent,
}

impl SampleSource {
    /// Returns the name that manifests and reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Module => "module",
            Self::Perf => "perf",
            Self::Import => "import",
            Self::Agent => "agent",
        }
    }
}

/// How managed frames were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tactic {
    /// Nothing happens at run time: frames are walked at the sample.
    #[default]
    LoadFromDex,
    /// There is an event at every invoke.
    MethodInvoke,
}

impl Tactic {
    /// Returns the paper's name, which manifests and VMs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoadFromDex => "load-from-dex",
            Self::MethodInvoke => "method-invoke",
        }
    }

    /// Returns its name as the mode of a session, on the command line and in configurations.
    #[must_use]
    pub const fn mode(self) -> &'static str {
        match self {
            Self::LoadFromDex => "sample",
            Self::MethodInvoke => "count-calls",
        }
    }
}

/// What was profiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTarget {
    /// The kind of target.
    pub kind: TargetKind,
    /// Package, process ids, or command line; empty if everything was profiled.
    #[serde(default)]
    pub value: String,
}

/// The kind of what was profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// An app by its package.
    App,
    /// A process by its id.
    Pid,
    /// The whole system.
    All,
    /// A command that was launched.
    Command,
    /// A service by its name.
    Service,
    /// Several apps and services by their names.
    Several,
}

/// What became of the samples. [`SessionWriter`](crate::SessionWriter) counts `samples`, `attributed`, `unattributed`, `lost` and `dropped`
/// from the records that it writes. The caller sets `malformed`, `throttled`, `transitions` and `filtered`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleCounts {
    /// Samples written.
    pub samples: u64,
    /// The samples among them without a reason's marker.
    pub attributed: u64,
    /// The other samples, by the name of the reason.
    pub unattributed: BTreeMap<String, u64>,
    /// Records that the kernel had no room for, and samples that the disk had no room for.
    pub lost: u64,
    /// Other records that the disk had no room for: mappings, names, starts and ends.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Records of the kernel that do not follow its ABI. Samples may have been among them.
    #[serde(skip_serializing_if = "is_zero")]
    pub malformed: u64,
    /// The number of times the kernel paused the event because it fired too often.
    pub throttled: u64,
    /// Samples in a transition window (a frame pushed and not yet entered, an interpreter's prologue or epilogue) that were recognised and
    /// resolved.
    pub transitions: u64,
    /// Samples that were not recorded because others were asked for, by the reason: `method`, and `method-incomplete` for those with
    /// missing frames that might have been others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filtered: BTreeMap<String, u64>,
}

// serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A file of a profiled process that is more than native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionImage {
    /// The absolute path of the dex file or library when it was recorded (lossy if it is not UTF-8).
    pub path: String,
    /// Its build-id in hexadecimal. A dex file has its SHA-1.
    #[serde(default)]
    pub build_id: String,
    /// The kind of file.
    pub kind: ImageKind,
    /// The layer that its samples count for.
    pub layer: Layer,
    /// The path of the substitute ELF file, relative to the session folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute: Option<String>,
    /// The name to show if the path says less (`classes2.dex` of an apk).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// The kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// A dex file.
    Dex,
    /// The remap range.
    Remap,
    /// An ELF file.
    Elf,
}

/// Formats a time in RFC 3339 with seconds, in UTC. Times before 1970 are 1970.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // This is the civil date from the days since 1970, in eras of 400 years that start in March.
    let shifted = day.saturating_add(719_468);
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = day_of_era
        .saturating_sub(day_of_era / 1_460)
        .saturating_add(day_of_era / 36_524)
        .saturating_sub(day_of_era / 146_096)
        / 365;
    let day_of_year = day_of_era.saturating_sub(
        year_of_era
            .saturating_mul(365)
            .saturating_add(year_of_era / 4)
            .saturating_sub(year_of_era / 100),
    );
    let from_march = day_of_year.saturating_mul(5).saturating_add(2) / 153;
    let day_of_month = day_of_year
        .saturating_sub(from_march.saturating_mul(153).saturating_add(2) / 5)
        .saturating_add(1);
    let (month, next_year) = if from_march < 10 {
        (from_march.saturating_add(3), 0)
    } else {
        (from_march.saturating_sub(9), 1)
    };
    let year = era
        .saturating_mul(400)
        .saturating_add(year_of_era)
        .saturating_add(next_year);
    format!(
        "{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z",
        second / 3_600,
        second % 3_600 / 60,
        second % 60
    )
}

/// Parses what [`rfc3339`] formats: returns the seconds of `2024-02-29T12:00:00Z`.
fn unix_seconds(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hours, minutes, seconds) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = match month.checked_sub(3)? {
        month @ 0.. => (year, month),
        before => (year.checked_sub(1)?, before.checked_add(12)?),
    };
    let leap_days = (year / 4)
        .checked_sub(year / 100)?
        .checked_add(year / 400)?;
    let days = year.checked_mul(365)?.checked_add(leap_days)?;
    let days = days.checked_add(month.checked_mul(153)?.checked_add(2)? / 5)?;
    // There are 719,469 days from March of year 0 to the first of January 1970.
    let days = days.checked_add(day)?.checked_sub(719_469)?;
    let of_day = hours
        .checked_mul(3_600)?
        .checked_add(minutes.checked_mul(60)?)?;
    let seconds = days
        .checked_mul(86_400)?
        .checked_add(of_day)?
        .checked_add(seconds)?;
    is_date.then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use varid_model::Rate;

    #[test]
    fn dates_around_leap_days_and_centuries() {
        // Expected values from `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_manifest_s_start_is_a_time() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T12:00:00Z", Some(1_709_208_000)),
            ("2024-03-01T00:00:01Z", Some(1_709_251_201)),
            ("2026-12-31T23:59:59.5Z", Some(1_798_761_599)),
            ("2024-13-01T00:00:00Z", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(unix_seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn manifest_keeps_its_json_shape_and_ignores_what_it_does_not_know() {
        let json = r#"{"version":1,"varid":"0.1.0","state":"recording","start_time_ns":5,
            "wall_start":"2024-02-29T00:00:00Z","duration_ns":0,
            "event":{"name":"cycles:u","frequency":997,"type":0,"config":0},
            "source":"bpf","stack":"vertical","tactic":"load-from-dex",
            "target":{"kind":"app","value":"org.example.math"},
            "host":{"kernel":"6.1","arch":"aarch64","cpus":4},
            "counts":{"samples":3,"attributed":2,"unattributed":{"torn-frames":1},"lost":0,"throttled":0,"transitions":0},
            "images":[{"path":"/a.dex","build_id":"00","kind":"dex","layer":"app","substitute":"symbols/00.elf"}]}"#;
        let manifest: Manifest = serde_json::from_str(json).unwrap();
        assert_eq!(manifest.events.first.rate, Rate::Frequency(997));
        let (mut ours, theirs): (serde_json::Value, serde_json::Value) = (
            serde_json::to_value(&manifest).unwrap(),
            serde_json::from_str(json).unwrap(),
        );
        assert_eq!(ours, theirs);
        assert_eq!(manifest.request, None);
        let request = serde_json::json!({"target": "all"});
        ours["request"] = request.clone();
        let with_request: Manifest = serde_json::from_value(ours.clone()).unwrap();
        assert_eq!(with_request.request, StoredRequest::new(&request));
        assert_eq!(serde_json::to_value(&with_request).unwrap(), ours);
        ours["request"].take();
        ours["later"] = 1.into();
        ours["event"]["later"] = 1.into();
        assert_eq!(serde_json::from_value::<Manifest>(ours).unwrap(), manifest);
    }
}
