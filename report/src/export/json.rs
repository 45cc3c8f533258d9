//! Writes JSON lists without keeping them in memory.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

/// A list whose items are produced while it is written.
pub struct List<F>(pub F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Writes a value.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}
