//! Annotations as text.

use std::io::{self, Write};

use varid_recording::terminal::one_line;

use super::{
    annotation::{
        AnnotatedInstruction, Annotation, AnnotationText, Candidates, CompiledInstruction,
    },
    text_rows::{Heat, Percentages, Row, compiled_place, inlined, number, place, rows},
};
use crate::weights::Weight;

/// The minimum width in columns for showing instructions beside the source.
const SIDE_BY_SIDE: usize = 160;

/// Writes the head, the lines with their instructions, and the notes on missing data.
///
/// # Errors
///
/// Writing to `out` fails.
pub fn write_annotation_text(
    annotation: &Annotation,
    text: AnnotationText,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(annotation, out)?;
    let rows = rows(annotation);
    let has_source = annotation.files.iter().any(|file| file.found.is_some());
    let widest = rows.iter().map(|row| match row {
        Row::Line(line) => number(line).len(),
        Row::Instruction(found) => place(annotation, found).len(),
        Row::Compiled(found) => compiled_place(found).len(),
        Row::File(_) | Row::Gap | Row::Inlined(_) => 0,
    });
    let layout = Layout {
        annotation,
        colour: text.colour,
        place: widest.max().unwrap_or(0).max(5),
        columns: text.width,
        indent: indent(&rows),
    };
    let has_both = has_source && annotation.method.code.is_some();
    match text
        .width
        .filter(|width| has_both && *width >= SIDE_BY_SIDE)
    {
        Some(width) => layout.write_side_by_side(&rows, width, out)?,
        None => layout.write_stacked(&rows, out)?,
    }
    foot(annotation, out)
}

fn head(annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    let method = &annotation.method;
    let recorded = method.recorded.as_ref();
    let recorded = recorded.map_or_else(String::new, |name| format!(", recorded as {name}"));
    let title = format!(
        "{} in {} ({}){recorded}",
        method.name,
        method.image,
        method.layer.name()
    );
    writeln!(out, "{}", one_line(&title))?;
    let selected = match annotation.selected_by.as_str() {
        "" => String::new(),
        options => format!(", by {options}"),
    };
    let percent = |weight| format!("{:.2} %", annotation.of_all(weight));
    let count = |weight| annotation.measures.count(weight);
    let shares = format!(
        "{} of {} {} are in it, {}; {} with what it called, {}{selected}",
        count(method.share.own),
        count(annotation.all),
        annotation.counted(),
        percent(method.share.own),
        count(method.share.total),
        percent(method.share.total),
    );
    writeln!(out, "{}", one_line(&shares))?;
    if let (Some(kind), Some(file)) = (method.code, &annotation.code_file) {
        let kind = match method.has_bytecode() {
            true => "bytecode",
            false => kind,
        };
        writeln!(out, "{kind:<10}{}", one_line(file))?;
    }
    for code in &annotation.compiled {
        let own = count(code.own);
        let line = format!("{}: {}, {own} samples, {}", code.label, code.name, code.set);
        writeln!(out, "{:<10}{}", "compiled", one_line(&line))?;
    }
    for file in &annotation.files {
        let Some(name) = &file.name else { continue };
        let place = file.found.as_deref().unwrap_or(name);
        writeln!(out, "{:<10}{}", "source", one_line(place))?;
    }
    writeln!(out)
}

fn foot(annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    let approximate = annotation.measures.count(annotation.method.approximate);
    let mut notes = Vec::new();
    if approximate > 0 {
        notes.push(format!(
            "{approximate} samples are at places with ~: compiled code was between calls and checks that are at known instructions"
        ));
    }
    notes.extend(annotation.notes.iter().cloned());
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "note      {}", one_line(&note))?;
    }
    Ok(())
}

/// The column layout of the text.
struct Layout<'a> {
    annotation: &'a Annotation,
    colour: bool,
    /// Width of line numbers and instruction positions.
    place: usize,
    /// Total width, if it is limited.
    columns: Option<usize>,
    /// Number of leading spaces that are removed from source lines.
    indent: usize,
}

/// Returns the number of leading spaces to remove. A method's first line, which has no instructions, is indented one
/// step less than the others.
fn indent(rows: &[Row]) -> usize {
    const STEP: usize = 4;
    let sources = rows.iter().filter_map(|row| match row {
        Row::Line(line) if line.is_of_method => line.source.as_deref(),
        _ => None,
    });
    let texts = sources.filter(|source| !source.is_empty());
    let blanks = texts.map(|source| source.chars().take_while(|one| *one == ' ').count());
    blanks.min().unwrap_or(0).saturating_sub(STEP)
}

/// Removes at most this many leading spaces from a source line.
fn unindented(source: &str, indent: usize) -> String {
    let blanks = source.chars().take_while(|one| *one == ' ').count();
    source.chars().skip(blanks.min(indent)).collect()
}

/// The widths of source and instructions side by side.
#[derive(Debug, Clone, Copy)]
struct PairWidths {
    left: usize,
    right: usize,
}

impl Layout<'_> {
    fn write_stacked(&self, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        let title = match self
            .annotation
            .files
            .iter()
            .any(|file| file.found.is_some())
        {
            true => "source",
            false => "",
        };
        self.write_line(&self.title(title), Heat::Cold, None, out)?;
        for row in rows {
            let (text, heat) = self.left(row);
            self.write_line(&text, heat, self.columns, out)?;
        }
        Ok(())
    }

    fn title(&self, title: &str) -> String {
        let place = self.place;
        let text = format!("  method %  self %  total %  {:>place$}  {title}", "line");
        text.trim_end().to_owned()
    }

    /// Formats a row if source and instructions share one column.
    fn left(&self, row: &Row) -> (String, Heat) {
        let (own, total, place, text) = match row {
            Row::File(file) => {
                let name = file.name.as_deref().unwrap_or("(without a line)");
                return (name.to_owned(), Heat::Cold);
            }
            Row::Gap => return ("  ...".to_owned(), Heat::Cold),
            Row::Line(line) => {
                let source = match line.number {
                    Some(_) => unindented(line.source.as_deref().unwrap_or_default(), self.indent),
                    None => "(no line)".to_owned(),
                };
                let share = line.share;
                (share.own, share.total, number(line), source)
            }
            Row::Inlined(found) => (found.own, Weight::default(), String::new(), inlined(found)),
            Row::Instruction(found) => {
                let (own, total, place, text) = self.instruction(found);
                (own, total, place, format!("    {text}"))
            }
            Row::Compiled(found) => {
                let (own, total, place, text) = compiled(found);
                (own, total, place, format!("    {text}"))
            }
        };
        let heat = match row {
            // The line of the row has at least the same samples.
            Row::Instruction(_) | Row::Inlined(_) | Row::Compiled(_) => {
                Heat::of(self.annotation, own).min(Heat::Warm)
            }
            _ => Heat::of(self.annotation, own),
        };
        let mark = match (row, heat) {
            (Row::Line(_), Heat::Hot) => ">",
            _ => " ",
        };
        let percent = Percentages::of(self.annotation, own, total);
        let width = self.place;
        let text = format!(
            "{mark} {:>8}  {:>6}  {:>7}  {place:>width$}  {text}",
            percent.of_method, percent.own, percent.total
        );
        (text, heat)
    }

    /// Writes each line beside its instructions.
    fn write_side_by_side(
        &self,
        rows: &[Row],
        columns: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let left_width = columns.saturating_sub(3) / 2;
        let widths = PairWidths {
            left: left_width,
            right: columns.saturating_sub(3).saturating_sub(left_width),
        };
        let title = self.title("source");
        let place = self.place;
        let kind = match self.annotation.method.has_bytecode() {
            true => "bytecode",
            false => "instruction",
        };
        writeln!(
            out,
            "{title:left_width$} | method %  total %  {:>place$}  {kind}",
            "pc"
        )?;
        let mut left: Vec<&Row> = Vec::new();
        let mut right: Vec<&Row> = Vec::new();
        for row in rows {
            match row {
                Row::Instruction(_) | Row::Compiled(_) => right.push(row),
                // Functions inlined into a line are listed below it.
                Row::Inlined(_) => left.push(row),
                Row::File(_) | Row::Gap | Row::Line(_) => {
                    self.write_pairs(&left, &right, widths, out)?;
                    left.clear();
                    right.clear();
                    left.push(row);
                }
            }
        }
        self.write_pairs(&left, &right, widths, out)
    }

    fn write_pairs(
        &self,
        left: &[&Row],
        right: &[&Row],
        widths: PairWidths,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let left_width = widths.left;
        for index in 0..left.len().max(right.len()) {
            let (text, heat) = left
                .get(index)
                .map_or((String::new(), Heat::Cold), |row| self.left(row));
            let padded = format!("{:left_width$}", cut(&text, left_width));
            let mut line = self.painted(&padded, heat);
            line.push_str(" |");
            if let Some((text, heat)) = right.get(index).and_then(|row| self.right(row)) {
                line.push(' ');
                line.push_str(&self.painted(&cut(&text, widths.right), heat));
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Returns an instruction's own and total weight, its place and its text.
    fn instruction(&self, found: &AnnotatedInstruction) -> (Weight, Weight, String, String) {
        let (share, place) = (found.share, place(self.annotation, found));
        (share.own, share.total, place, found.text.clone())
    }

    /// Formats an instruction beside the source. None if the row is another one.
    fn right(&self, row: &Row) -> Option<(String, Heat)> {
        let (own, total, place, text) = match row {
            Row::Instruction(found) => self.instruction(found),
            Row::Compiled(found) => compiled(found),
            Row::File(_) | Row::Gap | Row::Line(_) | Row::Inlined(_) => return None,
        };
        let percent = Percentages::of(self.annotation, own, total);
        let width = self.place;
        let text = format!(
            "{:>8}  {:>7}  {place:>width$}  {text}",
            percent.of_method, percent.total
        );
        Some((text, Heat::of(self.annotation, own)))
    }

    fn write_line(
        &self,
        text: &str,
        heat: Heat,
        columns: Option<usize>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let text = text.trim_end();
        let text = columns.map_or_else(|| text.to_owned(), |columns| cut(text, columns));
        writeln!(out, "{}", self.painted(&text, heat))
    }

    /// Colours a text by its heat.
    fn painted(&self, text: &str, heat: Heat) -> String {
        let text = one_line(text);
        let colour = match heat {
            _ if !self.colour => return text,
            Heat::Cold => return text,
            Heat::Warm => "\x1b[31m",
            Heat::Hot => "\x1b[1;31m",
        };
        format!("{colour}{text}\x1b[0m")
    }
}

/// The same of an instruction of compiled code as of [`Layout::instruction`], indented below its bytecode.
fn compiled(found: &CompiledInstruction) -> (Weight, Weight, String, String) {
    let text = format!("    {}", found.text);
    (found.own, Weight::default(), compiled_place(found), text)
}

/// Truncates a text to a number of columns.
fn cut(text: &str, columns: usize) -> String {
    const DOTS: &str = "..";
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(DOTS.len());
    let front: String = text.chars().take(kept).collect();
    format!("{front}{DOTS}")
}

/// Writes the candidates for an ambiguous name, and how to choose one.
///
/// # Errors
///
/// Writing to `out` fails.
pub fn write_candidates(candidates: &Candidates, out: &mut dyn Write) -> io::Result<()> {
    let count = candidates.methods.len().saturating_add(candidates.more);
    let intro = format!(
        "{count} functions with {} are meant by '{}':",
        candidates.counted, candidates.name
    );
    writeln!(out, "{}\n", one_line(&intro))?;
    writeln!(
        out,
        " self %  total %  {:>7}  layer      image                 address  function",
        one_line(&candidates.counted)
    )?;
    for found in &candidates.methods {
        let method = &found.method;
        let address = method.addresses.as_ref().map(|range| range.start);
        let address = match (address, method.inlined) {
            (Some(start), _) => format!("{start:#x}"),
            (None, true) => "inlined".to_owned(),
            (None, false) => "-".to_owned(),
        };
        let line = format!(
            "{:>7.2}  {:>7.2}  {:>7}  {:9}  {:20}  {address:>8}  {}",
            found.own_percent,
            found.total_percent,
            method.share.own.get(0),
            method.layer.name(),
            method.image,
            method.name
        );
        writeln!(out, "{}", one_line(&line))?;
    }
    if candidates.more > 0 {
        writeln!(out, "({} more)", candidates.more)?;
    }
    writeln!(
        out,
        "\nChoose by the whole name, by the address, by --layer, --symbol REGEX or, of several images, by --image NAME"
    )
}
