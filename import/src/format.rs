//! The description of an import format.

use crate::{
    error::Result,
    request::{ImportRequest, Imported},
    start::SourceStart,
};

/// An import format. Its reader's file defines it as `READER`, and the list in `formats` names it.
#[derive(Debug)]
pub struct ImportFormat {
    /// The name on the command line and in the manifest.
    pub name: &'static str,
    /// A description with the programs that write the format, for help texts.
    pub about: &'static str,
    /// The name of a source of this format in messages.
    pub noun: &'static str,
    /// Returns true if a source with these first bytes has this format. Formats that precede it in the list are tried
    /// first.
    pub(crate) recognises: fn(&SourceStart<'_>) -> bool,
    /// Reads a source, and starts a session with its contents.
    pub(crate) read: fn(ImportRequest) -> Result<Imported>,
}
