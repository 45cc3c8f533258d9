//! The arguments of `varid compress`.

use super::selection::InputArgs;
use clap::Args;
use varid_recording::RecordsForm;

/// `varid compress`.
#[derive(Debug, Args)]
pub struct CompressArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Give perf.data another form, which only varid reads, of half the compressed size or less.
    #[arg(long)]
    pub compact: bool,
    /// Make the records plain again: perf.data as it was.
    #[arg(long, conflicts_with = "compact")]
    pub undo: bool,
}

impl CompressArgs {
    /// The form that the records get.
    pub const fn form(&self) -> RecordsForm {
        match (self.undo, self.compact) {
            (true, _) => RecordsForm::Plain,
            (false, true) => RecordsForm::Compact,
            (false, false) => RecordsForm::Compressed,
        }
    }
}
