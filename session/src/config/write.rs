//! Writes a configuration, so that reading it gives the same one.

use super::settings::{Config, Settings};
use super::units::{duration_text, size_text};
use std::fmt::{Display, Write};
use varid_model::Rate;

/// Returns the configuration as the text of a `varid.toml`. Settings that it does not have are left out.
pub fn to_toml(config: &Config) -> String {
    let mut text = String::new();
    if config.all {
        text.push_str("all = true\n");
    }
    list(&mut text, "apps", &config.apps);
    list(&mut text, "services", &config.services);
    write_settings(&mut text, &config.settings);
    for (name, app) in &config.app {
        section(&mut text, "app", name.text());
        list(&mut text, "methods", app.methods.patterns());
    }
    for (name, service) in &config.service {
        section(&mut text, "service", name);
        list(&mut text, "processes", &service.processes);
        list(&mut text, "methods", service.methods.patterns());
    }
    text
}

fn write_settings(text: &mut String, settings: &Settings) {
    list(text, "methods", settings.methods.patterns());
    list(text, "events", &settings.events);
    match settings.rate {
        Some(Rate::Frequency(hz)) => line(text, "frequency", hz),
        Some(Rate::Period(period)) => line(text, "period", period),
        None => {}
    }
    if let Some(stack) = settings.stack {
        line(text, "stack", quoted(stack.name()));
    }
    if let Some(tactic) = settings.tactic {
        line(text, "mode", quoted(tactic.mode()));
    }
    let limits = &settings.limits;
    if *limits != super::Limits::default() {
        text.push_str("\n[limits]\n");
        if let Some(duration) = limits.duration {
            line(text, "duration", quoted(&duration_text(duration)));
        }
        if let Some(size) = limits.size {
            line(text, "size", quoted(&size_text(size)));
        }
        if let Some(processes) = limits.processes {
            line(text, "processes", processes);
        }
    }
}

fn section(text: &mut String, kind: &str, name: &str) {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    };
    // Writing into a String cannot fail.
    let _ = writeln!(text, "\n[{kind}.{name}]");
}

fn line(text: &mut String, key: &str, value: impl Display) {
    let _ = writeln!(text, "{key} = {value}");
}

fn list<T: Display>(text: &mut String, key: &str, values: &[T]) {
    if !values.is_empty() {
        let values: Vec<_> = values.iter().map(|v| quoted(&v.to_string())).collect();
        line(text, key, format!("[{}]", values.join(", ")));
    }
}

/// Returns a text as a TOML string in quotes.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
