//! The foot of a text report: its completeness.

use std::io::{self, Write};

use varid_model::{Layer, Reason};
use varid_recording::terminal::one_line;

use super::head;
use crate::{
    missing_files::{MissingFile, MissingPart},
    naming::{Runtime, UNNAMED_JIT},
    scope::{Scope, percent},
    view::TableNeed,
    weights::SampleWeight,
};

/// Reasons with more than this percentage of samples are explained.
const MIN_REASON_PERCENT: f64 = 1.0;

/// Writes the attribution, the losses, and the missing names and lines.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let recording = &scope.profile.recording;
    write_attributed(scope, out)?;
    write_unnamed(scope, out)?;
    for line in excluded(scope) {
        writeln!(out, "excluded      {line}")?;
    }
    write_lost(scope, out)?;
    writeln!(out, "event         {}", head::event(scope))?;
    writeln!(out, "source        {}", recording.manifest.source.name())?;
    let missing = &scope.event.missing;
    let shown = scope.view.text.missing.unwrap_or(missing.len());
    for missing in missing.iter().take(shown) {
        write_missing(scope, missing, out)?;
    }
    let more = missing.len().saturating_sub(shown);
    if more > 0 {
        writeln!(out, "missing       {more} more; --all-rows shows them")?;
    }
    for note in recording.notes.iter().chain(&scope.event.notes) {
        writeln!(out, "note          {}", one_line(note))?;
    }
    Ok(())
}

/// Writes how many samples are attributed, and the reasons for the others.
fn write_attributed(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let samples = scope.samples.samples();
    let unattributed = scope.event.unattributed_samples();
    let attributed = samples.saturating_sub(unattributed);
    let reasons = scope.event.unattributed.iter();
    let reasons: Vec<String> = reasons
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let reasons = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join(", "))
    };
    writeln!(out, "samples       {samples}, {attributed} attributed")?;
    writeln!(out, "unattributed  {unattributed}{reasons}")?;
    for (reason, count) in &scope.event.unattributed {
        let is_notable = percent(*count, samples) > MIN_REASON_PERCENT;
        let known = Reason::ALL
            .into_iter()
            .find(|known| known.name() == *reason);
        if let Some(known) = known.filter(|_| is_notable) {
            writeln!(out, "              {reason}: {}", known.meaning())?;
        }
    }
    Ok(())
}

/// Writes how many samples have no name or an approximate line.
fn write_unnamed(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let unnamed = unnamed(scope);
    if unnamed.samples() > 0 {
        let (samples, percent) = (unnamed.samples(), scope.sample_percent(unnamed));
        writeln!(
            out,
            "unnamed       {samples}, {percent:.2} %, in code made at run time"
        )?;
    }
    for (runtime, weight) in unnamed_methods(scope) {
        let (samples, percent) = (weight.samples(), scope.sample_percent(weight));
        writeln!(
            out,
            "methods       {samples}, {percent:.2} %, run in {}, which names none of its program's functions",
            runtime.name()
        )?;
        writeln!(
            out,
            "              start it as {}: varid help node-python",
            runtime.command()
        )?;
    }
    let approximate = approximate(scope);
    if approximate.samples() > 0 {
        let (samples, percent) = (approximate.samples(), scope.sample_percent(approximate));
        writeln!(
            out,
            "approximate   {samples}, {percent:.2} %, at lines with ~: compiled code was between calls and checks that are at known lines"
        )?;
    }
    Ok(())
}

/// Writes what the recording lost, omitted or could not read.
fn write_lost(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let recording = &scope.profile.recording;
    let counts = &recording.manifest.counts;
    writeln!(out, "lost          {}", recording.lost)?;
    if !counts.filtered.is_empty() {
        let filtered = counts.filtered.iter();
        let filtered: Vec<_> = filtered
            .map(|(reason, count)| format!("by {reason} {count}"))
            .collect();
        writeln!(out, "filtered      {}", one_line(&filtered.join(", ")))?;
    }
    let malformed = counts.malformed;
    if malformed > 0 {
        writeln!(
            out,
            "malformed     {malformed}, records of the kernel that could not be read"
        )?;
    }
    writeln!(out, "throttled     {}", counts.throttled)
}

/// Describes the samples that filters exclude, and those that are in no row.
fn excluded(scope: &Scope) -> Vec<String> {
    let mut lines = Vec::new();
    let excluded = &scope.event.excluded;
    if !excluded.is_empty() {
        let sum = excluded
            .values()
            .fold(0, |sum: u64, n| sum.saturating_add(*n));
        let by = excluded
            .iter()
            .map(|(option, n)| format!("by {option} {n}"));
        let by: Vec<_> = by.collect();
        lines.push(format!("{sum}, {}", by.join(", ")));
    }
    if let Some(elsewhere) = scope.elsewhere() {
        let (samples, percent) = (elsewhere.samples(), scope.sample_percent(elsewhere));
        let view = scope.view;
        let layer = view
            .code
            .layer
            .map(|layer| format!("--layer {}", layer.name()));
        let symbol = view.code.symbol.as_ref();
        let symbol = symbol.map(|pattern| format!("--symbol {}", pattern.text()));
        let options: Vec<_> = layer.into_iter().chain(symbol).collect();
        let options = one_line(&options.join(" "));
        lines.push(format!(
            "{samples}, {percent:.2} %, have their leaf outside of {options}; percentages count them"
        ));
    }
    lines
}

/// Returns the samples in run-time code without a name.
fn unnamed(scope: &Scope) -> SampleWeight {
    let profile = scope.profile;
    let mut sum = SampleWeight::default();
    for row in profile.weights.sample_rows(scope.event.event) {
        let frame = row.stack.and_then(|stack| profile.stacks.frame(stack));
        let symbol = frame.and_then(|frame| profile.frames.symbol_of(frame));
        let image = symbol.and_then(|symbol| profile.frames.image(symbol.image));
        if image.is_some_and(|image| image.name == UNNAMED_JIT) {
            sum.add(row.weight);
        }
    }
    sum
}

/// Returns the runtimes that did not name their code, with their samples.
fn unnamed_methods(scope: &Scope) -> Vec<(Runtime, SampleWeight)> {
    let frames = &scope.profile.frames;
    let runtime = |frame| {
        let image = frames.image(frames.symbol_of(frame)?.image)?;
        let runtime = Runtime::of(image.path.as_deref()?);
        runtime.filter(|_| image.layer == Layer::Vm)
    };
    let has_names = |runtime: Runtime| {
        let mut symbols = frames.symbols().iter();
        symbols.any(|symbol| symbol.name.starts_with(runtime.prefix()))
    };
    let shares = scope.sample_weights().by_frame(runtime).into_iter();
    let mut found: Vec<_> = shares
        .map(|(runtime, share)| (runtime, SampleWeight::from(share.total)))
        .filter(|(runtime, weight)| {
            scope.sample_percent(*weight) > MIN_REASON_PERCENT && !has_names(*runtime)
        })
        .collect();
    found.sort_by_key(|(runtime, _)| *runtime);
    found
}

/// Returns the samples with an approximate line, if lines are shown.
fn approximate(scope: &Scope) -> SampleWeight {
    let shows_lines = scope.view.table.needs(TableNeed::Lines);
    let frames = &scope.profile.frames;
    let marked = |frame| (shows_lines && frames.is_approximate(frame)).then_some(());
    let marked = scope.sample_weights().by_frame(marked);
    let share = marked.get(&()).copied().unwrap_or_default();
    share.total.into()
}

/// Writes a missing file, the samples that it affects, and how to get it.
fn write_missing(scope: &Scope, missing: &MissingFile, out: &mut dyn Write) -> io::Result<()> {
    let what = match missing.part {
        MissingPart::File => "file",
        MissingPart::Names => "names of",
        MissingPart::Lines => "lines of",
    };
    let (samples, percent) = (
        missing.weight.samples(),
        scope.sample_percent(missing.weight),
    );
    let build_id = match missing.build_id.as_str() {
        "" => "no build-id",
        id => id,
    };
    let file = one_line(&missing.file.to_string_lossy());
    let unit = if samples == 1 { "sample" } else { "samples" };
    writeln!(
        out,
        "missing       {what} {file} ({build_id}), in {samples} {unit}, {percent:.2} %"
    )?;
    let why = Some(&missing.why).filter(|why| !why.is_empty());
    for line in why.into_iter().chain(&missing.fetch) {
        writeln!(out, "              {}", one_line(line))?;
    }
    Ok(())
}
