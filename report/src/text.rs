//! How does a view look to people?

mod dim;

use std::borrow::Cow;
use std::io::{self, Write};

use varid_model::Rate;
use varid_recording::{SessionState, Tactic, TargetKind, terminal::one_line};

use crate::{
    callgraph::{self, Entry},
    missing::{Lack, Missing},
    profile::Profile,
    resolve::UNNAMED_JIT,
    rows::{self, Row, Rows},
    tree::Weight,
    view::{By, PercentOf, Table, View},
};

/// Writes head, layers, the view's tables, and foot.
pub fn write(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    head(profile, view, out)?;
    table(profile, By::Layer, view, out)?;
    match view.table {
        Table::Overview => {
            table(profile, By::Image, view, out)?;
            table(profile, By::Symbol, view, out)?;
        }
        Table::By(By::Layer) => {}
        Table::By(by) => table(profile, by, view, out)?,
        Table::Callgraph => callgraph(profile, view, out)?,
        Table::Dim => dim::write(profile, view, out)?,
    }
    foot(profile, view, out)
}

fn head(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &profile.manifest;
    let target = match (manifest.target.kind, one_line(&manifest.target.value)) {
        (TargetKind::All, _) => "the whole system".to_owned(),
        (TargetKind::Pid, value) => format!("pid {value}"),
        (TargetKind::Service, value) => format!("service {value}"),
        (TargetKind::App | TargetKind::Command | TargetKind::Several, value) => value,
    };
    let seconds = thousandths(profile.duration_ns / 1_000_000);
    let state = match manifest.state {
        SessionState::Recording => ", live or killed",
        SessionState::Complete => "",
        SessionState::Failed => ", failed",
    };
    let start = one_line(&manifest.wall_start);
    writeln!(out, "Profile of {target}, {seconds} s from {start}{state}")?;
    let weight = profile.weight();
    let of = match view.percent_of {
        PercentOf::Period => {
            let unit = unit(profile);
            format!("{} {unit} in {} samples", weight.period, weight.samples)
        }
        PercentOf::Samples => format!("{} samples", weight.samples),
    };
    let selected = match profile.options.describe() {
        nothing if nothing.is_empty() => String::new(),
        options => format!(", of {} in all, by {options}", profile.recorded),
    };
    let event = event(profile);
    writeln!(out, "Event {event}; percentages are of {of}{selected}")?;
    if manifest.events.len() > 1 {
        let names = one_line(&manifest.events.names());
        writeln!(out, "Events of the session: {names}; -e EVENT shows one")?;
    }
    if let Some(share) = profile.event().multiplexed() {
        let estimate = profile.event().estimate(weight.period);
        let estimate = estimate.map_or_else(String::new, |estimate| {
            format!(": about {estimate} {} in all of it", unit(profile))
        });
        let percent = share * 100.0;
        writeln!(
            out,
            "It had a counter for {percent:.2} % of the time (multiplexed){estimate}"
        )?;
    }
    writeln!(
        out,
        "A total counts each sample once that has the row anywhere in its stack"
    )?;
    writeln!(out)
}

fn table(profile: &Profile, by: By, view: &View, out: &mut dyn Write) -> io::Result<()> {
    // Layers come first in every report: nothing is cut from them.
    let everything = View {
        percent_of: view.percent_of,
        ..View::default()
    };
    let view = if by == By::Layer { &everything } else { view };
    let Rows { mut shown, hidden } = rows::rows(profile, by, view);
    let folded = fold(profile, by, view, &mut shown);
    let labels: &[&str] = match by {
        By::Layer => &["layer"],
        By::Image => &["image name"],
        By::Symbol => &["image name", "symbol name"],
        By::Line => &["layer", "source line", "image name", "symbol name"],
        By::Service => &["service"],
        By::Process => &["pid", "process"],
        By::Thread => &["pid", "process", "tid", "thread"],
        By::Calls => &[
            "calls",
            "returns",
            "exits by exception",
            "image name",
            "symbol name",
        ],
    };
    if by == By::Calls && profile.calls.is_empty() {
        let why = match profile.manifest.tactic {
            Tactic::MethodInvoke => "the notes below may say why",
            Tactic::LoadFromDex => {
                "'varid start' and 'varid record' count them with --mode count-calls"
            }
        };
        writeln!(out, "No calls were counted: {why}")?;
        return writeln!(out);
    }
    // Threads and processes call nobody: their total would be the same again.
    let with_total = !matches!(by, By::Process | By::Thread | By::Service);
    let mut header = vec!["samples", "%"];
    if with_total {
        header.extend(["total", "%"]);
    }
    header.extend(labels);
    let cells = shown.iter().map(|row| {
        let mut cells = numbers(profile, view, row);
        if !with_total {
            cells.truncate(2);
        }
        cells.extend(labels.iter().map(|label| cell(row, label)));
        cells
    });
    let cells = cells.collect::<Vec<_>>();
    columns(&header, &cells, view.fit.width, out)?;
    if let Some(folded) = folded {
        writeln!(out, "{folded}")?;
    }
    hidden_rows(hidden, out)?;
    writeln!(out)
}

/// Takes the rows with small totals out of a table; the line that stands for them.
fn fold(profile: &Profile, by: By, view: &View, shown: &mut Vec<Row>) -> Option<String> {
    let below = view.fit.fold_below;
    if by == By::Calls {
        return None;
    }
    let all = view.percent_of.value(profile.weight());
    let percent = |weight| rows::percent(view.percent_of.value(weight), all);
    let large = |row: &Row| percent(row.share.total) >= below;
    // One row is as short as the line that would stand for it.
    if shown.iter().filter(|row| !large(row)).count() < 2 {
        return None;
    }
    let mut count = 0_usize;
    let mut own = Weight::default();
    shown.retain(|row| {
        let keep = large(row);
        if !keep {
            count = count.saturating_add(1);
            own.add(row.share.own);
        }
        keep
    });
    let (samples, percent) = (own.samples, percent(own));
    Some(format!(
        "({count} rows below {below} %: {samples} samples, {percent:.2} %; --all-rows shows them)"
    ))
}

/// In the manner of `opreport --callgraph`: callers indented above, the method, callees and
/// the method's own samples indented below.
fn callgraph(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    const RULE: &str =
        "-------------------------------------------------------------------------------";
    let (entries, hidden) = callgraph::entries(profile, view);
    writeln!(
        out,
        "Callers above, callees below; their percentages are of the method's total between them"
    )?;
    writeln!(out)?;
    let mut lines = Vec::new();
    for entry in &entries {
        lines.extend(entry_lines(profile, view, entry));
    }
    let header = ["samples", "%", "total", "%", "image name", "symbol name"];
    let rows: Vec<Vec<String>> = lines.iter().flatten().cloned().collect();
    let widths = widths(&header, &rows, view.fit.width);
    line(&header.map(str::to_owned), &widths, out)?;
    writeln!(out, "{RULE}")?;
    for cells in lines {
        match cells {
            Some(cells) => line(&cells, &widths, out)?,
            None => writeln!(out, "{RULE}")?,
        }
    }
    hidden_rows(hidden, out)?;
    writeln!(out)
}

/// The lines of an entry; the last is a rule.
fn entry_lines(profile: &Profile, view: &View, entry: &Entry) -> Vec<Option<Vec<String>>> {
    let all = view.percent_of.value(entry.row.share.total);
    let neighbour = |weight, row: &Row, suffix: &str| {
        let share = rows::percent(view.percent_of.value(weight), all);
        let name = cell(row, "symbol name");
        Some(vec![
            format!("  {}", weight.samples),
            format!("{share:.2}"),
            String::new(),
            String::new(),
            format!("  {}", cell(row, "image name")),
            format!("  {name}{suffix}"),
        ])
    };
    let callers = entry.callers.iter();
    let mut lines: Vec<_> = callers
        .map(|call| neighbour(call.weight, &call.row, ""))
        .collect();
    let mut method = numbers(profile, view, &entry.row);
    method.extend(["image name", "symbol name"].map(|label| cell(&entry.row, label)));
    lines.push(Some(method));
    // The method's own samples stand where their number puts them among its callees.
    let own = entry.row.share.own;
    let value = |weight| view.percent_of.value(weight);
    let (before, after): (Vec<_>, Vec<_>) = entry
        .callees
        .iter()
        .partition(|call| value(call.weight) > value(own));
    lines.extend(
        before
            .iter()
            .map(|call| neighbour(call.weight, &call.row, "")),
    );
    if own.samples > 0 {
        lines.push(neighbour(own, &entry.row, " [self]"));
    }
    lines.extend(
        after
            .iter()
            .map(|call| neighbour(call.weight, &call.row, "")),
    );
    lines.push(None);
    lines
}

fn foot(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &profile.manifest;
    let samples = profile.weight().samples;
    let unattributed = profile.unattributed_samples();
    let attributed = samples.saturating_sub(unattributed);
    let reasons: Vec<String> = profile
        .unattributed
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let reasons = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join(", "))
    };
    writeln!(out, "samples       {samples}, {attributed} attributed")?;
    writeln!(out, "unattributed  {unattributed}{reasons}")?;
    let unnamed = unnamed(profile);
    if unnamed.samples > 0 {
        let all = view.percent_of.value(profile.weight());
        let percent = rows::percent(view.percent_of.value(unnamed), all);
        let samples = unnamed.samples;
        writeln!(
            out,
            "unnamed       {samples}, {percent:.2} %, in code made at run time"
        )?;
    }
    writeln!(out, "lost          {}", profile.lost)?;
    let filtered = &manifest.counts.filtered;
    if !filtered.is_empty() {
        let all = filtered.iter();
        let all: Vec<_> = all
            .map(|(reason, count)| format!("by {reason} {count}"))
            .collect();
        writeln!(out, "filtered      {}", one_line(&all.join(", ")))?;
    }
    let malformed = manifest.counts.malformed;
    if malformed > 0 {
        writeln!(
            out,
            "malformed     {malformed}, records of the kernel that could not be read"
        )?;
    }
    writeln!(out, "throttled     {}", manifest.counts.throttled)?;
    writeln!(out, "event         {}", event(profile))?;
    writeln!(out, "source        {}", manifest.source.name())?;
    let shown = view.fit.missing.unwrap_or(usize::MAX);
    for missing in profile.missing.iter().take(shown) {
        self::missing(profile, view, missing, out)?;
    }
    let left = profile.missing.len().saturating_sub(shown);
    if left > 0 {
        writeln!(out, "missing       {left} more; --all-rows shows them")?;
    }
    for note in &profile.notes {
        writeln!(out, "note          {}", one_line(note))?;
    }
    Ok(())
}

/// What was sampled in code that was made at run time and that nobody has named.
fn unnamed(profile: &Profile) -> Weight {
    // It is an image of its own, and there are fewer images than symbols.
    let rows = rows::rows(profile, By::Image, &View::default()).shown;
    let is_it = |row: &Row| row.image.as_deref() == Some(UNNAMED_JIT);
    let found = rows.into_iter().find(is_it);
    found.map_or(Weight::default(), |row| row.share.own)
}

/// What is missing, how much of the profile it is missing from, and how to get it.
fn missing(
    profile: &Profile,
    view: &View,
    missing: &Missing,
    out: &mut dyn Write,
) -> io::Result<()> {
    let what = match missing.lack {
        Lack::File => "file",
        Lack::Names => "names of",
        Lack::Lines => "lines of",
    };
    let all = view.percent_of.value(profile.weight());
    let percent = rows::percent(view.percent_of.value(missing.weight), all);
    let samples = missing.weight.samples;
    let build_id = match missing.build_id.as_str() {
        "" => "no build-id",
        id => id,
    };
    let file = one_line(&missing.file.to_string_lossy());
    writeln!(
        out,
        "missing       {what} {file} ({build_id}), in {samples} samples, {percent:.2} %"
    )?;
    let why = Some(&missing.why).filter(|why| !why.is_empty());
    for line in why.into_iter().chain(&missing.fetch) {
        writeln!(out, "              {}", one_line(line))?;
    }
    Ok(())
}

/// Self and total of a row with their percentages.
fn numbers(profile: &Profile, view: &View, row: &Row) -> Vec<String> {
    let all = view.percent_of.value(profile.weight());
    let percent = |weight| {
        let percent = rows::percent(view.percent_of.value(weight), all);
        format!("{percent:.2}")
    };
    let share = row.share;
    vec![
        share.own.samples.to_string(),
        percent(share.own),
        share.total.samples.to_string(),
        percent(share.total),
    ]
}

fn cell(row: &Row, label: &str) -> String {
    let text = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
    let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
    match label {
        "layer" => row.layer.map_or("", |layer| layer.name()).to_owned(),
        "image name" => text(&row.image),
        "symbol name" => one_line(&row.symbol_name()),
        "source line" => one_line(&row.source_line()),
        "calls" => row.calls.unwrap_or_default().invokes.to_string(),
        "returns" => row.calls.unwrap_or_default().returns.to_string(),
        "exits by exception" => row.calls.unwrap_or_default().unwinds.to_string(),
        "service" => row.service.as_deref().map_or("-".to_owned(), one_line),
        "pid" => number(row.pid),
        "process" => text(&row.process),
        "tid" => number(row.tid),
        _ => text(&row.thread),
    }
}

/// Rows below a header, in columns that are as wide as they need to be, and no wider than the terminal together.
fn columns(
    header: &[&str],
    rows: &[Vec<String>],
    terminal: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let widths = widths(header, rows, terminal);
    let header: Vec<String> = header.iter().map(|&label| label.to_owned()).collect();
    line(&header, &widths, out)?;
    rows.iter().try_for_each(|row| line(row, &widths, out))
}

const GAP: &str = "  ";

/// A column is never cut below this: numbers stay whole.
const NARROWEST: usize = 12;

fn widths(header: &[&str], rows: &[Vec<String>], terminal: Option<usize>) -> Vec<usize> {
    let width = |column: usize, label: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(label.chars().count())
    };
    let columns = header.iter().enumerate();
    let mut widths: Vec<usize> = columns
        .map(|(column, label)| width(column, label))
        .collect();
    let gaps = widths.len().saturating_sub(1).saturating_mul(GAP.len());
    let room = terminal.map_or(usize::MAX, |columns| columns.saturating_sub(gaps));
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    // The widest column gives way first.
    while over > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > NARROWEST) else {
            break;
        };
        *widest = widest.saturating_sub(1);
        over = over.saturating_sub(1);
    }
    widths
}

fn line(cells: &[String], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    let padded = cells.iter().zip(widths);
    let text: Vec<String> = padded
        .map(|(cell, &width)| format!("{:width$}", cut(cell, width)))
        .collect();
    writeln!(out, "{}", text.join(GAP).trim_end())
}

/// A name in so many columns: its two ends, if it is longer.
fn cut(name: &str, width: usize) -> Cow<'_, str> {
    const DOTS: &str = "..";
    let length = name.chars().count();
    if length <= width {
        return name.into();
    }
    let kept = width.saturating_sub(DOTS.len());
    let front: String = name.chars().take(kept.div_ceil(2)).collect();
    let back: String = name.chars().skip(length.saturating_sub(kept / 2)).collect();
    format!("{front}{DOTS}{back}").into()
}

fn hidden_rows(hidden: usize, out: &mut dyn Write) -> io::Result<()> {
    if hidden > 0 {
        writeln!(out, "({hidden} more)")?;
    }
    Ok(())
}

fn event(profile: &Profile) -> String {
    let event = profile.event();
    let name = one_line(&event.name);
    match event.rate {
        Rate::READ => {
            let leader = event
                .leader
                .and_then(|leader| profile.manifest.events.get(leader));
            let leader = leader.map_or_else(String::new, |leader| one_line(&leader.name));
            format!("{name}, read with each sample of {leader}")
        }
        Rate::Frequency(hz) => {
            let mut changes = profile.manifest.changes.iter();
            let changed = changes.any(|change| change.changed.iter().any(|key| key == "frequency"));
            let first = if changed { "at first " } else { "at " };
            format!("{name} {first}{hz} Hz")
        }
        Rate::Period(period) => format!("{name} every {period} {}", unit(profile)),
    }
}

/// What a period counts.
fn unit(profile: &Profile) -> &'static str {
    let name = &profile.event().name;
    if name.starts_with("cpu-clock") || name.starts_with("task-clock") {
        "ns"
    } else {
        "events"
    }
}

fn thousandths(number: u64) -> String {
    format!("{}.{:03}", number / 1_000, number % 1_000)
}
