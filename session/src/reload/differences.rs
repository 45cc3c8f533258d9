//! Compares configurations: which keys can a running session change?

use crate::config::{Config, Settings};

/// Keys that differ in two configurations, by when they take effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// They take effect at once.
    pub live: Vec<&'static str>,
    /// They take effect with the next session.
    pub later: Vec<&'static str>,
}

/// Returns the keys that differ in two configurations.
pub fn differences(old: &Config, new: &Config) -> Differences {
    let pick = |all: &[(&'static str, bool)]| -> Vec<&'static str> {
        let different = all.iter().filter(|(_, same)| !same);
        different.map(|(key, _)| *key).collect()
    };
    let (was, is) = (&old.settings, &new.settings);
    let names = pick(&[
        ("apps", old.apps == new.apps),
        ("services", old.services == new.services),
    ]);
    let mut live = pick(&[
        ("methods", was.methods == is.methods),
        ("limits", was.limits == is.limits),
        ("app", old.app == new.app),
        ("service", old.service == new.service),
    ]);
    let mut later = pick(&[
        ("all", old.all == new.all),
        ("events", was.events == is.events),
        (
            "stack",
            was.stack.unwrap_or_default() == is.stack.unwrap_or_default(),
        ),
        (
            "mode",
            was.tactic.unwrap_or_default() == is.tactic.unwrap_or_default(),
        ),
    ]);
    // A change between names and all processes counts as one change.
    let named = if old.all == new.all {
        &mut live
    } else {
        &mut later
    };
    named.splice(0..0, names);
    Differences { live, later }
}

/// Returns the configuration for a running session: the new values of keys that take effect at once, and the old values of the
/// others.
pub fn merge_live(old: &Config, new: Config) -> Config {
    let mut both = Config {
        all: old.all,
        settings: Settings {
            methods: new.settings.methods,
            limits: new.settings.limits,
            ..old.settings.clone()
        },
        ..new
    };
    if new.all != old.all {
        both.apps.clone_from(&old.apps);
        both.services.clone_from(&old.services);
        // Their definitions are kept, too.
        for name in &old.services {
            if both.processes_of(name).is_none()
                && let Some(service) = old.service.get(name)
            {
                both.service.insert(name.clone(), service.clone());
            }
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn between(old: &str, new: &str) -> Differences {
        let config = |text: &str| parse(text, |_| Ok(())).unwrap();
        differences(&config(old), &config(new))
    }

    #[test]
    fn every_key_of_the_format_is_changed_at_once_or_later() {
        let all = [
            ("apps = [\"a\"]", "apps"),
            ("services = [\"media\"]", "services"),
            ("methods = [\"a.*\"]", "methods"),
            ("[limits]\nsize = \"2 MB\"", "limits"),
            ("[app.a]\nmethods = [\"a.*\"]", "app"),
            ("[service.media]\nmethods = [\"a.*\"]", "service"),
        ];
        for (text, key) in all {
            let expected = Differences {
                live: vec![key],
                later: Vec::new(),
            };
            assert_eq!(between("", text), expected);
        }
        // A change between names and all processes is one change, which takes effect later.
        let kinds = between(
            "apps = [\"a\"]\nfrequency = 9",
            "all = true\n[limits]\nsize = \"2 MB\"",
        );
        assert_eq!(
            (kinds.live, kinds.later),
            (vec!["limits"], vec!["apps", "all"])
        );
        let later = [
            ("all = true", "all"),
            ("events = [\"cycles\"]", "events"),
            ("stack = \"full\"", "stack"),
            ("tactic = \"method-invoke\"", "mode"),
        ];
        for (text, key) in later {
            let expected = Differences {
                live: Vec::new(),
                later: vec![key],
            };
            assert_eq!(between("", text), expected);
        }
        // An explicit default equals a missing key.
        let default = "stack = \"vertical\"\ntactic = \"load-from-dex\"\n";
        assert_eq!(between("", default), Differences::default());
    }

    #[test]
    fn recorded_processes_stay_while_a_target_of_another_kind_waits() {
        let config = |text: &str| parse(text, |_| Ok(())).unwrap();
        let own = "services = [\"own\"]\n[service.own]\nprocesses = [\"x\"]\n";
        let both = merge_live(&config(own), config("all = true\nmethods = [\"a.*\"]\n"));
        assert!(!both.all && both.services == ["own"] && !both.settings.methods.is_empty());
        assert_eq!(both.processes_of("own").unwrap()[0].text(), "x");
        let both = merge_live(&config("all = true\n"), config("apps = [\"a\"]\n"));
        assert!(both.all && both.apps.is_empty());
    }
}
