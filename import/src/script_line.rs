//! What does a line of `perf script` say?

/// The first line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) comm: &'a str,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    pub(crate) time: u64,
    pub(crate) period: Option<u64>,
    pub(crate) event: &'a str,
    /// What follows: the frame of a sample without callchain, or what a tracepoint says.
    pub(crate) rest: &'a str,
}

/// Whether a line is the first of a sample.
pub(crate) fn is_head(line: &str) -> bool {
    Head::parse(line).is_some()
}

impl<'a> Head<'a> {
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let mut words = words(line);
        // The name may have blanks, and words that look like an id.
        let time_at = words.iter().position(|(_, word)| time(word).is_some())?;
        let time = time(words.get(time_at)?.1)?;
        let mut before = words.drain(..time_at).rev();
        let (mut at, mut word) = before.next()?;
        let mut cpu = 0;
        // The CPU and, with -F flags or +iflags, more words in brackets or of letters and dots.
        loop {
            if let Some(number) = word
                .strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
            {
                cpu = number.parse().ok()?;
            } else if ids(word).is_some() {
                break;
            } else if !word.bytes().all(is_flag) {
                return None;
            }
            (at, word) = before.next()?;
        }
        let (pid, tid) = ids(word)?;
        let comm = line.get(..at)?.trim();
        drop(before);
        let mut behind = words.into_iter().skip(1);
        let mut event = behind.next()?;
        let period = event.1.parse().ok();
        if period.is_some() {
            event = behind.next()?;
        }
        let (at, word) = event;
        let rest = line.get(at.checked_add(word.len())?..)?.trim();
        Some(Self {
            comm: Some(comm).filter(|comm| !comm.is_empty())?,
            pid,
            tid,
            cpu,
            time,
            period,
            event: word.strip_suffix(':').filter(|event| !event.is_empty())?,
            rest,
        })
    }
}

/// The words of a line with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    // What follows the event is never needed as words; a name with more blanks is none.
    while words.len() < 64 {
        let start = rest.find(|c: char| !c.is_ascii_whitespace());
        let Some((_, word)) = start.and_then(|start| rest.split_at_checked(start)) else {
            break;
        };
        let end = word
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let left = word.len().saturating_add(behind.len());
        words.push((line.len().saturating_sub(left), word));
        rest = behind;
    }
    words
}

/// A letter, digit or dot of `-F +flags`, such as `d..1.`.
fn is_flag(byte: u8) -> bool {
    b".#+dDnNuUhHsSlLbBp".contains(&byte) || byte.is_ascii_digit()
}

/// `pid`, `pid/tid`, or the only id that there is.
fn ids(word: &str) -> Option<(u32, u32)> {
    let (pid, tid) = word.split_once('/').unwrap_or((word, word));
    // Tasks that are gone have -1.
    let id = |text: &str| match text {
        "-1" => Some(u32::MAX),
        text => text.parse().ok(),
    };
    Some((id(pid)?, id(tid)?))
}

/// Seconds with a fraction, and a colon, in nanoseconds.
fn time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
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

/// A frame: its address, its function and its file.
pub(crate) fn frame(line: &str) -> Option<(u64, &str, &str)> {
    let line = line.trim();
    let (address, rest) = line.split_once(|c: char| c.is_ascii_whitespace())?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_start();
    let inner = rest.strip_suffix(')')?;
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    let (function, image) = split_image(inner)?;
    let function = match function.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => function,
    };
    Some((address, function.trim(), image))
}

/// A frame's function and its file, whose closing parenthesis is cut off. Both may have blanks and parentheses, but in a function's name
/// neither a slash nor, before a file in brackets, a bracket follows an opening parenthesis.
fn split_image(frame: &str) -> Option<(&str, &str)> {
    // Without a function's name the file is all there is.
    if let Some(image) = frame.strip_prefix('(') {
        return Some(("", image));
    }
    let in_brackets = frame.ends_with(']').then(|| frame.find(" (["));
    let at = frame
        .find(" (/")
        .or(in_brackets.flatten())
        .or_else(|| frame.rfind(" ("))?;
    let (function, image) = frame.split_at_checked(at)?;
    Some((function, image.strip_prefix(" (")?))
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
            time: 5_123_456_000,
            period: None,
            event: "cycles:u",
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
                    time: 5_123_456_789,
                    event: "sched:sched_switch",
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
    fn a_frame_has_an_address_a_function_and_a_file() {
        for (line, expected) in [
            ("\t 4005 main+0x1f (/bin/a)", (0x4005, "main", "/bin/a")),
            (
                " 4005 std::f(int, (anonymous namespace)::g)+0x2 (/bin/a b)",
                (0x4005, "std::f(int, (anonymous namespace)::g)", "/bin/a b"),
            ),
            (
                "4005 [unknown] (/bin/a (deleted))",
                (0x4005, "[unknown]", "/bin/a"),
            ),
            (
                "ffffffff81000000 do_idle ([kernel.kallsyms])",
                (0xffff_ffff_8100_0000, "do_idle", "[kernel.kallsyms]"),
            ),
            ("4005 (/bin/a)", (0x4005, "", "/bin/a")),
            ("4005 f (inlined)", (0x4005, "f", "inlined")),
            (
                "4005 f+0x2 (/opt/My App (x86)/bin)",
                (0x4005, "f", "/opt/My App (x86)/bin"),
            ),
            (
                "4005 (/opt/My App (x86)/bin (deleted))",
                (0x4005, "", "/opt/My App (x86)/bin"),
            ),
            (
                "4005 f(int) ([anon:a (b)])",
                (0x4005, "f(int)", "[anon:a (b)]"),
            ),
            ("4005 f (a b) (libx.so)", (0x4005, "f (a b)", "libx.so")),
        ] {
            assert_eq!(frame(line), Some(expected), "{line}");
        }
        for line in ["", "  main.c:12", "zzzz main (/bin/a)", "4005 main"] {
            assert_eq!(frame(line), None, "{line}");
        }
    }
}
