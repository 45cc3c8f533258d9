//! A format that is imported.

use crate::{
    error::Result,
    request::{ImportRequest, Imported},
    start::SourceStart,
};

/// A format that is imported. A format is its reader's file, which has it as `READER`, and a line of the list in `formats`.
#[derive(Debug)]
pub struct ImportFormat {
    /// Its name on the command line and in the manifest.
    pub name: &'static str,
    /// What it is and which program writes it, for help texts.
    pub about: &'static str,
    /// What a source of this format is called in messages.
    pub noun: &'static str,
    /// Returns true if a source that begins so has this format. It is asked only of what the formats before it in the list do not
    /// recognise.
    pub(crate) recognises: fn(&SourceStart<'_>) -> bool,
    /// Begins a session with all that is read from a source.
    pub(crate) read: fn(ImportRequest) -> Result<Imported>,
}
