//! Parses the first line of a sample of `perf script`.
//!
//! ```text
//! COMM TASK [CPU] [FLAGS] [TIME:] [PERIOD] [EVENT:] REST
//! ```
//!
//! with `TID` or `PID/TID` for `TASK`. Names of threads may contain blanks, and parts that look like other fields. The task is found before
//! the time, or before the event in a text without times.

use crate::script_frame::Frame;

/// The first line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) comm: &'a str,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    /// Time in nanoseconds. None if the text has no times.
    pub(crate) time: Option<u64>,
    pub(crate) period: Option<u64>,
    /// None if the text has no events.
    pub(crate) event: Option<&'a str>,
    /// The rest of the line: the frame of a sample without a callchain, or a tracepoint's fields.
    pub(crate) rest: &'a str,
}

/// The sampled thread: the part before the time or the event.
struct Task<'a> {
    comm: &'a str,
    pid: u32,
    tid: u32,
    cpu: u32,
}

/// A word of a line.
#[derive(Clone, Copy)]
struct Word<'a> {
    /// Offset of its first byte in the line.
    at: usize,
    text: &'a str,
}

impl Word<'_> {
    /// Returns the offset of the first byte behind it.
    const fn end(self) -> usize {
        self.at.saturating_add(self.text.len())
    }
}

impl<'a> Head<'a> {
    /// Parses the first line of a sample in a text with times.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let words = words(line);
        let times = words.iter().enumerate();
        times
            .filter_map(|(at, word)| Some((at, time(word.text)?)))
            .find_map(|(at, time)| {
                let task = Task::parse(line, words.get(..at)?)?;
                let time_end = words.get(at)?.end();
                let behind = words.get(at.checked_add(1)?..)?;
                let (period, event, rest) = match event(line, behind) {
                    Some((period, event, rest)) => (period, Some(event), rest),
                    None => without_event(line.get(time_end..)?.trim())?,
                };
                Some(Self::new(&task, Some(time), period, event, rest))
            })
    }

    /// Parses the first line of a sample in a text without times: `COMM TASK [CPU] [PERIOD] EVENT: REST`. Prose may look like one.
    pub(crate) fn parse_without_time(line: &'a str) -> Option<Self> {
        let words = words(line);
        let has_slash = |(_, word): &(usize, &Word<'_>)| word.text.contains('/');
        let places = || words.iter().enumerate().skip(1);
        // A thread's name may end in a number, so words with both ids are tried first.
        let ids = places()
            .filter(has_slash)
            .chain(places().filter(|place| !has_slash(place)));
        ids.filter(|(_, word)| ids_of(word.text).is_some())
            .find_map(|(at, _)| {
                let behind = at.checked_add(1)?;
                let cpu = words.get(behind).filter(|word| cpu_of(word.text).is_some());
                let behind = behind.checked_add(usize::from(cpu.is_some()))?;
                let task = Task::parse(line, words.get(..behind)?)?;
                let (period, event, rest) = event(line, words.get(behind..)?)?;
                nanoseconds(event).is_none().then_some(())?;
                Some(Self::new(&task, None, period, Some(event), rest))
            })
    }

    const fn new(
        task: &Task<'a>,
        time: Option<u64>,
        period: Option<u64>,
        event: Option<&'a str>,
        rest: &'a str,
    ) -> Self {
        Self {
            comm: task.comm,
            pid: task.pid,
            tid: task.tid,
            cpu: task.cpu,
            time,
            period,
            event,
            rest,
        }
    }
}

impl<'a> Task<'a> {
    /// Finds the thread in these first words of a line. With -F flags or +iflags, more words follow its ids: in brackets, or of letters and
    /// dots.
    fn parse(line: &'a str, words: &[Word<'a>]) -> Option<Self> {
        let mut cpu = 0;
        for word in words.iter().rev() {
            if let Some(number) = cpu_of(word.text) {
                cpu = number;
            } else if let Some((pid, tid)) = ids_of(word.text) {
                let comm = line.get(..word.at)?.trim();
                let comm = Some(comm).filter(|comm| !comm.is_empty())?;
                return Some(Self {
                    comm,
                    pid,
                    tid,
                    cpu,
                });
            } else if !word.text.bytes().all(is_flag) {
                return None;
            }
        }
        None
    }
}

/// Parses the period and the event at the beginning of these words, and returns the rest of the line.
fn event<'a>(line: &'a str, words: &[Word<'a>]) -> Option<(Option<u64>, &'a str, &'a str)> {
    let named = |word: &Word<'a>| {
        let name = word.text.strip_suffix(':')?;
        // Other records, as printed with `--show-task-events` and the like, are not samples.
        let name =
            Some(name).filter(|name| !name.is_empty() && !name.starts_with("PERF_RECORD_"))?;
        let rest = line.get(word.end()..)?.trim();
        Some((name, rest))
    };
    let (first, second) = (words.first()?, words.get(1));
    if let Some((name, rest)) = named(first) {
        return Some((None, name, rest));
    }
    let period = first.text.parse().ok()?;
    let (name, rest) = named(second?)?;
    Some((Some(period), name, rest))
}

/// Parses the part after the time in a text without events: nothing, a period, a frame or both.
fn without_event(rest: &str) -> Option<(Option<u64>, Option<&str>, &str)> {
    if rest.is_empty() || Frame::parse(rest).is_some_and(|frame| frame.file.is_some()) {
        let (number, frame) = rest.split_once(' ').unwrap_or((rest, ""));
        let behind = Frame::parse(frame).filter(|frame| frame.file.is_some());
        return Some(match (number.parse(), behind) {
            (Ok(period), Some(_)) => (Some(period), None, frame.trim()),
            _ => (None, None, rest),
        });
    }
    let period = rest.parse().ok()?;
    Some((Some(period), None, ""))
}

/// The words of a line with their offsets.
fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = line;
    // Words after the event are not needed, and no name has this many blanks.
    while words.len() < 64 {
        let start = rest.find(|c: char| !c.is_ascii_whitespace());
        let Some((_, text)) = start.and_then(|start| rest.split_at_checked(start)) else {
            break;
        };
        let at = line.len().saturating_sub(text.len());
        let end = text
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(text.len());
        let (text, behind) = text.split_at(end);
        words.push(Word { at, text });
        rest = behind;
    }
    words
}

/// Returns true for a letter, digit or dot of `-F +flags`, such as `d..1.`.
fn is_flag(byte: u8) -> bool {
    b".#+dDnNuUhHsSlLbBp".contains(&byte) || byte.is_ascii_digit()
}

/// Parses `[cpu]`.
fn cpu_of(word: &str) -> Option<u32> {
    word.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Parses `pid/tid`, or the only id.
fn ids_of(word: &str) -> Option<(u32, u32)> {
    let (pid, tid) = word.split_once('/').unwrap_or((word, word));
    // Threads that have exited have -1.
    let id = |text: &str| match text {
        "-1" => Some(u32::MAX),
        text => text.parse().ok(),
    };
    Some((id(pid)?, id(tid)?))
}

/// Parses a time with a colon after it.
fn time(word: &str) -> Option<u64> {
    nanoseconds(word.strip_suffix(':')?)
}

/// Parses seconds with a fraction, and returns nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let missing = 9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let fraction = fraction
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.checked_pow(missing)?)?;
    let seconds = seconds.parse::<u64>().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_sample_has_many_forms() {
        let head = Head {
            comm: "prog",
            pid: 12,
            tid: 12,
            cpu: 0,
            time: Some(5_123_456_000),
            period: None,
            event: Some("cycles:u"),
            rest: "",
        };
        for (line, expected) in [
            ("prog    12     5.123456: cycles:u: ", head),
            (
                "prog 12 [003] 5.123456:  250 cycles:u: ",
                Head {
                    cpu: 3,
                    period: Some(250),
                    ..head
                },
            ),
            (
                "a b 7 12/13 [000] 5.123456789: sched:sched_switch: prev=1",
                Head {
                    comm: "a b 7",
                    tid: 13,
                    time: Some(5_123_456_789),
                    event: Some("sched:sched_switch"),
                    rest: "prev=1",
                    ..head
                },
            ),
            (
                "   swapper     0 [000] d..1. 5.123456: cycles:u:  ffff f ([k])",
                Head {
                    comm: "swapper",
                    pid: 0,
                    tid: 0,
                    rest: "ffff f ([k])",
                    ..head
                },
            ),
            (
                "w 3.5: 12 5.123456: 99 ",
                Head {
                    comm: "w 3.5:",
                    period: Some(99),
                    event: None,
                    ..head
                },
            ),
            (
                "prog 12/12 5.123456: ",
                Head {
                    event: None,
                    ..head
                },
            ),
            (
                "prog 12 5.123456: 250 4005 f (/bin/a)",
                Head {
                    period: Some(250),
                    event: None,
                    rest: "4005 f (/bin/a)",
                    ..head
                },
            ),
            (
                ":-1 -1 5.123456: cycles:u: ",
                Head {
                    comm: ":-1",
                    pid: u32::MAX,
                    tid: u32::MAX,
                    ..head
                },
            ),
        ] {
            assert_eq!(Head::parse(line), Some(expected), "{line}");
        }
        for line in [
            "",
            "\t 4005 main (/bin/a)",
            "prog 5.123456: cycles: ",
            "prog 12 5.1: x",
            "12 5.123456: cycles:",
        ] {
            assert_eq!(Head::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_text_without_times_has_events_behind_its_tasks() {
        let head = Head {
            comm: "java",
            pid: 12,
            tid: 13,
            cpu: 0,
            time: None,
            period: None,
            event: Some("cpu-clock"),
            rest: "",
        };
        for (line, expected) in [
            ("java 12/13 cpu-clock: ", head),
            (
                "java 13 [002] 250 cycles:u: 4005 f (/bin/a)",
                Head {
                    pid: 13,
                    cpu: 2,
                    period: Some(250),
                    event: Some("cycles:u"),
                    rest: "4005 f (/bin/a)",
                    ..head
                },
            ),
            (
                "pool 7 12/13 cpu-clock:",
                Head {
                    comm: "pool 7",
                    ..head
                },
            ),
        ] {
            assert_eq!(Head::parse_without_time(line), Some(expected), "{line}");
        }
        for line in [
            "",
            "12 cycles:",
            "java 12",
            "prog 12 5.1: x",
            "\t 4005 main (/bin/a)",
        ] {
            assert_eq!(Head::parse_without_time(line), None, "{line}");
        }
    }
}
