//! The folded stacks of flame graph tools: a line for each stack, with its frames from the thread to the leaf.

use std::io::{self, Write};

use super::{
    Content, ExportFormat, FormatMeasures,
    walk::{Row, UNKNOWN, Walk, plain},
};

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "folded",
    aliases: &[],
    about: "Folded stacks, a line for each: flamegraph.pl, inferno, speedscope",
    endings: &[".folded", ".collapsed"],
    needs: &[],
    measures: FormatMeasures::One,
    content: Content::Text,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes `thread;outermost;…;leaf VALUE` lines. A `;` in a name becomes `:`.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let frames = &walk.profile.frames;
    let names: Vec<String> = (frames.symbols().iter())
        .map(|symbol| folded(&symbol.name))
        .collect();
    let (mut line, mut stack) = (String::new(), Vec::new());
    for Row {
        task,
        stack: leaf,
        weight,
    } in walk.rows()
    {
        line.clear();
        line.push_str(&folded(&task.name));
        stack.clear();
        stack.extend(walk.frames(leaf));
        for frame in stack.iter().rev() {
            let symbol = walk.frame(*frame).map(|frame| frame.symbol);
            let name = symbol.and_then(|symbol| names.get(symbol.index()));
            line.push(';');
            line.push_str(name.map_or(UNKNOWN, String::as_str));
        }
        if stack.is_empty() {
            line.push(';');
            line.push_str(UNKNOWN);
        }
        writeln!(out, "{line} {}", walk.value(weight))?;
    }
    Ok(())
}

fn folded(name: &str) -> String {
    plain(name).replace(';', ":")
}
