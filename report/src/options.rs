//! Which samples of a recording count, and what are they called?

use std::time::Duration;

use varid_model::{Pid, Tid};
use wildmatch::WildMatch;

use crate::{
    name_options::NameOptions, stack_filter::StackFilter, tasks::TaskTracker, time_span::TimeSpan,
};

/// Which samples become part of a profile, and where it takes names from; the default is all of
/// them, and names from where the recorded files were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Only samples of this event, by its name with or without modifiers; none: of all.
    pub event: Option<String>,
    /// Only this process.
    pub pid: Option<Pid>,
    /// Only this thread.
    pub tid: Option<Tid>,
    /// Only threads that had a matching name when they were sampled.
    pub thread: Option<Pattern>,
    /// Only processes that had a matching name when they were sampled.
    pub app: Option<Pattern>,
    /// Only samples of this time.
    pub time: Option<TimeSpan>,
    /// Only samples with such stacks.
    pub stacks: StackFilter,
    /// Where names and lines come from.
    pub names: NameOptions,
    /// Whether the frames in which threads were sampled are collected, one by one.
    pub sampled_frames: bool,
    /// Whether the samples of each address are collected: [`annotate`](crate::annotate) needs them.
    pub sampled_addresses: bool,
    /// Whether the profile has a table of its samples, [`Profile::samples`](crate::Profile::samples), 28 bytes each. Without it memory grows with the
    /// number of different stacks only.
    pub sample_table: bool,
}

impl Options {
    /// The option that leaves out a sample of this time since the start, wherever it was; none: no option does.
    pub(crate) fn excluded_by(
        &self,
        since_start: Duration,
        (pid, tid): (Pid, Tid),
        tasks: &mut TaskTracker,
    ) -> Option<&'static str> {
        let is_app = |pattern: &Pattern| {
            let process = tasks.process_name(pid);
            process.is_some_and(|name| pattern.matches_process(name))
        };
        let selects = [
            (
                "--time",
                self.time.is_none_or(|span| span.contains(since_start)),
            ),
            ("--pid", self.pid.is_none_or(|only| only == pid)),
            ("--app", self.app.as_ref().is_none_or(is_app)),
            ("--tid", self.tid.is_none_or(|only| only == tid)),
            (
                "--thread",
                self.thread
                    .as_ref()
                    .is_none_or(|pattern| pattern.matches(tasks.name((pid, tid)))),
            ),
        ];
        let excluding = selects.into_iter().find(|(_, selects)| !selects);
        excluding.map(|(option, _)| option)
    }

    /// Whether samples of the event of this name count.
    pub(crate) fn selects_event(&self, name: &str) -> bool {
        let only = self.event.as_deref();
        only.is_none_or(|only| only == name || plain_names(name).iter().any(|plain| only == plain))
    }

    /// Which samples count, as on the command line; empty for everything.
    pub(crate) fn describe(&self) -> String {
        let pid = self.pid.map(|pid| format!("--pid {pid}"));
        let tid = self.tid.map(|tid| format!("--tid {tid}"));
        let thread = self
            .thread
            .as_ref()
            .map(|pattern| format!("--thread {}", pattern.text()));
        let app = self.app.as_ref();
        let app = app.map(|pattern| format!("--app {}", pattern.text()));
        let time = self.time.map(|span| format!("--time {span}"));
        let tasks = [pid, tid, thread, app, time].into_iter().flatten();
        let all: Vec<_> = tasks.chain(self.stacks.describe()).collect();
        all.join(" ")
    }
}

/// The names of an event without its modifiers. They stand behind ':', or behind the last '/' of a PMU's terms; on machines with several
/// PMUs of a processor perf has them within: `cpu_core/cycles:Pu/`.
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

/// A name to look for: with `*` (any text) or `?` (any character) it stands for the whole
/// name, without them for a part of it. Case counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// A pattern of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the pattern of a name. Takes time in proportion to both lengths at most.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if !self.text.contains(['*', '?']) {
            return name.contains(&self.text);
        }
        WildMatch::new(&self.text).matches(name)
    }

    /// Whether it is the pattern of a process's name. The kernel keeps 15 bytes of a name: those at its begin, or of an Android app those
    /// at its end. Such a name matches what it may be a part of.
    fn matches_process(&self, name: &str) -> bool {
        /// `TASK_COMM_LEN` less the final zero.
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
