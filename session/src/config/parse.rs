//! Reads a configuration, and finds its errors.

use super::document::{Problem, Problems, Value};
use super::methods::{MAX_PATTERNS, MethodFilter, MethodPattern};
use super::processes::ProcessPattern;
use super::settings::{
    AppSettings, Config, DURATIONS, FREQUENCIES, Limits, PERIODS, PROCESSES, SIZES,
    ServiceSettings, Settings,
};
use super::units;
use toml::de::DeTable;
use varid_model::{Rate, Stack};
use varid_recording::Tactic;

/// Maximum number of names in a list.
const MAX_NAMES: usize = 256;

/// Reads a configuration. `event` returns an error for a text that does not name an event, in the syntax of `-e`.
///
/// # Errors
///
/// All problems, in the order of the text.
pub fn parse(
    text: &str,
    event: impl Fn(&str) -> Result<(), String>,
) -> Result<Config, Vec<Problem>> {
    let mut problems = Problems::of(text);
    let document = problems.document();
    // Values that could not be read are missing, which must not be reported as another problem.
    if !problems.is_empty() {
        return Err(problems.finish());
    }
    let config = config(&mut problems, &document, event);
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(problems.finish())
    }
}

/// Reads what VMs do at a call. `tactic` is the paper's key, with its own words.
fn mode(problems: &mut Problems<'_>, table: &DeTable<'_>) -> Option<Tactic> {
    let mode = table.get("mode");
    let tactic = table.get("tactic");
    if let (Some(_), Some(tactic)) = (mode, tactic) {
        problems.at(
            &tactic.span(),
            "'tactic' is another name of 'mode': say it once",
        );
    }
    let words = [Tactic::LoadFromDex, Tactic::MethodInvoke]
        .map(|tactic| [(tactic.mode(), tactic), (tactic.name(), tactic)]);
    problems.word(mode.or(tactic)?, words.as_flattened())
}

fn config(
    problems: &mut Problems<'_>,
    table: &DeTable<'_>,
    event: impl Fn(&str) -> Result<(), String>,
) -> Config {
    problems.check_keys(
        table,
        "a configuration",
        &[
            "all",
            "apps",
            "services",
            "methods",
            "events",
            "frequency",
            "period",
            "stack",
            "mode",
            "tactic",
            "limits",
            "app",
            "service",
        ],
    );
    let mut config = Config {
        all: table.get("all").and_then(|all| problems.bool(all)) == Some(true),
        apps: processes(problems, table.get("apps")),
        settings: settings(problems, table, event),
        ..Config::default()
    };
    for (name, value) in sections(problems, table.get("app")) {
        let settings = app(problems, value);
        match ProcessPattern::new(name) {
            Ok(name) => drop(config.app.insert(name, settings)),
            Err(what) => problems.at(&value.span(), what),
        }
    }
    for (name, value) in sections(problems, table.get("service")) {
        let settings = service(problems, name, value);
        config.service.insert(name.to_owned(), settings);
    }
    services(problems, table, &mut config);
    if config.all && !(config.apps.is_empty() && config.services.is_empty()) {
        let both = table.get("apps").or(table.get("services"));
        let place = both.map(Value::span).unwrap_or_default();
        problems.at(
            &place,
            "all = true records these, too: leave one of them out",
        );
    }
    config
}

/// Reads the settings that the command line can also give.
fn settings(
    problems: &mut Problems<'_>,
    table: &DeTable<'_>,
    event: impl Fn(&str) -> Result<(), String>,
) -> Settings {
    let read = |text: &str| event(text).map(|()| text.to_owned());
    let events = table.get("events");
    let events = events.map(|events| problems.list(events, MAX_NAMES, read));
    let stacks = [Stack::Vertical, Stack::Full, Stack::None].map(|stack| (stack.name(), stack));
    let stack = table.get("stack");
    Settings {
        methods: methods(problems, table.get("methods")),
        events: events
            .into_iter()
            .flatten()
            .map(|(event, _)| event)
            .collect(),
        rate: rate(problems, table),
        stack: stack.and_then(|stack| problems.word(stack, &stacks)),
        tactic: mode(problems, table),
        limits: limits(problems, table.get("limits")),
    }
}

/// Reads the recorded services. Each must be known.
fn services(problems: &mut Problems<'_>, table: &DeTable<'_>, config: &mut Config) {
    let Some(names) = table.get("services") else {
        return;
    };
    let known = |name: &str| match config.processes_of(name) {
        Some(_) => Ok(name.to_owned()),
        // Errors of its definition are reported there.
        None if config.service.contains_key(name) => Ok(name.to_owned()),
        None => Err(config.no_service(name)),
    };
    let list = problems.list(names, MAX_NAMES, known);
    config.services = list.into_iter().map(|(name, _)| name).collect();
}

fn rate(problems: &mut Problems<'_>, table: &DeTable<'_>) -> Option<Rate> {
    let (frequency, period) = (table.get("frequency"), table.get("period"));
    if let (Some(_), Some(period)) = (frequency, period) {
        problems.at(&period.span(), "a frequency or a period, not both");
    }
    let frequency = frequency.and_then(|hz| problems.number(hz, FREQUENCIES));
    let period = period.and_then(|period| problems.number(period, PERIODS));
    let rate = frequency.map(Rate::Frequency);
    rate.or(period.map(Rate::Period))
}

fn limits(problems: &mut Problems<'_>, value: Option<&Value<'_>>) -> Limits {
    let Some(table) = value.and_then(|value| problems.table(value)) else {
        return Limits::default();
    };
    problems.check_keys(table, "[limits]", &["duration", "size", "processes"]);
    Limits {
        duration: table
            .get("duration")
            .and_then(|value| problems.measure(value, units::duration, DURATIONS)),
        size: table
            .get("size")
            .and_then(|value| problems.measure(value, units::size, SIZES)),
        processes: table
            .get("processes")
            .and_then(|value| problems.number(value, PROCESSES)),
    }
}

fn app(problems: &mut Problems<'_>, value: &Value<'_>) -> AppSettings {
    let Some(table) = problems.table(value) else {
        return AppSettings::default();
    };
    problems.check_keys(table, "an app", &["methods"]);
    AppSettings {
        methods: methods(problems, table.get("methods")),
    }
}

fn service(problems: &mut Problems<'_>, name: &str, value: &Value<'_>) -> ServiceSettings {
    let Some(table) = problems.table(value) else {
        return ServiceSettings::default();
    };
    problems.check_keys(table, "a service", &["processes", "methods"]);
    let listed = table.get("processes");
    let settings = ServiceSettings {
        processes: processes(problems, listed),
        methods: methods(problems, table.get("methods")),
    };
    if name.is_empty() || name.chars().any(|c| c.is_control() || c == ',') {
        let what = "a service's name has a character at least, and no comma";
        problems.at(&value.span(), what);
    }
    let is_empty = |list: &Value<'_>| {
        list.get_ref()
            .as_array()
            .is_some_and(|list| list.is_empty())
    };
    if listed.is_some_and(is_empty) || listed.is_none() && super::built_in(name).is_none() {
        let what = format!("service '{name}' has no processes: processes = [\"…\"] names them");
        problems.at(&listed.unwrap_or(value).span(), what);
    }
    settings
}

/// Returns the tables within a table, by name.
fn sections<'v, 'd>(
    problems: &mut Problems<'_>,
    value: Option<&'v Value<'d>>,
) -> Vec<(&'v str, &'v Value<'d>)> {
    let Some(table) = value.and_then(|value| problems.table(value)) else {
        return Vec::new();
    };
    if table.len() > MAX_NAMES {
        let place = value.map(Value::span).unwrap_or_default();
        problems.at(&place, format!("more than {MAX_NAMES} are not taken"));
        return Vec::new();
    }
    let name = |(key, value): (&'v toml::Spanned<_>, _)| {
        let name: &std::borrow::Cow<'d, str> = key.get_ref();
        (name.as_ref(), value)
    };
    table.iter().map(name).collect()
}

fn processes(problems: &mut Problems<'_>, value: Option<&Value<'_>>) -> Vec<ProcessPattern> {
    let list = value.map(|value| problems.list(value, MAX_NAMES, ProcessPattern::new));
    let list = list.unwrap_or_default().into_iter();
    list.map(|(pattern, _)| pattern).collect()
}

fn methods(problems: &mut Problems<'_>, value: Option<&Value<'_>>) -> MethodFilter {
    let list = value.map(|value| problems.list(value, MAX_PATTERNS, MethodPattern::new));
    let list = list.unwrap_or_default().into_iter();
    MethodFilter::new(list.map(|(pattern, _)| pattern).collect())
}

#[cfg(test)]
mod tests;
