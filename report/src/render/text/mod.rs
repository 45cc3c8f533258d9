//! Views as text.

mod column_width;
mod emphasis;
mod foot;
mod head;
pub mod layout;

use std::io::{self, Write};

use varid_recording::terminal::one_line;

use crate::{columns::OutputFormat, scope::Scope, views};

/// Writes the head, the layers, the view's tables, and the foot.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    // If filters exclude everything, only the event's notes are relevant.
    let is_empty = scope.samples.samples() == 0 && scope.all.is_zero();
    if is_empty && !scope.event.notes.is_empty() {
        for note in &scope.event.notes {
            writeln!(out, "{}", one_line(note))?;
        }
        return Ok(());
    }
    head::sentence(scope, out)?;
    head::write(scope, out)?;
    let colour = scope.view.text.colour;
    layout::write(&views::layers(scope, OutputFormat::Text), colour, out)?;
    for sheet in views::sheets(scope, OutputFormat::Text) {
        layout::write(&sheet, colour, out)?;
    }
    foot::write(scope, out)
}

/// Writes the head and the foot without the sentence.
pub fn facts(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    head::write(scope, out)?;
    foot::write(scope, out)
}
