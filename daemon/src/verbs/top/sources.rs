//! Finds running sessions, and reads their contents.
//!
//! A session is running if its folder is locked by its writer, a `varid record` or the daemon. Its perf.data is read up to its present
//! end, and each refresh reads what was added.

use crate::paths;
use crate::sessions;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use varid_model::Rate;
use varid_recording::{EventDesc, Manifest, SESSION_JSON, SessionState};
use varid_report::{LiveProfile, NameOptions};
use varid_top::{Choice, Request, SessionRow, Snapshot, State, Subject};

/// The interval of searches for sessions.
const LOOK: Duration = Duration::from_secs(2);
/// Number of records that are read before the time is checked.
const CHUNK: usize = 256;

/// The sessions that can be selected.
#[derive(Debug)]
pub struct Sources {
    /// The only session to show, if one was named.
    only: Option<PathBuf>,
    /// In the order in which they were found.
    sources: Vec<Source>,
    looked: Option<Instant>,
    /// Sessions that were not running, by the time of their manifests.
    idle: HashMap<PathBuf, SystemTime>,
}

/// A session that is or was running.
#[derive(Debug)]
struct Source {
    row: SessionRow,
    profile: Option<LiveProfile>,
    /// True if there are records that have not been read.
    is_behind: bool,
    /// True if the recording has ended and its end has been read.
    is_final: bool,
    problem: Option<String>,
}

impl Sources {
    /// Makes the sources: all running sessions, or `only` this one.
    pub fn new(only: Option<PathBuf>) -> anyhow::Result<Self> {
        let only = only.map(std::path::absolute).transpose()?;
        Ok(Self {
            sources: only.iter().cloned().map(Source::new).collect(),
            only,
            looked: None,
            idle: HashMap::new(),
        })
    }

    /// The only session.
    pub fn only(&self) -> Option<PathBuf> {
        self.only.clone()
    }

    /// Returns true if there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The reason why the only session cannot be shown.
    pub fn only_problem(&self) -> Option<&str> {
        self.only.as_ref()?;
        let only = self.sources.first()?;
        only.problem.as_deref().filter(|_| only.profile.is_none())
    }

    /// Returns true if there are records that have not been read.
    pub fn is_behind(&self) -> bool {
        self.sources.iter().any(|source| source.is_behind)
    }

    /// Searches for sessions, and for new records of the selected ones. `starting`: the only session may not exist yet.
    pub fn refresh(&mut self, choice: &Choice, starting: bool) {
        if self.only.is_none() && self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.look();
        }
        for source in &mut self.sources {
            if source.is_chosen(choice) && !source.is_final {
                source.refresh(starting);
            } else if source.row.runs {
                source.row.runs = sessions::is_being_recorded(&source.row.folder);
            }
        }
    }

    /// Reads until `until`. Returns true if there is more.
    pub fn read(&mut self, until: Instant) -> bool {
        for source in &mut self.sources {
            while source.is_behind && Instant::now() < until {
                let profile = source.profile.as_mut();
                source.is_behind = profile.is_some_and(|profile| profile.read(CHUNK));
            }
        }
        self.is_behind()
    }

    /// Returns the contents of the selected sessions.
    pub fn snapshot(&self, state: &State) -> Snapshot {
        let chosen = self.sources.iter();
        let chosen: Vec<_> = chosen
            .filter(|source| source.is_chosen(&state.choice))
            .collect();
        let profiles = chosen.iter().filter_map(|source| source.profile.as_ref());
        let profiles: Vec<_> = profiles.collect();
        let request = state.request();
        Snapshot {
            sessions: self
                .sources
                .iter()
                .map(|source| source.row.clone())
                .collect(),
            subject: subject(&chosen, &request),
            ..Snapshot::of(&profiles, &request)
        }
    }

    /// Searches for running sessions.
    fn look(&mut self) {
        // A folder that cannot be read may be readable next time.
        for folder in sessions::folders().unwrap_or_default() {
            let known = self
                .sources
                .iter()
                .any(|source| source.row.folder == folder);
            if known {
                continue;
            }
            let path = folder.join(SESSION_JSON);
            let changed = fs::metadata(&path).and_then(|file| file.modified()).ok();
            if changed.is_none() || self.idle.get(&folder) == changed.as_ref() {
                continue;
            }
            let manifest = Manifest::read(&path);
            let is_open = manifest
                .as_ref()
                .is_ok_and(|manifest| manifest.state == SessionState::Recording);
            if is_open && sessions::is_being_recorded(&folder) {
                self.sources.push(Source::new(folder));
            } else if let Some(changed) = changed.filter(|_| !is_open) {
                self.idle.insert(folder, changed);
            }
        }
    }
}

impl Source {
    fn new(folder: PathBuf) -> Self {
        Self {
            row: SessionRow {
                target: sessions::file_name(&folder),
                folder,
                runs: true,
            },
            profile: None,
            is_behind: false,
            is_final: false,
            problem: None,
        }
    }

    fn is_chosen(&self, choice: &Choice) -> bool {
        match choice {
            Choice::All => true,
            Choice::One(folder) => *folder == self.row.folder,
        }
    }

    fn refresh(&mut self, starting: bool) {
        // Checked before reading: later records are read at the next refresh.
        let runs = sessions::is_being_recorded(&self.row.folder);
        self.row.runs = runs || starting;
        let refreshed = match &mut self.profile {
            None => open(&self.row.folder).map(|profile| self.profile.insert(profile)),
            Some(profile) => Ok(profile),
        }
        .and_then(|profile| {
            let start = profile.session().manifest().start_time_ns;
            profile.refresh(!self.row.runs)?;
            let manifest = profile.session().manifest();
            self.row.target = sessions::shown_target(&manifest.target);
            Ok(manifest.start_time_ns == start)
        });
        self.is_final = !self.row.runs;
        self.problem = None;
        match refreshed {
            Ok(true) => self.is_behind = true,
            // Another session uses the folder now.
            Ok(false) => (self.profile, self.is_final) = (None, false),
            Err(_) if starting => self.is_final = false,
            Err(error) => self.problem = Some(error.to_string()),
        }
    }
}

/// Opens a session's profile. Lines are included, so that any method can be opened.
fn open(folder: &Path) -> varid_report::Result<LiveProfile> {
    let names = NameOptions {
        kept: Some(paths::device_symbols()),
        lines: true,
        ..NameOptions::default()
    };
    LiveProfile::open(folder, &names)
}

fn subject(chosen: &[&Source], request: &Request) -> Subject {
    let mut subject = Subject::default();
    for source in chosen {
        subject.runs |= source.row.runs;
        subject.is_behind |= source.is_behind;
        if let Some(profile) = &source.profile {
            let progress = profile.progress();
            subject.samples = subject.samples.saturating_add(progress.samples);
            subject.lost = subject.lost.saturating_add(progress.lost);
            subject.elapsed = subject.elapsed.max(progress.elapsed);
            let damage = progress.damage.clone();
            subject.problem = subject.problem.or(damage);
        }
        let problem = source.problem.clone();
        subject.problem = subject.problem.or(problem);
    }
    match chosen {
        [one] => {
            subject.name = one.row.target.clone();
            let events = one.profile.as_ref();
            let events = events.map(|profile| &profile.session().manifest().events);
            let event = events.and_then(|events| {
                let event = request.event.checked_rem(events.len())?;
                events.iter().nth(event)
            });
            subject.event = event.map_or("starting".to_owned(), shown_event);
        }
        several => {
            subject.name = format!("{} sessions", several.len());
            subject.event = "by samples".to_owned();
        }
    }
    subject
}

fn shown_event(event: &EventDesc) -> String {
    match event.rate {
        Rate::Frequency(hz) => format!("{} {hz} Hz", event.name),
        Rate::Period(period) => format!("{} every {period}", event.name),
    }
}
