//! The arguments of `varid export`.

use super::selection::{InputArgs, MeasureArgs, NameArgs, SampleArgs};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use varid_report::ExportFormat;

/// `varid export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Which viewer it is for [default: what the end of FILE's name says].
    #[arg(short, long, value_parser = format_parser())]
    pub format: Option<&'static ExportFormat>,
    /// Where it is written; -: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Samples of this event of the session, with or without its modifiers [default: the first; of html all].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    /// No source lines; faster.
    #[arg(long)]
    pub no_lines: bool,
    /// Of html: the sources that it shows are in this folder, or in this archive (jar, zip, apk). May be repeated.
    #[arg(long, value_name = "DIR|JAR|APK", visible_alias = "source")]
    pub source_path: Vec<PathBuf>,
    /// Of html: no sources and no instructions; faster.
    #[arg(long, conflicts_with = "source_path")]
    pub no_code: bool,
    #[command(flatten)]
    pub measures: MeasureArgs,
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
}

impl ExportArgs {
    /// Returns the format that `-f` names, or that the file's name ends with; the error is for the user.
    pub fn format(&self) -> Result<&'static ExportFormat, String> {
        let by_name = || ExportFormat::of_file(&self.output.to_string_lossy());
        self.format.or_else(by_name).ok_or_else(|| {
            let endings = ExportFormat::all().iter().flat_map(|format| format.endings);
            let endings: Vec<&str> = endings.copied().collect();
            format!(
                "which format? -f names it, or an -o FILE that ends in one of {}",
                endings.join(", ")
            )
        })
    }
}

/// Parses the name of a format.
fn format_parser() -> impl TypedValueParser<Value = &'static ExportFormat> {
    let named = |format: &&ExportFormat| {
        let value = PossibleValue::new(format.name).help(format.about);
        value.aliases(format.aliases.iter().copied())
    };
    let names = PossibleValuesParser::new(ExportFormat::all().iter().map(named));
    names.try_map(|name| ExportFormat::named(&name).ok_or("no format has this name"))
}
