//! The rows of an annotation's text.

use super::annotation::{
    AnnotatedFile, AnnotatedInstruction, AnnotatedLine, Annotation, CompiledInstruction, DEX,
    InlinedLine, JVM,
};
use crate::weights::Weight;

/// A row.
pub enum Row<'a> {
    /// The start of a file.
    File(&'a AnnotatedFile),
    /// Omitted lines.
    Gap,
    Line(&'a AnnotatedLine),
    Inlined(&'a InlinedLine),
    Instruction(&'a AnnotatedInstruction),
    Compiled(&'a CompiledInstruction),
}

/// Returns all rows. A line is followed by the functions inlined into it, and by its instructions. Instructions of compiled code follow their
/// bytecode.
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
            // Samples without a line are those of the instructions without a line, as far as these are known.
            if line.number.is_some() || line.has_samples_of_no_instruction() {
                rows.push(Row::Line(line));
            }
            rows.extend(line.inlined.iter().map(Row::Inlined));
            rows.extend(line.compiled.iter().map(Row::Compiled));
            let mut next = None;
            for found in &line.instructions {
                // Instructions without a line may be omitted.
                let hidden = next.is_some_and(|next| found.address != next);
                if line.number.is_none() && hidden {
                    rows.push(Row::Gap);
                }
                next = Some(found.address.saturating_add(found.len.into()));
                rows.push(Row::Instruction(found));
                rows.extend(found.compiled.iter().map(Row::Compiled));
            }
        }
    }
    rows
}

/// The heat of a row, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    Cold,
    /// At least 5 % of the method's own samples.
    Warm,
    /// At least 20 %.
    Hot,
}

impl Heat {
    /// Returns the heat of an own share.
    pub fn of(annotation: &Annotation, own: Weight) -> Self {
        match annotation.of_method(own) {
            20.0.. => Self::Hot,
            5.0.. => Self::Warm,
            _ => Self::Cold,
        }
    }
}

/// The percentages of a share: own share of the method's own samples, own share of all samples, total share of all samples.
pub struct Percentages {
    pub of_method: String,
    pub own: String,
    pub total: String,
}

impl Percentages {
    pub fn of(annotation: &Annotation, own: Weight, total: Weight) -> Self {
        let shown = |weight: Weight, percent: f64| match weight.is_zero() {
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

/// Formats the position of an instruction as disassemblers of its kind do.
pub fn place(annotation: &Annotation, found: &AnnotatedInstruction) -> String {
    let mark = mark(found.approximate);
    match annotation.method.code {
        Some(DEX) => format!("{mark}{:04x}:", found.place),
        Some(JVM) => format!("{mark}{}:", found.place),
        _ => format!("{mark}{:x}:", found.place),
    }
}

/// Formats the position of an instruction of compiled code: the letter of the code, and the distance from its start.
pub fn compiled_place(found: &CompiledInstruction) -> String {
    format!("{}+{:x}:", found.code, found.offset)
}

/// Formats the number of a line.
pub fn number(line: &AnnotatedLine) -> String {
    let number = line
        .number
        .map_or_else(String::new, |number| number.to_string());
    format!("{}{number}", mark(line.approximate))
}

/// Returns the prefix of an approximate position.
fn mark(approximate: Weight) -> &'static str {
    match approximate.is_zero() {
        true => "",
        false => "~",
    }
}

/// Formats a line of an inlined function.
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
