//! The data shown at one moment.

use std::{collections::HashMap, hash::Hash, path::PathBuf, time::Duration};

use varid_model::{Layer, MonotonicNs, Pid, Tid};
use varid_report::{Amount, LiveMethod, LiveProfile, LiveShare, LiveSpan};

/// The data requested from sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The samples that count.
    pub span: LiveSpan,
    /// The index of the event in each session, taken modulo the number of its events.
    pub event: usize,
    /// The method whose lines and callers are requested, too.
    pub opened: Option<MethodKey>,
}

/// The contents of sessions. Texts are unchanged from the recording and may contain control sequences for a terminal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The sessions that can be selected.
    pub sessions: Vec<SessionRow>,
    /// A description of what is shown.
    pub subject: Subject,
    /// Percentage of the samples whose leaf is in each layer.
    pub layers: Vec<(Layer, f64)>,
    /// Methods and functions, in no order.
    pub methods: Vec<MethodRow>,
    /// Threads, in no order.
    pub threads: Vec<ThreadRow>,
    /// The details of the opened method.
    pub details: Details,
}

/// A session that is running, or was when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its folder.
    pub folder: PathBuf,
    /// The processes that it profiles.
    pub target: String,
    /// True if it is being recorded.
    pub runs: bool,
}

/// The shown sessions, and their totals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subject {
    /// The target, or the number of sessions.
    pub name: String,
    /// The event and its rate.
    pub event: String,
    /// Duration of the longest session.
    pub elapsed: Duration,
    /// Number of samples of all events.
    pub samples: u64,
    /// Number of samples lost.
    pub lost: u64,
    /// True if any of them is being recorded.
    pub runs: bool,
    /// True if more has been recorded than is shown yet.
    pub is_behind: bool,
    /// The problem, if there is one.
    pub problem: Option<String>,
}

/// Identifies a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodKey {
    /// Its name.
    pub name: String,
    /// The name of its image.
    pub image: String,
    /// Its layer.
    pub layer: Layer,
    /// True for its inlined copies in callers.
    pub inlined: bool,
}

impl MethodKey {
    fn of(method: &LiveMethod<'_>) -> Self {
        Self {
            name: method.name.to_owned(),
            image: method.image.to_owned(),
            layer: method.layer,
            inlined: method.inlined,
        }
    }

    fn is(&self, method: &LiveMethod<'_>) -> bool {
        method.name == self.name
            && method.image == self.image
            && method.layer == self.layer
            && method.inlined == self.inlined
    }
}

/// A method with its shares, in percent of all.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodRow {
    /// The method.
    pub key: MethodKey,
    /// Percentage with their leaf in it.
    pub own: f64,
    /// Percentage with it on their stack.
    pub total: f64,
}

/// A thread with its share.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// Its process.
    pub pid: Pid,
    /// The name of its process.
    pub process: String,
    /// The thread.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// Percentage of all.
    pub own: f64,
}

/// The details of the opened method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Its lines.
    pub lines: Vec<LineRow>,
    /// Its callers. Their total is the share of the method below them.
    pub callers: Vec<MethodRow>,
}

/// A line with its shares.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRow {
    /// File and line number. None for instructions without a line.
    pub place: Option<(String, u32)>,
    /// Percentage with their leaf in it.
    pub own: f64,
    /// Percentage with it on their stack.
    pub total: f64,
}

impl Snapshot {
    /// Sums up profiles. The shares are of the event's periods for one profile, and of samples for several, whose events may differ. The
    /// caller fills in `sessions` and `subject`.
    #[must_use]
    pub fn of(profiles: &[&LiveProfile], request: &Request) -> Self {
        let parts = Parts::new(profiles, request);
        let methods = parts.sum(|part| {
            let methods = part.profile.methods(part.event, parts.span, parts.now);
            methods
                .map(|method| (MethodKey::of(&method), method.share))
                .collect()
        });
        let mut layers = HashMap::new();
        for (key, share) in &methods {
            *layers.entry(key.layer).or_default() += parts.percent(share.own);
        }
        let threads = parts.sum(|part| {
            let threads = part.profile.threads(part.event, parts.span, parts.now);
            let thread = |thread: varid_report::LiveThread<'_>| {
                let process = thread.process.unwrap_or_default().to_owned();
                let key = (thread.pid, process, thread.tid, thread.name.to_owned());
                (key, thread.share)
            };
            threads.map(thread).collect()
        });
        let details = request.opened.as_ref().map(|key| parts.details(key));
        let threads = threads.into_iter();
        let thread = |((pid, process, tid, name), share): (_, LiveShare)| ThreadRow {
            pid,
            process,
            tid,
            name,
            own: parts.percent(share.own),
        };
        let of_layer = |layer| (layer, layers.get(&layer).copied().unwrap_or_default());
        Self {
            layers: Layer::ALL.into_iter().map(of_layer).collect(),
            methods: parts.rows(methods),
            threads: threads.map(thread).collect(),
            details: details.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The parts of a sum of profiles.
struct Parts<'p> {
    parts: Vec<Part<'p>>,
    span: LiveSpan,
    /// The time of the latest sample in all profiles.
    now: MonotonicNs,
    all: Amount,
}

struct Part<'p> {
    profile: &'p LiveProfile,
    event: usize,
}

impl<'p> Parts<'p> {
    fn new(profiles: &[&'p LiveProfile], request: &Request) -> Self {
        let part = |profile: &&'p LiveProfile| {
            let events = profile.session().manifest().events.len();
            Part {
                profile,
                event: request.event.checked_rem(events).unwrap_or(0),
            }
        };
        let parts: Vec<_> = profiles.iter().map(part).collect();
        let latest = |part: &Part<'_>| part.profile.latest(part.event);
        let now = parts.iter().map(latest).max().unwrap_or(MonotonicNs::ZERO);
        let mut all = Amount::default();
        for Part { profile, event } in &parts {
            all.add(profile.all(*event, request.span, now).total);
        }
        Self {
            parts,
            span: request.span,
            now,
            all,
        }
    }

    /// Sums up the amounts of each key in all parts.
    fn sum<K: Eq + Hash>(
        &self,
        of: impl Fn(&Part<'p>) -> Vec<(K, LiveShare)>,
    ) -> HashMap<K, LiveShare> {
        let mut sums: HashMap<K, LiveShare> = HashMap::new();
        for (key, share) in self.parts.iter().flat_map(of) {
            sums.entry(key).or_default().add(share);
        }
        sums
    }

    fn details(&self, key: &MethodKey) -> Details {
        let (span, now) = (self.span, self.now);
        let is_it = |method: &LiveMethod<'_>| key.is(method);
        let lines = self.sum(|part| {
            let lines = part.profile.lines(part.event, span, now, is_it);
            let place = |line: &varid_report::SourceLine| (line.file.to_string(), line.line);
            let line = |(line, share): (Option<_>, _)| (line.map(place), share);
            lines.into_iter().map(line).collect()
        });
        let callers = self.sum(|part| {
            let callers = part.profile.callers(part.event, span, now, is_it);
            let caller = |caller: LiveMethod<'_>| (MethodKey::of(&caller), caller.share);
            callers.into_iter().map(caller).collect()
        });
        let line = |(place, share): (_, LiveShare)| LineRow {
            place,
            own: self.percent(share.own),
            total: self.percent(share.total),
        };
        Details {
            lines: lines.into_iter().map(line).collect(),
            callers: self.rows(callers),
        }
    }

    fn rows(&self, methods: HashMap<MethodKey, LiveShare>) -> Vec<MethodRow> {
        let row = |(key, share): (_, LiveShare)| MethodRow {
            key,
            own: self.percent(share.own),
            total: self.percent(share.total),
        };
        methods.into_iter().map(row).collect()
    }

    /// Returns a part of all, in percent.
    fn percent(&self, part: Amount) -> f64 {
        let (part, all) = match self.parts.len() {
            1 => (part.period, self.all.period),
            _ => (part.samples, self.all.samples),
        };
        let percent = 100.0 * part / all;
        // A damaged recording may contain any numbers.
        if percent.is_finite() { percent } else { 0.0 }
    }
}
