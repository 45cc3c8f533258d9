//! `varid import`: makes a session from another profiler's recording.

use crate::cli::ImportArgs;
use crate::{output, sessions};
use std::process::ExitCode;
use varid_import::{ImportRequest, ImportSummary, Input, import};
use varid_model::Pid;
use varid_session::request::TargetSpec;

/// Imports the recording. The session becomes the last one.
pub fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let input = Input::open(&args.file)?;
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    let name = match name.to_string_lossy() {
        name if name == "-" => "import".to_owned(),
        name => name.into_owned(),
    };
    let target = TargetSpec::Command(Pid::default(), name);
    let (folder, is_new) = match args.output {
        Some(folder) => (folder, false),
        None => (sessions::create(&target)?, true),
    };
    let request = ImportRequest {
        input,
        output: folder.clone(),
        without_names: args.without_names,
        first_is_frame: args.first_is_frame,
    };
    let summary = match import(request, args.format) {
        Ok(summary) => summary,
        Err(error) => {
            if is_new {
                // This removes only an empty folder.
                let _ = std::fs::remove_dir(&folder);
            }
            return Err(error.into());
        }
    };
    sessions::list_elsewhere(&folder, &target)?;
    sessions::set_last(&folder)?;
    for line in lines(&summary) {
        output::notice(&format!("varid: {line}"));
    }
    output::text(&format!("{}\n", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Describes the result of the import, one line per fact.
fn lines(summary: &ImportSummary) -> Vec<String> {
    let samples = summary.samples;
    let writer = summary.writer.as_deref();
    let writer = writer.map_or_else(String::new, |writer| format!(" of {writer}"));
    let mut lines = vec![format!(
        "{samples} samples imported from {}{writer}, {} lost in the recording",
        summary.format, summary.lost
    )];
    if summary.unwound > 0 {
        lines.push(format!("{} stacks unwound from copies", summary.unwound));
    }
    if summary.named_images > 0 {
        lines.push(format!(
            "files with names that the recording carries: {}",
            summary.named_images
        ));
    }
    for (reason, count) in &summary.excluded {
        lines.push(format!("{count} samples not imported: {reason}"));
    }
    lines.extend(summary.notes.iter().cloned());
    lines
}
