//! `varid completions`: scripts with which a shell completes the command line, including values that only varid knows.
//!
//! clap_complete generates the scripts for verbs and options. The additions call `varid complete` for the values.

use crate::cli::{Cli, ShellArg, Values};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

/// An argument with values that a shell offers.
struct Offer {
    verb: String,
    /// The option's forms, such as `-i` and `--input`. Empty for a positional argument.
    options: Vec<String>,
    help: String,
    values: Values,
}

/// Returns the whole script for a shell.
pub fn script(shell: ShellArg) -> String {
    let mut generated = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(
        clap_complete::Shell::from(shell),
        &mut command,
        "varid",
        &mut generated,
    );
    let generated = String::from_utf8_lossy(&generated).into_owned();
    let offers = offers(&command);
    match shell {
        ShellArg::Bash => bash(generated, &offers),
        ShellArg::Zsh => zsh(&generated, &offers),
        ShellArg::Fish => fish(generated, &offers),
    }
}

fn offers(command: &Command) -> Vec<Offer> {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let of_verb = |verb: &Command| {
        let name = verb.get_name().to_owned();
        let offer = move |argument: &Arg| {
            let short = argument.get_short().map(|short| format!("-{short}"));
            let long = argument.get_long().map(|long| format!("--{long}"));
            Some(Offer {
                values: Values::of(&name, argument)?,
                help: argument
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                options: short.into_iter().chain(long).collect(),
                verb: name.clone(),
            })
        };
        verb.get_arguments().filter_map(offer).collect::<Vec<_>>()
    };
    verbs.flat_map(of_verb).collect()
}

/// Names are compared and never expanded: `compgen -W` would execute expansions in them.
fn bash(mut script: String, offers: &[Offer]) -> String {
    let mut by_option = String::new();
    let mut by_place = String::new();
    for offer in offers {
        let (verb, values) = (&offer.verb, offer.values.name());
        let options = offer.options.iter();
        let options: Vec<_> = options.map(|option| format!("'{verb} {option}'")).collect();
        let _ = match options.is_empty() {
            true => writeln!(by_place, "        {verb}) values={values} ;;"),
            false => writeln!(
                by_option,
                "        {}) values={values} ;;",
                options.join("|")
            ),
        };
    }
    let _ = write!(
        script,
        r#"
_varid_values() {{
    local line=${{COMP_LINE:0:COMP_POINT}} words=() cur= prev= verb= values= word found=()
    read -ra words <<<"$line"
    if [[ $line != *[[:space:]] && ${{#words[@]}} -gt 0 ]]; then
        cur=${{words[${{#words[@]}} - 1]}}
        unset "words[${{#words[@]}} - 1]"
    fi
    [[ ${{#words[@]}} -eq 0 ]] || prev=${{words[${{#words[@]}} - 1]}}
    for word in "${{words[@]:1}}"; do
        [[ $word == -* ]] || {{ verb=$word; break; }}
    done
    if [[ $cur == --*=* ]]; then
        prev=${{cur%%=*}}
        cur=${{cur#*=}}
    fi
    case "$verb $prev" in
{by_option}    esac
    [[ -n $values || $cur == -* || $prev == -* ]] || case $verb in
{by_place}    esac
    if [[ -z $values ]]; then
        _varid "$@"
        return
    fi
    COMPREPLY=()
    mapfile -t found < <("$1" complete "$values" 2>/dev/null)
    for word in "${{found[@]}}"; do
        [[ $word == "$cur"* ]] || continue
        # What is before a colon stays as it is typed.
        [[ $cur != *:* || $COMP_WORDBREAKS != *:* ]] || word=${{word#"${{cur%"${{cur##*:}}"}}"}}
        printf -v word %q "$word"
        COMPREPLY+=("$word")
    done
}}
complete -F _varid_values -o bashdefault -o default varid
"#
    );
    script
}

/// The generated script has an action for each value, after the last colon of its line.
fn zsh(script: &str, offers: &[Offer]) -> String {
    const END: &str = "' \\";
    let mut text = String::new();
    let mut verb = "";
    for line in script.lines() {
        if line == "if [ \"$funcstack[1]\" = \"_varid\" ]; then" {
            text.push_str(&zsh_functions());
        }
        if let Some(name) = line
            .strip_prefix('(')
            .and_then(|line| line.strip_suffix(')'))
        {
            verb = name;
        }
        let offer = offers.iter().find(|offer| is_spec_of(line, verb, offer));
        let spec = line
            .strip_suffix(END)
            .and_then(|spec| spec.rsplit_once(':'));
        match (offer, spec) {
            (Some(offer), Some((spec, _))) => {
                let _ = writeln!(text, "{spec}:_varid_{}{END}", function(offer.values));
            }
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// Returns true if a line specifies an offer's argument: `'*--event=[…]:EVENT:_default'`, `'::session -- …:_files'`.
fn is_spec_of(line: &str, verb: &str, offer: &Offer) -> bool {
    let Some(spec) = line.strip_prefix('\'').filter(|_| verb == offer.verb) else {
        return false;
    };
    let spec = spec.trim_start_matches('*');
    let spec = match spec.strip_prefix('(') {
        Some(excluded) => excluded.split_once(')').map_or(spec, |(_, spec)| spec),
        None => spec,
    };
    let spec = spec.trim_start_matches('*');
    if offer.options.is_empty() {
        let places = ["session", "sessions", "topic"];
        let name = spec.trim_start_matches(':').split(" -- ").next();
        return spec.starts_with(':') && name.is_some_and(|name| places.contains(&name));
    }
    let mut options = offer.options.iter();
    options.any(|option| {
        let rest = spec.strip_prefix(option.as_str());
        rest.is_some_and(|rest| rest.starts_with("=[") || rest.starts_with("+["))
    })
}

fn function(values: Values) -> String {
    values.name().replace('-', "_")
}

fn zsh_functions() -> String {
    let mut text = String::new();
    for values in Values::ALL {
        // Any folder may be a session.
        let files = if values == Values::Sessions {
            "; _files"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "_varid_{}() {{ local -a found; found=(\"${{(@f)$(_call_program values varid complete {} 2>/dev/null)}}\"); compadd -a found{files} }}",
            function(values),
            values.name(),
        );
    }
    text
}

fn fish(mut script: String, offers: &[Offer]) -> String {
    for offer in offers {
        let options = offer.options.iter();
        let options = options.map(|option| match option.strip_prefix("--") {
            Some(long) => format!(" -l {long} -r"),
            None => format!(" -s {}", option.trim_start_matches('-')),
        });
        let mut options: String = options.collect();
        // For an option, the generated specification is repeated: the last one takes effect.
        if !options.is_empty() {
            let help = offer.help.replace('\\', "\\\\").replace('\'', "\\'");
            let _ = write!(options, " -d '{}'", help.replace('\n', " "));
        }
        let _ = writeln!(
            script,
            "complete -c varid -n \"__fish_varid_using_subcommand {}\"{options} -a '(varid complete {} 2>/dev/null)'",
            offer.verb,
            offer.values.name(),
        );
    }
    script
}
