//! Applies a configuration to processes by their names: whether they are recorded, for which service, and which of their methods.

use crate::config::{Config, MethodFilter, ProcessPattern};
use std::sync::Arc;

/// The parts of a configuration that select processes.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    apps: Vec<ProcessPattern>,
    /// The recorded ones come first, in the configuration's order. A process belongs to the first one that matches it.
    services: Vec<Service>,
    /// The number of recorded services.
    recorded: usize,
    /// The recorded methods of every process.
    methods: MethodFilter,
    app_methods: Vec<(ProcessPattern, MethodFilter)>,
}

#[derive(Debug, Clone)]
struct Service {
    name: Arc<str>,
    processes: Vec<ProcessPattern>,
    methods: MethodFilter,
}

impl Service {
    fn has(&self, process: &str) -> bool {
        self.processes
            .iter()
            .any(|pattern| pattern.matches(process))
    }
}

/// The result of a configuration for a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The service that it belongs to.
    pub service: Option<Arc<str>>,
    /// Its recorded methods.
    pub methods: MethodFilter,
}

impl Selection {
    /// Takes the parts from a configuration.
    pub fn of(config: &Config) -> Self {
        let recorded = config.services.iter().map(String::as_str);
        let known = config.known_services().into_iter();
        let others = known.filter(|name| config.services.iter().all(|other| other != name));
        let service = |name: &str| Service {
            name: name.into(),
            // Recorded services exist, because the configuration was checked.
            processes: config.processes_of(name).unwrap_or_default(),
            methods: config
                .service
                .get(name)
                .map_or_else(MethodFilter::default, |service| service.methods.clone()),
        };
        let app_methods = config.app.iter();
        Self {
            apps: config.apps.clone(),
            services: recorded.chain(others).map(service).collect(),
            recorded: config.services.len(),
            methods: config.settings.methods.clone(),
            app_methods: app_methods
                .map(|(app, settings)| (app.clone(), settings.methods.clone()))
                .collect(),
        }
    }

    /// Returns true if a process is recorded, by the first word of its command line.
    pub fn names(&self, process: &str) -> bool {
        let app = self.apps.iter().any(|pattern| pattern.matches(process));
        let mut services = self.services.iter().take(self.recorded);
        app || services.any(|service| service.has(process))
    }

    /// Returns the recorded methods if they are the same for every process. None if they depend on the process's name.
    pub fn methods_of_all(&self) -> Option<&MethodFilter> {
        let apps = self.app_methods.iter().map(|(_, methods)| methods);
        let mut own = apps.chain(self.services.iter().map(|service| &service.methods));
        own.all(MethodFilter::is_empty).then_some(&self.methods)
    }

    /// Returns the terms for a process by its own name. If no service matches that name, the service is that of the name by which the
    /// process was selected.
    pub fn terms(&self, own: &str, selected_by: &str) -> Terms {
        let service = |name: &str| self.services.iter().find(|service| service.has(name));
        let service = service(own).or_else(|| service(selected_by));
        let apps = self.app_methods.iter();
        let apps = apps.filter(|(pattern, _)| pattern.matches(own) || pattern.matches(selected_by));
        let lists = apps.map(|(_, methods)| methods);
        let lists = lists.chain(service.map(|service| &service.methods));
        Terms {
            service: service.map(|service| Arc::clone(&service.name)),
            methods: lists.fold(self.methods.clone(), |all, more| all.and(more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn selection(text: &str) -> Selection {
        Selection::of(&parse(text, |_| Ok(())).unwrap())
    }

    #[test]
    fn apps_and_services_are_recorded_together() {
        let both = selection(
            "apps = [\"org.a\"]\nservices = [\"media\", \"own\"]\n[service.own]\nprocesses = [\"x*\"]\n",
        );
        for process in ["org.a", "org.a:remote", "/system/bin/mediaserver", "xyz"] {
            assert!(both.names(process), "{process}");
        }
        for process in ["org.b", "system_server", "netd", ""] {
            assert!(!both.names(process), "{process}");
        }
    }

    #[test]
    fn a_process_counts_for_the_first_service_that_has_it_recorded_ones_first() {
        let text = "services = [\"video\", \"media\"]\n[service.audio]\nprocesses = [\"audioserver\", \"mediaserver\"]\n[service.video]\nprocesses = [\"mediaserver\", \"system_server\"]\n";
        let selection = selection(text);
        let of = |process: &str| selection.terms(process, process).service;
        assert_eq!(of("mediaserver").as_deref(), Some("video"));
        assert_eq!(of("media.codec").as_deref(), Some("media"));
        assert_eq!(of("system_server").as_deref(), Some("video"));
        // Not recorded, but known, for a session that records all processes.
        assert_eq!(of("audioserver").as_deref(), Some("audio"));
        assert_eq!(of("surfaceflinger").as_deref(), Some("surfaceflinger"));
        assert_eq!(of("sh"), None);
        // A forked process belongs to its parent's service, unless its own name has one.
        let forked = |name: &str| selection.terms(name, "mediaserver").service;
        assert_eq!(forked("sh").as_deref(), Some("video"));
        assert_eq!(forked("netd").as_deref(), Some("network"));
    }

    #[test]
    fn method_patterns_of_all_of_an_app_and_of_a_service_combine() {
        let text = "apps = [\"a\", \"m\", \"o\"]\nmethods = [\"g.*\"]\n[app.a]\nmethods = [\"a.*\"]\n[app.\"m*\"]\nmethods = [\"!n.*\"]\n[service.s]\nprocesses = [\"m\"]\nmethods = [\"s.*\"]\n";
        let selection = selection(text);
        let of = |process: &str| -> Vec<String> {
            let methods = selection.terms(process, process).methods;
            methods.patterns().iter().map(ToString::to_string).collect()
        };
        assert_eq!(selection.methods_of_all(), None);
        assert_eq!(of("a"), ["g.*", "a.*"]);
        assert_eq!(of("m"), ["g.*", "!n.*", "s.*"]);
        assert_eq!(of("o"), ["g.*"]);
    }
}
