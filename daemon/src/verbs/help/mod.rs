//! The help of the command line, and the guides.
//!
//! | question | file |
//! |---|---|
//! | what does `varid help` print | this one, `guides`, `plain` |
//! | what makes a shell complete a command line | `completions` |
//! | which values does it offer | `candidates` |

pub mod candidates;
mod completions;
mod guides;
mod plain;

use super::pager;
use crate::cli::{Cli, HelpArgs, ShellArg};
use crate::{output, output_file};
use anyhow::Context;
use clap::{Command, CommandFactory};
use guides::GUIDES;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use varid_model::nearest;
use varid_recording::manifest::rfc3339;

/// Maximum width of a guide's lines on a terminal.
const LONGEST: usize = 100;
/// Their width if the output is not a terminal.
const USUAL: usize = 80;

/// Prints the help of a verb, a guide, or the list of both.
pub fn run(args: &HelpArgs) -> anyhow::Result<ExitCode> {
    let columns = pager::columns();
    let text = match args.topic.as_slice() {
        [] => format!("{}\n{}", Cli::command().render_long_help(), list()),
        topic => about(topic, columns.unwrap_or(USUAL).min(LONGEST))?,
    };
    pager::print(columns, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the help of a verb, a guide, or both, by name or by a unique prefix of a name.
fn about(topic: &[String], width: usize) -> anyhow::Result<String> {
    if let Some(text) = named(topic, width) {
        return Ok(text);
    }
    let typed = topic.join("-");
    let topics = topics();
    let names: Vec<_> = topics.iter().map(String::as_str).collect();
    let begun = names.iter().filter(|name| name.starts_with(&typed));
    let begun: Vec<_> = begun.copied().collect();
    let shown = topic.join(" ");
    match begun.as_slice() {
        [name] => named(&[(*name).to_owned()], width),
        [] => None,
        several => anyhow::bail!("'{shown}' may be {}", several.join(", ")),
    }
    .with_context(|| {
        let help = match nearest(&typed, &names) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => "'varid help' lists both".to_owned(),
        };
        format!("there is neither a verb nor a guide '{shown}': {help}")
    })
}

/// Returns the names of verbs and guides.
fn topics() -> BTreeSet<String> {
    let command = Cli::command();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let guides = GUIDES.iter().map(|(name, _)| *name);
    let names = verbs.map(Command::get_name).chain(guides);
    names.map(str::to_owned).collect()
}

/// Returns the help of the verb with this name, followed by the guide with this name.
fn named(topic: &[String], width: usize) -> Option<String> {
    let help = command(topic).map(|mut command| command.render_long_help().to_string());
    let guide = guide(topic).map(|text| plain::rendered(text, width));
    match (help, guide) {
        (Some(help), Some(guide)) => Some(format!("{help}\n{guide}")),
        (help, guide) => help.or(guide),
    }
}

/// Returns the command of a verb, with its full name.
fn command(topic: &[String]) -> Option<Command> {
    let mut command = Cli::command();
    command.build();
    let mut found = &command;
    for word in topic {
        let mut verbs = found.get_subcommands();
        found = verbs.find(|verb| verb.get_name() == word && !verb.is_hide_set())?;
    }
    Some(found.clone())
}

fn guide(topic: &[String]) -> Option<&'static str> {
    let name = topic.join("-");
    let name = name.strip_prefix("guide-").unwrap_or(&name);
    let mut guides = GUIDES.iter();
    let (_, text) = guides.find(|(known, _)| *known == name)?;
    Some(text)
}

fn list() -> String {
    let widest = GUIDES.iter().map(|(name, _)| name.len()).max();
    let width = widest.unwrap_or_default();
    let line = |(name, text): &(&str, &str)| format!("  {name:width$}  {}\n", plain::title(text));
    let lines: String = GUIDES.iter().map(line).collect();
    format!("Guides, by 'varid help GUIDE':\n{lines}")
}

/// Prints a shell's script.
pub fn completions(shell: ShellArg) -> anyhow::Result<ExitCode> {
    output::bytes(completions::script(shell).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and one for each verb to a folder.
pub fn man_pages(folder: &Path) -> anyhow::Result<ExitCode> {
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot create {shown}"))?;
    let mut command = Cli::command();
    command.build();
    page(&command, &date()?, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the present day, or the day that reproducible builds define.
fn date() -> anyhow::Result<String> {
    let time = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => {
            let seconds = seconds.parse().context("SOURCE_DATE_EPOCH")?;
            let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            time.context("SOURCE_DATE_EPOCH is too large")?
        }
        Err(_) => SystemTime::now(),
    };
    let date = rfc3339(time);
    let day = date.split('T').next();
    Ok(day.unwrap_or_default().to_owned())
}

/// Writes the page of a command and those of its verbs.
fn page(command: &Command, date: &str, folder: &Path) -> anyhow::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        page(verb, date, folder)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = clap_mangen::Man::new(command.clone())
        .date(date)
        .source(concat!("varid ", env!("CARGO_PKG_VERSION")))
        .manual("varid");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = without_double_breaks(&String::from_utf8_lossy(&text));
    let file = folder.join(format!("{name}.1"));
    output_file::write(&file, &[], |out| out.write_all(text.as_bytes()))?;
    Ok(())
}

/// Returns a page without line breaks around an empty line, which already breaks the line.
fn without_double_breaks(page: &str) -> String {
    page.replace("\n.br\n\n.br\n", "\n.sp\n")
}
