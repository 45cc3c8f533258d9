//! Options that select the samples of a profile and the sources of names.

use std::time::Duration;

use varid_model::{Pid, Tid};
use wildmatch::WildMatch;

use crate::{
    name_options::NameOptions,
    stack_filter::StackFilter,
    tasks::{TaskTracker, ThreadKey},
    time_span::TimeSpan,
};

/// Selects the samples of a profile and the sources of names. By default, all samples are selected, and names come from
/// the recorded files at their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Only samples of this event, by its name with or without modifiers. None selects all events.
    pub event: Option<String>,
    /// Only samples of these threads.
    pub tasks: TaskFilter,
    /// Only samples in this time span.
    pub time: Option<TimeSpan>,
    /// Only samples with matching stacks.
    pub stacks: StackFilter,
    /// The sources of names and lines.
    pub names: NameOptions,
    /// Whether the frames in which threads were sampled are collected individually.
    pub sampled_frames: bool,
    /// Whether samples are collected by address, which [`annotate`](crate::annotate) requires.
    pub sampled_addresses: bool,
    /// Whether the profile has a table of its samples, [`Profile::samples`](crate::Profile::samples), which takes 28
    /// bytes for each. Without it, memory only grows with the number of distinct stacks.
    pub sample_table: bool,
}

/// Conditions on the thread of a sample. All must hold. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// It is of this process.
    pub pid: Option<Pid>,
    /// It is this thread.
    pub tid: Option<Tid>,
    /// It has a matching name at the time of the sample.
    pub thread: Option<Pattern>,
    /// Its process has a matching name at the time of the sample.
    pub app: Option<Pattern>,
}

impl TaskFilter {
    /// Returns the option that excludes a sample of this thread.
    fn excluded_by(&self, thread: ThreadKey, tasks: &mut TaskTracker) -> Option<&'static str> {
        let ThreadKey { pid, tid } = thread;
        let is_app = |pattern: &Pattern| {
            let process = tasks.process_name(pid);
            process.is_some_and(|name| pattern.matches_process(name))
        };
        if self.pid.is_some_and(|only| only != pid) {
            return Some("--pid");
        }
        if !self.app.as_ref().is_none_or(is_app) {
            return Some("--app");
        }
        if self.tid.is_some_and(|only| only != tid) {
            return Some("--tid");
        }
        let mut is_named = |pattern: &Pattern| pattern.matches(tasks.name(thread));
        let thread = self.thread.as_ref();
        (!thread.is_none_or(&mut is_named)).then_some("--thread")
    }

    /// Describes the conditions as on the command line.
    fn describe(&self) -> impl Iterator<Item = String> {
        let pid = self.pid.map(|pid| format!("--pid {pid}"));
        let tid = self.tid.map(|tid| format!("--tid {tid}"));
        let named = |option: &str, pattern: &Option<Pattern>| {
            let pattern = pattern.as_ref();
            pattern.map(|pattern| format!("{option} {}", pattern.text()))
        };
        let thread = named("--thread", &self.thread);
        let app = named("--app", &self.app);
        [pid, tid, thread, app].into_iter().flatten()
    }
}

impl Options {
    /// Returns the option that excludes a sample of this thread and time since the start. Stacks are not checked here.
    /// None if no option excludes it.
    pub(crate) fn excluded_by(
        &self,
        since_start: Duration,
        thread: ThreadKey,
        tasks: &mut TaskTracker,
    ) -> Option<&'static str> {
        if self.time.is_some_and(|span| !span.contains(since_start)) {
            return Some("--time");
        }
        self.tasks.excluded_by(thread, tasks)
    }

    /// Returns true if the event with this name is selected.
    pub(crate) fn selects_event(&self, name: &str) -> bool {
        let only = self.event.as_deref();
        only.is_none_or(|only| only == name || plain_names(name).iter().any(|plain| only == plain))
    }

    /// Describes the selection as on the command line. Empty if everything is selected.
    pub(crate) fn describe(&self) -> String {
        let time = self.time.map(|span| format!("--time {span}"));
        let tasks = self.tasks.describe().chain(time);
        let all: Vec<_> = tasks.chain(self.stacks.describe()).collect();
        all.join(" ")
    }
}

/// Returns the names of an event without modifiers. Modifiers follow ':' or the last '/' of a PMU's terms. If a machine
/// has several core PMUs, perf puts them inside: `cpu_core/cycles:Pu/`.
fn plain_names(name: &str) -> Vec<String> {
    let Some((terms, _)) = name.rsplit_once('/') else {
        return name
            .split(':')
            .next()
            .map(str::to_owned)
            .into_iter()
            .collect();
    };
    let within = terms.rsplit_once(':').filter(|(_, modifiers)| {
        let is_modifier = |c: char| c.is_ascii_alphabetic();
        !modifiers.is_empty() && modifiers.chars().all(is_modifier)
    });
    let within = within.map(|(terms, _)| terms);
    [Some(terms), within]
        .into_iter()
        .flatten()
        .map(|terms| format!("{terms}/"))
        .collect()
}

/// A name pattern. With `*` (any text) or `?` (any character) it matches the whole name, otherwise any part of it. It
/// is case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// Makes a pattern from this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern matches a name. Takes time proportional to the product of both lengths at most.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if !self.text.contains(['*', '?']) {
            return name.contains(&self.text);
        }
        WildMatch::new(&self.text).matches(name)
    }

    /// Returns true if the pattern matches a process name. The kernel keeps 15 bytes of a name: the first ones or, for
    /// an Android app, the last ones. Such a truncated name matches if a full name with it could match.
    fn matches_process(&self, name: &str) -> bool {
        /// `TASK_COMM_LEN` without the terminating zero.
        const LONGEST: usize = 15;
        let cut = || {
            let ends = self.text.starts_with(name) || self.text.ends_with(name);
            name.len() == LONGEST && ends
        };
        self.matches(name) || cut()
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Pattern};

    #[test]
    fn an_event_is_selected_with_or_without_its_modifiers() {
        for (wanted, name, expected) in [
            ("cycles", "cycles:u", true),
            ("cycles:u", "cycles:u", true),
            ("cycles:k", "cycles:u", false),
            ("a72/br_mis_pred/", "a72/br_mis_pred/u", true),
            ("a72/br_mis_pred/", "a72/br_mis_pred/:u", true),
            ("a72/br_mis_pred/u", "a72/br_mis_pred/u", true),
            ("a72/br_mis_pred/", "a72/br_mis_pred/", true),
            ("cpu_core/cycles/", "cpu_core/cycles:Pu/", true),
            ("cpu_core/cycles:Pu/", "cpu_core/cycles:Pu/", true),
            ("cpu_atom/cycles/", "cpu_core/cycles:Pu/", false),
            ("cpu/name=L1:0/", "cpu/name=L1:0/u", true),
            ("a72", "a72/br_mis_pred/u", false),
            ("a53/br_mis_pred/", "a72/br_mis_pred/u", false),
        ] {
            let options = Options {
                event: Some(wanted.to_owned()),
                ..Options::default()
            };
            assert_eq!(options.selects_event(name), expected, "{wanted} {name}");
        }
    }

    #[test]
    fn an_app_is_found_by_the_part_of_its_name_that_the_kernel_keeps() {
        for (pattern, name, expected) in [
            ("org.example.balls", "org.example.bal", true),
            ("org.example.balls", "g.example.balls", true),
            ("org.example.balls", "example.balls", false),
            ("org.example.balls", "org.example.foo", false),
            ("balls", "g.example.balls", true),
            ("*.balls", "g.example.balls", true),
        ] {
            let matches = Pattern::new(pattern).matches_process(name);
            assert_eq!(matches, expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_with_wildcards_mean_the_whole_name_others_a_part() {
        for (pattern, name, expected) in [
            ("Balls", "org.example.Balls.draw", true),
            ("balls", "org.example.Balls.draw", false),
            ("*.draw", "org.example.Balls.draw", true),
            ("*.draw", "org.example.Balls.drawLine", false),
            ("org.*.draw*", "org.example.Balls.drawLine", true),
            ("?", "ab", false),
            ("a?c*", "abc", true),
            ("*", "", true),
            ("", "x", true),
            ("*ab*ab", "aabab ab", true),
            ("*aaaaaaaaab", "aaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
