//! How does a view look to people?

mod foot;
mod head;
pub mod layout;

use std::io::{self, Write};

use crate::{columns::OutputFormat, scope::Scope, views};

/// Writes head, layers, the view's tables, and foot.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    head::write(scope, out)?;
    layout::write(&views::layers(scope, OutputFormat::Text), out)?;
    for sheet in views::sheets(scope, OutputFormat::Text) {
        layout::write(&sheet, out)?;
    }
    foot::write(scope, out)
}

/// Writes head and foot.
pub fn facts(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    head::write(scope, out)?;
    foot::write(scope, out)
}
