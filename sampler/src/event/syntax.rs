//! Parses the events and groups in the text of `-e`, in perf's syntax. [`super::resolve`] then looks them up on the machine.
//!
//! `LIST = ITEM {, ITEM}`, `ITEM = EVENT | {EVENT {, EVENT}}[:MODIFIERS]`,
//! `EVENT = NAME[:MODIFIERS] | PMU/TERM{,TERM}/[MODIFIERS] | SYSTEM:TRACEPOINT | PROBE`, `TERM = NAME[=VALUE]`.
//! [`super::probe`] parses a probe.

use super::jvm::JvmEvent;
use super::probe_text::{PlaceText, ProbeText, begins_probe, is_incomplete};
use super::tracefs::is_dynamic;
use crate::SamplerError;

/// A group of events, or a single event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupText {
    /// Its events. Each has the group's modifiers appended to its own.
    pub events: Vec<EventText>,
    /// True if the group is written in braces.
    pub braces: bool,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    /// The text without modifiers.
    pub text: String,
    /// Its parts.
    pub spec: EventSpec,
    /// Modifier letters, checked by [`Modifiers::parse`](super::modifiers::Modifiers::parse).
    pub modifiers: String,
}

/// The parts of an event's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventSpec {
    /// A name of the kernel's ABI or of a PMU's own table, or a raw code.
    Name(String),
    /// Terms of a PMU.
    Pmu {
        /// The PMU's name.
        pmu: String,
        /// Its terms.
        terms: Vec<Term>,
    },
    /// A tracepoint of the kernel, or the name of a probe in tracefs: `sched:sched_switch`, `probe_libc:malloc`.
    Tracepoint {
        /// Its system.
        system: String,
        /// Its name without its system.
        name: String,
    },
    /// A probed place: `uprobe:/lib/libc.so.6:malloc`.
    Probe(ProbeText),
}

/// `NAME[=VALUE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Option<String>,
}

/// Parses the text of one `-e`.
pub fn parse(text: &str) -> Result<Vec<GroupText>, SamplerError> {
    let malformed = |what: &str| SamplerError::EventSyntax {
        event: text.to_owned(),
        what: what.to_owned(),
    };
    let mut groups = Vec::new();
    for item in split(text).map_err(malformed)? {
        let group = match item.strip_prefix('{') {
            None => GroupText {
                events: vec![event(item).map_err(malformed)?],
                braces: false,
            },
            Some(rest) => group(rest).map_err(malformed)?,
        };
        groups.push(group);
    }
    Ok(groups)
}

/// Returns true if the text of one `-e` has a probe in a file's code, as HotSpot's events are. Malformed texts have none.
pub fn has_uprobe(text: &str) -> bool {
    let groups = parse(text).unwrap_or_default();
    let mut events = groups.iter().flat_map(|group| &group.events);
    events.any(|event| match &event.spec {
        EventSpec::Probe(probe) => matches!(probe.place, PlaceText::File { .. }),
        EventSpec::Name(name) | EventSpec::Pmu { pmu: name, .. } => JvmEvent::named(name).is_some(),
        EventSpec::Tracepoint { .. } => false,
    })
}

fn group(text: &str) -> Result<GroupText, &'static str> {
    let (inside, behind) = text.rsplit_once('}').ok_or("a '{' without its '}'")?;
    if inside.contains(['{', '}']) {
        return Err("a group within a group");
    }
    let modifiers = match behind.strip_prefix(':') {
        Some(modifiers) if are_letters(modifiers) => modifiers,
        None if behind.is_empty() => "",
        _ => return Err("behind a group only ':' and modifiers may stand"),
    };
    let mut events = split(inside)?
        .into_iter()
        .map(event)
        .collect::<Result<Vec<_>, _>>()?;
    for event in &mut events {
        event.modifiers.push_str(modifiers);
    }
    Ok(GroupText {
        events,
        braces: true,
    })
}

/// Splits at the commas that are outside of braces, slashes and function names.
fn split(text: &str) -> Result<Vec<&str>, &'static str> {
    let (mut in_braces, mut in_slashes) = (false, false);
    let mut parts = Vec::new();
    let mut rest = text;
    // The start of the current item, and the end of the searched part.
    let (mut begun, mut searched) = (0, 0);
    while let Some(at) = rest
        .get(searched..)
        .and_then(|from| from.find([',', '/', '{', '}']))
    {
        let at = at.saturating_add(searched);
        searched = at.saturating_add(1);
        let item = rest.get(begun..at).unwrap_or_default().trim_start();
        let in_probe = begins_probe(item);
        match rest.as_bytes().get(at) {
            // A probe's path may have any number of slashes.
            Some(b'/') if in_probe => {}
            Some(b'/') => in_slashes = !in_slashes,
            Some(b'{') => {
                in_braces = true;
                begun = searched;
            }
            Some(b'}') => in_braces = false,
            _ if in_slashes || in_probe && is_incomplete(item) => {}
            _ if in_braces => begun = searched,
            _ => {
                let (part, behind) = rest.split_at(at);
                parts.push(part);
                rest = behind.get(1..).unwrap_or_default();
                (begun, searched) = (0, 0);
            }
        }
    }
    parts.push(rest);
    if in_slashes {
        return Err("a '/' without a second one");
    }
    if parts.iter().any(|part| part.trim().is_empty()) {
        return Err("an event without a name");
    }
    Ok(parts.into_iter().map(str::trim).collect())
}

fn event(text: &str) -> Result<EventText, &'static str> {
    if let Some(probe) = ProbeText::parse(text)? {
        return Ok(EventText {
            text: text.to_owned(),
            spec: EventSpec::Probe(probe),
            modifiers: String::new(),
        });
    }
    let Some((pmu, rest)) = text.split_once('/') else {
        let (name, modifiers) = match text.split_once(':') {
            Some((_, "")) => return Err("a ':' without modifiers"),
            Some((system, name)) if is_tracepoint(system, name) => {
                return tracepoint(system, name);
            }
            Some((_, modifiers)) if !are_letters(modifiers) => return Err(NOT_LETTERS),
            Some(both) => both,
            None => (text, ""),
        };
        if name.is_empty() {
            return Err("an event without a name");
        }
        if name.contains(['{', '}', '=', '/']) {
            return Err("a name with '{', '}' or '='");
        }
        return Ok(EventText {
            text: name.to_owned(),
            spec: EventSpec::Name(name.to_owned()),
            modifiers: modifiers.to_owned(),
        });
    };
    let (inside, behind) = rest.rsplit_once('/').ok_or("a '/' without a second one")?;
    if pmu.is_empty() {
        return Err("a '/' without a PMU's name before it");
    }
    if inside.contains('/') {
        return Err("more than two '/'");
    }
    // A PMU's name becomes part of a path.
    if pmu.contains(['.', '{', '}', ':', '=']) {
        return Err("a PMU's name has neither '.' nor ':'");
    }
    let modifiers = behind.strip_prefix(':').unwrap_or(behind);
    if !behind.is_empty() && !are_letters(modifiers) {
        return Err(NOT_LETTERS);
    }
    let terms = inside
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty());
    let terms = terms.map(term).collect::<Result<_, _>>()?;
    Ok(EventText {
        text: format!("{pmu}/{inside}/"),
        spec: EventSpec::Pmu {
            pmu: pmu.to_owned(),
            terms,
        },
        modifiers: modifiers.to_owned(),
    })
}

const NOT_LETTERS: &str = "modifiers that are not letters";
const PATTERN: &str = "a pattern of tracepoints: name each of them";

fn tracepoint(system: &str, name: &str) -> Result<EventText, &'static str> {
    if system.is_empty() {
        return Err("an event without a name");
    }
    if [system, name].iter().any(|part| part.contains('*')) {
        return Err(PATTERN);
    }
    Ok(EventText {
        text: format!("{system}:{name}"),
        spec: EventSpec::Tracepoint {
            system: system.to_owned(),
            name: name.to_owned(),
        },
        modifiers: String::new(),
    })
}

/// Returns true if the text after a ':' is the name of a tracepoint rather than modifiers: `sched_switch` of `sched:sched_switch`.
fn is_tracepoint(system: &str, name: &str) -> bool {
    let is_name = |text: &str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_*".contains(letter))
    };
    (name.contains(['_', '*']) || is_dynamic(system)) && is_name(system) && is_name(name)
}

/// Returns true if the text consists of letters only. [`Modifiers`](super::modifiers::Modifiers) checks which letters are
/// modifiers.
fn are_letters(modifiers: &str) -> bool {
    !modifiers.is_empty() && modifiers.chars().all(|letter| letter.is_ascii_alphabetic())
}

fn term(text: &str) -> Result<Term, &'static str> {
    let (name, value) = match text.split_once('=') {
        Some((_, "")) => return Err("a '=' without a value"),
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("a '=' without a name before it");
    }
    Ok(Term {
        name: name.to_owned(),
        value,
    })
}

/// Parses an alias file of a PMU: `event=0x11,umask=0x1`.
pub fn alias(text: &str) -> Option<Vec<Term>> {
    let terms = text.trim().split(',').map(str::trim);
    terms.map(|text| term(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(groups: &[GroupText]) -> String {
        let event = |event: &EventText| match event.modifiers.as_str() {
            "" => event.text.clone(),
            modifiers => format!("{}:{modifiers}", event.text),
        };
        let group = |group: &GroupText| {
            let events: Vec<_> = group.events.iter().map(event).collect();
            match group.braces {
                true => format!("{{{}}}", events.join(",")),
                false => events.join(","),
            }
        };
        groups.iter().map(group).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn only_probes_in_files_are_uprobes() {
        for text in [
            "uprobe:/bin/true:main",
            "cycles,uretprobe:/b:f(int, int)",
            "{cycles,uprobe:/b:f}",
            "alloc",
            "cycles,lock/period=10/",
        ] {
            assert!(has_uprobe(text), "{text}");
        }
        for text in [
            "cycles",
            "kprobe:vfs_read",
            "my_uprobe:hit",
            "uprobe:/bin/true",
        ] {
            assert!(!has_uprobe(text), "{text}");
        }
    }

    #[test]
    fn all_of_perfs_syntax_is_parsed() {
        for (text, expected) in [
            ("cycles", "cycles"),
            ("cycles:u", "cycles:u"),
            ("r11", "r11"),
            ("cycles,instructions:k", "cycles,instructions:k"),
            ("{cycles,instructions}", "{cycles,instructions}"),
            ("{cycles:u,r8}:S", "{cycles:uS,r8:S}"),
            ("armv8_pmuv3/cpu_cycles/", "armv8_pmuv3/cpu_cycles/"),
            ("cpu/event=0x3c,umask=1/u", "cpu/event=0x3c,umask=1/:u"),
            ("{cpu/a,b=1/,x}:p, y", "{cpu/a,b=1/:p,x:p},y"),
            ("L1-dcache-load-misses", "L1-dcache-load-misses"),
            ("sched:sched_switch,r1", "sched:sched_switch,r1"),
            ("probe_libc:malloc,r1", "probe_libc:malloc,r1"),
            ("uprobe:/a/b/c:f,r1", "uprobe:/a/b/c:f,r1"),
            (
                "r1,uprobe:/a:x::f(int, y<1, 2>)",
                "r1,uprobe:/a:x::f(int, y<1, 2>)",
            ),
            ("{r1,kprobe:f,uprobe:/a:g}", "{r1,kprobe:f,uprobe:/a:g}"),
        ] {
            assert_eq!(shown(&parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (text, what) in [
            ("", "without a name"),
            ("a,,b", "without a name"),
            (":u", "without a name"),
            ("a:", "without modifiers"),
            ("{a,b", "without its '}'"),
            ("{a,{b}}", "within a group"),
            ("{}", "without a name"),
            ("{a}u", "behind a group"),
            ("cpu/event=1", "without a second"),
            ("/event=1/", "without a PMU"),
            ("cpu/event=/", "without a value"),
            ("cpu/=1/", "without a name"),
            ("a:{", "not letters"),
            ("a:u:k", "not letters"),
            ("a:u2", "not letters"),
            ("sched:sched_*", "a pattern"),
            ("probe:*", "a pattern"),
            ("cycles,uprobe:/a", "PATH:FUNCTION"),
            (":sched_switch", "without a name"),
            ("cpu/a/:", "not letters"),
            ("{a}:u}:", "a group"),
            ("../../etc/x/", "more than two"),
            ("../x/", "neither '.'"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_parsed_is_parsed_the_same_when_it_is_shown(text in "[a-c{}/,:=. ]{0,24}") {
            if let Ok(groups) = parse(&text) {
                prop_assert_eq!(parse(&shown(&groups)).unwrap(), groups);
            }
        }
    }
}
