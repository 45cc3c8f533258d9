//! `varid metrics`: dynamic metrics of exact calling contexts.

use super::annotate::class_path;
use crate::cli::MetricsArgs;
use crate::output;
use anyhow::bail;
use std::process::ExitCode;
use varid_recording::SessionReader;
use varid_report::{
    Metrics, Options, OutputFormat, Profile, write_metrics_csv, write_metrics_text,
};

/// Prints the metrics of a session.
pub fn run(args: &MetricsArgs) -> anyhow::Result<ExitCode> {
    let session = SessionReader::open(&args.input.folder()?)?;
    let Some(contexts) = session.contexts()? else {
        bail!("the session has no exact calling contexts: 'varid exact' counts them");
    };
    let profile = Profile::from_session(&session, &Options::default())?;
    let metrics = Metrics::new(&contexts, &profile, &class_path(&args.class_path));
    let (sections, limit) = (args.sections(), args.limit);
    let mut text = Vec::new();
    match args.format.into() {
        OutputFormat::Text => write_metrics_text(&metrics, &sections, limit, &mut text)?,
        OutputFormat::Csv => write_metrics_csv(&metrics, &sections, limit, &mut text)?,
        OutputFormat::Json => {
            output::json(&metrics.only(&sections))?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    output::bytes(&text)?;
    Ok(ExitCode::SUCCESS)
}
