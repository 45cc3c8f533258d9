//! The arguments of `varid metrics`.

use super::report::FormatArg;
use super::selection::InputArgs;
use clap::{Args, ValueEnum};
use varid_report::MetricsSection;

/// `varid metrics`.
#[derive(Debug, Args)]
pub struct MetricsArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Only this section. May be repeated [default: all].
    #[arg(long, value_name = "SECTION", value_enum)]
    pub section: Vec<SectionArg>,
    /// So many rows of each section. JSON has all rows.
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 20)]
    pub limit: usize,
    /// Java's class files are in these folders and archives, written as for java [default: those in the session, the recorded class path].
    #[arg(long, value_name = "PATH")]
    pub class_path: Vec<String>,
    /// For people, for programs, or for spreadsheets.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
}

impl MetricsArgs {
    /// Returns the sections in their order.
    pub fn sections(&self) -> Vec<MetricsSection> {
        let wanted: Vec<_> = self.section.iter().copied().map(Into::into).collect();
        let all = MetricsSection::ALL.into_iter();
        all.filter(|section| wanted.is_empty() || wanted.contains(section))
            .collect()
    }
}

/// A section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SectionArg {
    /// How often each opcode ran.
    Opcodes,
    /// How many methods each call site called, and how often.
    Sites,
    /// How often each method was called.
    Methods,
    /// How deep methods were called.
    Depth,
    /// The contexts with most bytecodes, or with most calls.
    Contexts,
}

impl From<SectionArg> for MetricsSection {
    fn from(section: SectionArg) -> Self {
        match section {
            SectionArg::Opcodes => Self::Opcodes,
            SectionArg::Sites => Self::Sites,
            SectionArg::Methods => Self::Methods,
            SectionArg::Depth => Self::Depth,
            SectionArg::Contexts => Self::Contexts,
        }
    }
}
