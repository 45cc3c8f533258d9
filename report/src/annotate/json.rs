//! Annotations as JSON, a public interface: `schema/annotate.schema.json`.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde::Serialize;

use super::annotation::{
    AnnotatedCode, AnnotatedFile, AnnotatedInstruction, AnnotatedLine, AnnotatedMethod, Annotation,
    Candidate, Candidates, CompiledInstruction, InlinedLine,
};
use crate::{
    JSON_VERSION, JSON_VERSION_OF_MEASURES,
    columns::{Object, Value},
    weights::Weight,
};

#[derive(Serialize)]
struct JsonAnnotation<'a> {
    version: u32,
    session: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    selected_by: &'a str,
    #[serde(flatten)]
    counted: Counted<'a>,
    method: Object<'a>,
    files: Vec<Object<'a>>,
    notes: &'a [String],
}

/// What the values count.
#[derive(Serialize)]
#[serde(untagged)]
enum Counted<'a> {
    Samples {
        event: &'a str,
        samples: u64,
        period_sum: u64,
        percent_of: &'static str,
    },
    Measure {
        measure: Object<'a>,
    },
}

#[derive(Serialize)]
struct JsonCandidates<'a> {
    version: u32,
    name: &'a str,
    candidates: Vec<Object<'a>>,
    candidates_hidden: usize,
}

/// Writes an annotation as one JSON object and a newline.
///
/// # Errors
///
/// Writing to `out` fails.
pub fn write_annotation_json(annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &annotation_json(annotation))?;
    writeln!(out)
}

/// The JSON object of an annotation.
pub fn annotation_json(annotation: &Annotation) -> impl Serialize {
    let (own, total) = (annotation.method.share.own, annotation.method.share.total);
    let codes = annotation.compiled.iter();
    let codes = codes.map(|code| compiled_code(annotation, code));
    let described = method(&annotation.method)
        .with(percentages(annotation, own))
        .with(totals(annotation, total))
        .with([
            (
                "approximate",
                nonzero(annotation, annotation.method.approximate),
            ),
            ("code", annotation.method.code.into()),
            ("code_file", annotation.code_file.as_deref().into()),
            ("compiled", list(codes.collect())),
        ]);
    let files = annotation.files.iter();
    JsonAnnotation {
        version: match annotation.measures.are_samples() {
            true => JSON_VERSION,
            false => JSON_VERSION_OF_MEASURES,
        },
        session: annotation.session.to_string_lossy(),
        selected_by: &annotation.selected_by,
        counted: counted(annotation),
        method: described,
        files: files.map(|found| file(annotation, found)).collect(),
        notes: &annotation.notes,
    }
}

fn counted(annotation: &Annotation) -> Counted<'_> {
    let measure = annotation.measures.lead();
    match measure.filter(|_| !annotation.measures.are_samples()) {
        Some(measure) => Counted::Measure {
            measure: Object::of([
                ("name", measure.name.as_str().into()),
                ("unit", measure.unit.as_str().into()),
                ("sum", annotation.measures.value(annotation.all).into()),
            ]),
        },
        None => Counted::Samples {
            event: &annotation.event,
            samples: annotation.all.get(0),
            period_sum: annotation.all.get(1),
            percent_of: annotation.percent_of.name(),
        },
    }
}

/// Writes the candidates for an ambiguous name, as one JSON object and a newline.
///
/// # Errors
///
/// Writing to `out` fails.
pub fn write_candidates_json(candidates: &Candidates, out: &mut dyn Write) -> io::Result<()> {
    let rows = candidates.methods.iter().map(candidate).collect();
    let document = JsonCandidates {
        version: JSON_VERSION,
        name: &candidates.name,
        candidates: rows,
        candidates_hidden: candidates.more,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn candidate(found: &Candidate) -> Object<'_> {
    method(&found.method).with([
        ("self", found.method.share.own.get(0).into()),
        ("total", found.method.share.total.get(0).into()),
        ("self_percent", Value::Percent(found.own_percent)),
        ("total_percent", Value::Percent(found.total_percent)),
    ])
}

/// Returns the number of samples or the value of the measure, or no value if it is 0.
fn nonzero<'a>(annotation: &Annotation, weight: Weight) -> Value<'a> {
    let count = annotation.measures.count(weight);
    Some(count).filter(|count| *count > 0).into()
}

/// Returns the sum of periods. Named measures have none.
fn period<'a>(annotation: &Annotation, weight: Weight) -> Value<'a> {
    let has_periods = annotation.measures.are_samples();
    has_periods.then(|| weight.get(1)).into()
}

fn method(method: &AnnotatedMethod) -> Object<'_> {
    let addresses = method.addresses.as_ref();
    let whole = addresses.filter(|range| !range.is_empty());
    let path = method.path.as_ref().map(|path| path.to_string_lossy());
    let start = addresses.map(|range| range.start);
    Object::of([
        ("name", method.name.as_str().into()),
        ("signature", method.signature.as_deref().into()),
        ("recorded", method.recorded.as_deref().into()),
        ("layer", method.layer.name().into()),
        ("image", method.image.as_str().into()),
        ("path", path.into()),
        ("start", start.map_or(Value::Absent, Value::hex)),
        (
            "end",
            whole.map_or(Value::Absent, |range| Value::hex(range.end)),
        ),
    ])
}

/// Returns the values of an own share.
fn percentages<'a>(annotation: &Annotation, own: Weight) -> [(&'static str, Value<'a>); 4] {
    [
        ("self", annotation.measures.count(own).into()),
        ("self_period", period(annotation, own)),
        ("self_percent", Value::Percent(annotation.of_all(own))),
        ("method_percent", Value::Percent(annotation.of_method(own))),
    ]
}

/// Returns the values of a total share.
fn totals<'a>(annotation: &Annotation, total: Weight) -> [(&'static str, Value<'a>); 3] {
    [
        ("total", annotation.measures.count(total).into()),
        ("total_period", period(annotation, total)),
        ("total_percent", Value::Percent(annotation.of_all(total))),
    ]
}

fn file<'a>(annotation: &'a Annotation, file: &'a AnnotatedFile) -> Object<'a> {
    let lines = file.lines.iter();
    let lines: Vec<_> = lines.map(|found| line(annotation, found)).collect();
    Object::of([
        ("name", file.name.as_deref().into()),
        ("found", file.found.as_deref().into()),
        ("lines", Value::List(lines)),
    ])
}

/// Returns a list, or no value if it is empty.
fn list(objects: Vec<Object<'_>>) -> Value<'_> {
    match objects.is_empty() {
        true => Value::Absent,
        false => Value::List(objects),
    }
}

fn line<'a>(annotation: &'a Annotation, line: &'a AnnotatedLine) -> Object<'a> {
    let mut found = Object::of([
        ("line", line.number.into()),
        ("source", line.source.as_deref().into()),
    ]);
    if line.is_of_method {
        let share = line.share;
        found = found
            .with(percentages(annotation, share.own))
            .with(totals(annotation, share.total))
            .with([("approximate", nonzero(annotation, line.approximate))]);
    }
    let inlines = line.inlined.iter();
    let inlines = inlines.map(|found| inlined(annotation, found)).collect();
    let instructions = line.instructions.iter();
    let instructions = instructions
        .map(|found| instruction(annotation, found))
        .collect();
    found.with([
        ("inlined", list(inlines)),
        ("instructions", list(instructions)),
        ("compiled", compiled(annotation, &line.compiled)),
    ])
}

fn compiled_code<'a>(annotation: &'a Annotation, code: &'a AnnotatedCode) -> Object<'a> {
    Object::of([
        ("code", code.label.to_string().into()),
        ("name", code.name.as_str().into()),
        ("address", Value::hex(code.start)),
        ("size", (code.size as u64).into()),
        ("instructions", code.set.into()),
    ])
    .with(percentages(annotation, code.own))
}

/// Returns the instructions of compiled code of a line or a bytecode instruction.
fn compiled<'a>(annotation: &'a Annotation, found: &'a [CompiledInstruction]) -> Value<'a> {
    let found = found.iter().map(|found| {
        Object::of([
            ("code", found.code.to_string().into()),
            ("address", Value::hex(found.address)),
            ("offset", found.offset.into()),
            ("size", found.len.into()),
            ("text", found.text.as_str().into()),
        ])
        .with(percentages(annotation, found.own))
    });
    list(found.collect())
}

fn inlined<'a>(annotation: &'a Annotation, line: &'a InlinedLine) -> Object<'a> {
    let place = line.line.as_ref();
    Object::of([
        ("function", line.function.as_str().into()),
        ("file", place.map(|(file, _)| file.as_ref()).into()),
        ("line", place.map(|(_, line)| *line).into()),
        ("source", line.source.as_deref().into()),
    ])
    .with(percentages(annotation, line.own))
}

fn instruction<'a>(
    annotation: &'a Annotation,
    instruction: &'a AnnotatedInstruction,
) -> Object<'a> {
    let has_pc = annotation.method.has_bytecode();
    Object::of([
        ("address", Value::hex(instruction.address)),
        ("pc", has_pc.then_some(instruction.place).into()),
        ("size", instruction.len.into()),
        ("text", instruction.text.as_str().into()),
    ])
    .with(percentages(annotation, instruction.share.own))
    .with(totals(annotation, instruction.share.total))
    .with([
        ("approximate", nonzero(annotation, instruction.approximate)),
        ("compiled", compiled(annotation, &instruction.compiled)),
    ])
}
