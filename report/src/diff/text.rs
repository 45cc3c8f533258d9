//! Comparisons as text.

use std::io::{self, Write};

use varid_recording::terminal::one_line;

use super::{
    Quantity, Side,
    comparison::{Comparison, DiffTable, LEAST_SAMPLES},
    renamed_images::renamed_images,
    session::SessionShares,
    table,
    tested_by::TestedBy,
};
use crate::{
    columns::OutputFormat,
    render::text::layout,
    view::{PercentOf, RowOrder},
};

/// Writes the facts and the tables.
pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    for fact in facts(comparison) {
        writeln!(out, "{}", one_line(&fact))?;
    }
    for table in &comparison.tables {
        writeln!(out)?;
        write_table(comparison, table, out)?;
    }
    Ok(())
}

fn write_table(comparison: &Comparison, table: &DiffTable, out: &mut dyn Write) -> io::Result<()> {
    if table.rows.is_empty() {
        return writeln!(out, "(no rows by {})", table.by.name());
    }
    let mut text = Vec::new();
    layout::write(
        &table::sheet(comparison, table, OutputFormat::Text),
        comparison.view.view.text.colour,
        &mut text,
    )?;
    // The empty line belongs to the next table.
    text.pop();
    out.write_all(&text)
}

/// Describes the comparison, the tests and the sessions. A line that starts with spaces continues the previous one.
pub fn facts(comparison: &Comparison) -> Vec<String> {
    let [a, b] = comparison.sides;
    let mut facts = Vec::new();
    for (name, sessions) in [(Side::A, a), (Side::B, b)] {
        facts.extend(side(name, sessions));
    }
    facts.push(compared(comparison));
    facts.push(total(comparison));
    facts.extend(significance(comparison));
    facts.extend(notes(comparison));
    facts
}

fn side(side: Side, sessions: &[SessionShares]) -> Vec<String> {
    let name = match side {
        Side::A => "A",
        Side::B => "B",
    };
    let sum = |of: fn(&SessionShares) -> u64| {
        let values = sessions.iter().map(of);
        values.fold(0, u64::saturating_add)
    };
    let samples = sum(|session| session.count(session.all));
    let unit = sessions
        .first()
        .map_or("", |session| session.measures.count_unit());
    let unattributed = sum(|session| session.missing.unattributed);
    let lost = sum(|session| session.missing.lost);
    let count = match sessions.len() {
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    let mut targets: Vec<_> = sessions
        .iter()
        .map(|session| &session.recording.target)
        .collect();
    targets.dedup();
    let target = match targets.as_slice() {
        [target] if !target.is_empty() => format!(", of {target}"),
        _ => String::new(),
    };
    let first = format!(
        "{name}: {count}, {samples} {unit}, {unattributed} unattributed, {lost} lost{target}"
    );
    let folder = |session: &SessionShares| format!("   {}", session.recording.folder.display());
    let folders = sessions.iter().map(folder);
    std::iter::once(first).chain(folders).collect()
}

fn compared(comparison: &Comparison) -> String {
    let Some(session) = comparison.sides.iter().copied().flatten().next() else {
        return String::new();
    };
    let (event, unit) = (&session.event, session.unit.as_str());
    let leaf = match comparison.view.view.order {
        RowOrder::Total => "anywhere in the stack",
        RowOrder::Own | RowOrder::Name => "leaf",
    };
    let selected = match session.recording.selection.as_str() {
        "" => String::new(),
        selection => format!(", of samples that {selection} leaves"),
    };
    let what = match (comparison.view.quantity, &comparison.per) {
        (Quantity::Absolute, Ok(per)) => {
            let unit = match unit {
                "ns" => "milliseconds",
                "bytes" => "megabytes",
                _ => "millions",
            };
            format!("{unit} of {event} a {}", per.name())
        }
        _ if comparison.measure().is_some() => format!("percent of a session's {event} ({unit})"),
        _ => match comparison.view.view.percent_of {
            PercentOf::Period => format!("percent of a session's {event} ({unit})"),
            PercentOf::Samples => format!("percent of a session's samples of {event}"),
        },
    };
    format!("Rows: {what}, by {leaf}{selected}; -: no sample")
}

fn total(comparison: &Comparison) -> String {
    match (&comparison.total, &comparison.per) {
        (Ok(total), Ok(per)) => {
            let (per, unit) = (per.name(), table::unit(comparison));
            let (a, b) = (total.a.value, total.b.value);
            format!("In all, a {per}: A {a:.2} {unit}, B {b:.2} {unit}, {total}")
        }
        (Err(reason), _) | (_, Err(reason)) => {
            format!("In all: only shares can be compared: {reason}")
        }
    }
}

fn significance(comparison: &Comparison) -> Vec<String> {
    let by_sample = match comparison.view.quantity {
        Quantity::Share => "Fisher's exact test of two proportions",
        Quantity::Absolute => "the binomial test of two rates",
    };
    let [a, b] = comparison.sides;
    let level = level_text(comparison.view.level);
    let several =
        "   Several sessions a side are tested by session: diff A A2 A3 --against B B2 B3"
            .to_owned();
    let mut lines = match comparison.tested_by() {
        TestedBy::Nothing => {
            let why = match comparison.measure() {
                Some(_) => "Not tested: exact counts have no error of sampling",
                None => "Not tested: the number of waits says nothing of how long they take",
            };
            return vec![why.to_owned(), several];
        }
        TestedBy::Sample => vec![
            format!("Tested by sample: {by_sample}"),
            "   What varies from run to run is not in it: unchanged code can be marked.".to_owned(),
            several,
        ],
        by @ (TestedBy::SessionAndSample | TestedBy::Session) => {
            let by_session = match a.len().min(b.len()) {
                1 => "Student's t-test, with the spread of the side that has several",
                _ => "Welch's t-test",
            };
            let mut lines = vec![format!("Tested by session: {by_session}")];
            if by == TestedBy::SessionAndSample {
                lines.push(format!(
                    "   and by sample: {by_sample}; the larger p counts"
                ));
            }
            lines
        }
    };
    let tested = comparison.tables.iter();
    let tested = tested.map(|table| format!("{} by {}", table.tested, table.by.name()));
    let tested = tested.collect::<Vec<_>>().join(", ");
    lines.push(format!(
        "   q: false discovery rate (Benjamini-Hochberg); *: at most {level}"
    ));
    lines.push(format!(
        "   Rows with {LEAST_SAMPLES} samples or more are tested: {tested}"
    ));
    lines
}

fn level_text(level: f64) -> String {
    match level < 0.001 {
        true => format!("{level:e}"),
        false => level.to_string(),
    }
}

/// Returns notes that limit the validity of the comparison.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let sessions = || comparison.sides.iter().copied().flatten();
    let mut notes = Vec::new();
    let mut machines: Vec<&str> = sessions()
        .map(|session| session.recording.machine.as_str())
        .collect();
    machines.sort_unstable();
    machines.dedup();
    if machines.len() > 1 {
        notes.push(format!(
            "Note: recorded on different machines or kernels: {}",
            machines.join(", ")
        ));
    }
    for session in sessions().filter(|session| session.missing.throttled > 0) {
        let (folder, throttled) = (
            session.recording.folder.display(),
            session.missing.throttled,
        );
        notes.push(format!("Note: {folder} was throttled {throttled} times"));
    }
    notes.extend(renamed_images(comparison).map(|renamed| format!("Note: {renamed}")));
    notes
}
