//! The arguments for another varid, on a device or as the recorder of this one: those that the user gave.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};

/// Arguments that apply to the host: the place of the session.
const HOSTS: [&str; 1] = ["output"];

/// Returns the options of a verb as given, without those in `but`, and the positional arguments.
pub fn options(command: &Command, matches: &ArgMatches, but: &[&str]) -> Vec<String> {
    let mut line = Vec::new();
    if let Some((verb, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(verb)
    {
        arguments(command, matches, but, &mut line);
    }
    line
}

/// Returns the verb and its arguments as given, without global ones. Every device expects UTF-8 arguments; others are converted
/// with losses.
pub fn of(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut line = Vec::new();
    if let Some((verb, matches)) = matches.subcommand() {
        line.push(verb.to_owned());
        if let Some(command) = command.find_subcommand(verb) {
            arguments(command, matches, &HOSTS, &mut line);
        }
    }
    line
}

fn arguments(command: &Command, matches: &ArgMatches, but: &[&str], line: &mut Vec<String>) {
    let mut behind = Vec::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let given = matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        if !given || arg.is_global_set() || but.contains(&id) {
            continue;
        }
        let values: Vec<String> = matches
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        match (arg.get_long(), arg.get_action()) {
            (Some(long), ArgAction::SetTrue) => line.push(format!("--{long}")),
            (None, ArgAction::SetTrue) => {
                line.extend(arg.get_short().map(|short| format!("-{short}")));
            }
            (Some(long), _) => {
                line.extend(values.iter().map(|value| format!("--{long}={value}")));
            }
            (None, _) if arg.is_last_set() || arg.is_trailing_var_arg_set() => {
                behind.push("--".to_owned());
                behind.extend(values);
            }
            (None, _) => behind.extend(values),
        }
    }
    line.extend(behind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn passed(line: &[&str]) -> Vec<String> {
        let matches = Cli::command().try_get_matches_from(line).unwrap();
        of(&Cli::command(), &matches)
    }

    #[test]
    fn what_was_given_is_passed_and_nothing_else() {
        assert_eq!(
            passed(&[
                "varid",
                "--adb",
                "-v",
                "start",
                "--app",
                "org.example",
                "-F99",
                "--keep-raw"
            ]),
            ["start", "--app=org.example", "--freq=99", "--keep-raw"]
        );
        assert_eq!(
            passed(&["varid", "--adb", "record", "-ag", "sleep", "-x", "1"]),
            ["record", "--all", "-g", "--", "sleep", "-x", "1"]
        );
        assert_eq!(
            passed(&[
                "varid",
                "record",
                "--adb=S",
                "-o",
                "x",
                "--duration",
                "5",
                "--",
                "sh",
                "-c",
                "a b"
            ]),
            ["record", "--duration=5", "--", "sh", "-c", "a b"]
        );
        assert_eq!(passed(&["varid", "--adb", "stop", "x y"]), ["stop", "x y"]);
        assert_eq!(
            passed(&["varid", "doctor", "--json", "--adb"]),
            ["doctor", "--json"]
        );
    }
}
