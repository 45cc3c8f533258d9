//! Which rows does the text of an annotation have?

use super::annotation::{
    AnnotatedFile, AnnotatedInstruction, AnnotatedLine, Annotation, InlinedLine,
};
use crate::weights::SampleWeight;

/// A row.
pub enum Row<'a> {
    /// A file begins.
    File(&'a AnnotatedFile),
    /// Lines are left out.
    Gap,
    Line(&'a AnnotatedLine),
    Inlined(&'a InlinedLine),
    Instruction(&'a AnnotatedInstruction),
}

/// All rows: beneath a line what was compiled into it, and its instructions.
pub fn rows(annotation: &Annotation) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let several = annotation.files.len() > 1;
    for file in &annotation.files {
        if several {
            rows.push(Row::File(file));
        }
        let mut expected = None;
        for line in &file.lines {
            if expected.is_some_and(|expected| line.number > Some(expected)) {
                rows.push(Row::Gap);
            }
            expected = line.number.map(|number| number.saturating_add(1));
            if line.number.is_some() {
                rows.push(Row::Line(line));
            }
            rows.extend(line.inlined.iter().map(Row::Inlined));
            let mut next = None;
            for found in &line.instructions {
                // Of instructions without a line some may be left out.
                let hidden = next.is_some_and(|next| found.address != next);
                if line.number.is_none() && hidden {
                    rows.push(Row::Gap);
                }
                next = Some(found.address.saturating_add(found.len.into()));
                rows.push(Row::Instruction(found));
            }
        }
    }
    rows
}

/// How hot something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    Cold,
    /// From 5 % of the method's own samples on.
    Warm,
    /// From 20 % on.
    Hot,
}

impl Heat {
    /// Of what took this by itself.
    pub fn of(annotation: &Annotation, own: SampleWeight) -> Self {
        match annotation.of_method(own) {
            20.0.. => Self::Hot,
            5.0.. => Self::Warm,
            _ => Self::Cold,
        }
    }
}

/// The percentages of what took this: of the method's own samples, of all by itself, of all.
pub struct Percentages {
    pub of_method: String,
    pub own: String,
    pub total: String,
}

impl Percentages {
    pub fn of(annotation: &Annotation, own: SampleWeight, total: SampleWeight) -> Self {
        let shown = |weight: SampleWeight, percent: f64| match weight.is_zero() {
            true => String::new(),
            false => format!("{percent:.2}"),
        };
        Self {
            of_method: shown(own, annotation.of_method(own)),
            own: shown(own, annotation.of_all(own)),
            total: shown(total, annotation.of_all(total)),
        }
    }
}

/// Where an instruction is, as disassemblers of its kind write it.
pub fn place(annotation: &Annotation, found: &AnnotatedInstruction) -> String {
    let mark = mark(found.approximate);
    match annotation.method.code {
        Some("dex") => format!("{mark}{:04x}:", found.place),
        _ => format!("{mark}{:x}:", found.place),
    }
}

/// The number of a line.
pub fn number(line: &AnnotatedLine) -> String {
    let number = line
        .number
        .map_or_else(String::new, |number| number.to_string());
    format!("{}{number}", mark(line.approximate))
}

/// What stands before a place that is known approximately.
fn mark(approximate: SampleWeight) -> &'static str {
    match approximate.is_zero() {
        true => "",
        false => "~",
    }
}

/// What is said of a line of a function that was compiled into another one.
pub fn inlined(found: &InlinedLine) -> String {
    let mut text = format!("  (inlined) {}", found.function);
    if let Some((file, line)) = &found.line {
        let file = file.rsplit('/').next().unwrap_or(file);
        text.push_str(&format!(" {file}:{line}"));
    }
    if let Some(source) = &found.source {
        text.push_str(": ");
        text.push_str(source.trim_start());
    }
    text
}
