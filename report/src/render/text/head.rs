//! The head of a text report.

use std::io::{self, Write};

use varid_model::Rate;
use varid_recording::{SessionState, TargetKind, terminal::one_line};

use super::emphasis::Emphasis;
use crate::{finding::Finding, scope::Scope, view::PercentOf};

/// Writes the first sentence, if there is one.
pub fn sentence(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let Some(finding) = Finding::of(scope) else {
        return Ok(());
    };
    let sentence = one_line(&finding.to_string());
    let painted = Emphasis::Title.painted(&sentence, scope.view.text.colour);
    writeln!(out, "{painted}\n")
}

/// Writes what was recorded, when and how, and what percentages refer to.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let recording = &scope.profile.recording;
    let manifest = &recording.manifest;
    let target = match (manifest.target.kind, one_line(&manifest.target.value)) {
        (TargetKind::All, _) => "the whole system".to_owned(),
        (TargetKind::Pid, value) => format!("pid {value}"),
        (TargetKind::Service, value) => format!("service {value}"),
        (TargetKind::App | TargetKind::Command | TargetKind::Several, value) => value,
    };
    let duration = recording.duration;
    let seconds = format!("{}.{:03}", duration.as_secs(), duration.subsec_millis());
    let state = match manifest.state {
        SessionState::Recording => ", live or killed",
        SessionState::Complete => "",
        SessionState::Failed => ", failed",
    };
    let start = one_line(&manifest.wall_start);
    writeln!(out, "Profile of {target}, {seconds} s from {start}{state}")?;
    writeln!(out, "{}", percentages(scope))?;
    if manifest.events.len() > 1 {
        let names = one_line(&manifest.events.names());
        writeln!(
            out,
            "Events of the session: {names}; -e EVENT shows one, --group all side by side"
        )?;
    }
    if let Some(share) = scope.description.multiplexed() {
        let estimate = scope.description.estimate(scope.samples.period());
        let estimate = estimate.map_or_else(String::new, |estimate| {
            format!(": about {estimate} {} in all of it", scope.unit())
        });
        let percent = share * 100.0;
        writeln!(
            out,
            "It had a counter for {percent:.2} % of the time (multiplexed){estimate}"
        )?;
    }
    let total = match scope.measures.are_samples() {
        true => "A total counts each sample once that has the row anywhere in its stack",
        false => {
            "A total has what was counted in the row and in all that it called, once where it recurs"
        }
    };
    writeln!(out, "{total}\n")
}

/// Describes the event, and what percentages refer to.
fn percentages(scope: &Scope) -> String {
    let (samples, period) = (scope.samples.samples(), scope.samples.period());
    let of = match scope.percent_of {
        _ if !scope.measures.are_samples() => format!("each measure: {}", measures(scope)),
        PercentOf::Period => format!("{period} {} in {samples} samples", scope.unit()),
        PercentOf::Samples => format!("{samples} samples"),
    };
    let (event, in_all) = match scope.profile.default_measure() {
        Some(_) => ("No samples".to_owned(), String::new()),
        None => {
            let in_all = format!(" of {} in all,", scope.event.recorded);
            (format!("Event {}", event(scope)), in_all)
        }
    };
    let selected = match scope.profile.options.describe() {
        nothing if nothing.is_empty() => String::new(),
        options => format!(",{in_all} by {}", one_line(&options)),
    };
    format!("{event}; percentages are of {of}{selected}")
}

/// Formats the shown measures with their sums.
fn measures(scope: &Scope) -> String {
    let measures = scope.measures.list.iter().enumerate();
    let sums = measures.map(|(place, measure)| {
        let (name, unit) = (one_line(&measure.name), one_line(&measure.unit));
        let unit = if name == unit {
            String::new()
        } else {
            format!(" {unit}")
        };
        let origin = measure.origin.name();
        format!("{name} {}{unit} ({origin})", scope.all.get(place))
    });
    sums.collect::<Vec<_>>().join(", ")
}

/// Formats the event with its number of samples.
pub fn event(scope: &Scope) -> String {
    let manifest = &scope.profile.recording.manifest;
    let event = scope.description;
    let name = one_line(&event.name);
    match event.rate {
        Rate::READ => {
            let leader = event.leader.and_then(|leader| manifest.events.get(leader));
            let leader = leader.map_or_else(String::new, |leader| one_line(&leader.name));
            format!("{name}, read with each sample of {leader}")
        }
        Rate::Frequency(hz) => {
            let mut changes = manifest.changes.iter();
            let changed = changes.any(|change| change.changed.iter().any(|key| key == "frequency"));
            let first = if changed { "at first " } else { "at " };
            format!("{name} {first}{hz} Hz")
        }
        Rate::Period(period) => format!("{name} every {period} {}", scope.unit()),
    }
}
