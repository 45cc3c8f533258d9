//! Accepts or explains what users of perf type and varid writes differently.

use super::report::TreeArg;
use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Converts a command line as typed to varid's syntax: a value that follows `report --tree` belongs to it, although `--tree` alone
/// is complete.
pub fn read(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::new();
    let mut is_report = None;
    for word in typed {
        let is_option = word.as_encoded_bytes().starts_with(b"-");
        if is_report.is_none() && !line.is_empty() && !is_option {
            is_report = Some(word == "report");
        }
        let names_tree = word.to_str().filter(|_| is_report == Some(true));
        let names_tree = names_tree.is_some_and(|word| TreeArg::from_str(word, false).is_ok());
        match line.last_mut() {
            Some(last) if names_tree && *last == "--tree" => {
                last.push("=");
                last.push(word);
            }
            _ => line.push(word),
        }
    }
    line
}

/// Returns what to type instead of a verb of perf. None if the error already says it, or there is no equivalent.
pub fn tip(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    match (error.kind(), verb.as_str()) {
        (ErrorKind::InvalidSubcommand, "script") => Some(
            "there is no verb 'script': 'varid export -f jsonl' writes a line for each sample, and 'perf script -i SESSION/perf.data' reads a session, too",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn a_value_behind_a_blank_belongs_to_tree_in_report_only() {
        for (typed, meant) in [
            (
                "varid -q report s --tree bottom-up",
                "varid -q report s --tree=bottom-up",
            ),
            (
                "varid report --tree callee s",
                "varid report --tree=callee s",
            ),
            ("varid report --tree s", "varid report --tree s"),
            (
                "varid record report --tree caller",
                "varid record report --tree caller",
            ),
        ] {
            let read = read(typed.split(' ').map(OsString::from));
            let read: Vec<_> = read.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(read.join(" "), meant);
        }
    }

    #[test]
    fn a_verb_of_perf_has_a_tip() {
        let refused = |verb| {
            Cli::command()
                .try_get_matches_from(["varid", verb])
                .unwrap_err()
        };
        assert!(tip(&refused("script")).unwrap().contains("export"));
        assert_eq!(tip(&refused("repotr")), None);
        for verb in ["ls", "list"] {
            let matches = Cli::command()
                .try_get_matches_from(["varid", verb])
                .unwrap();
            assert_eq!(matches.subcommand_name(), Some("sessions"));
        }
    }
}
