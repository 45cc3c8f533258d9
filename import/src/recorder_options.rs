//! Finds the sampling rate in the command line of `perf record`.

use varid_model::Rate;

/// Options of perf whose value may be the next word (`perf record -h`). Other options have no value, or have it after `=`.
const SHORT_WITH_VALUE: &[u8] = b"cCDeFGjkmoprtu";
const LONG_WITH_VALUE: [&str; 29] = [
    "affinity",
    "branch-filter",
    "call-graph",
    "cgroup",
    "clang-opt",
    "clang-path",
    "clockid",
    "control",
    "count",
    "cpu",
    "delay",
    "event",
    "filter",
    "freq",
    "max-size",
    "mmap-flush",
    "mmap-pages",
    "num-thread-synthesize",
    "off-cpu-thresh",
    "output",
    "pid",
    "proc-map-timeout",
    "realtime",
    "setup-filter",
    "switch-max-files",
    "switch-output-event",
    "synth",
    "tid",
    "uid",
];

/// Parses `perf record -F 99` or `-c 10000`, also with long names and without blanks. The first word that is not an option begins the
/// profiled program and its own options.
pub(crate) fn rate_of_command(command: &str) -> Option<Rate> {
    let mut words = command.split_whitespace();
    words.find(|word| ["record", "rec"].contains(word))?;
    while let Some(option) = words.next().and_then(RecorderOption::of) {
        let value = match option.value {
            Value::None => continue,
            Value::Here(value) => value,
            Value::Next => words.next()?,
        };
        let rate = match option.name {
            "F" | "freq" => Rate::Frequency,
            "c" | "count" => Rate::Period,
            _ => continue,
        };
        if let Some(number) = value.parse().ok().filter(|number| *number > 0) {
            return Some(rate(number));
        }
    }
    None
}

/// A word of options, reduced to its last option, without dashes.
struct RecorderOption<'a> {
    name: &'a str,
    value: Value<'a>,
}

enum Value<'a> {
    None,
    Here(&'a str),
    /// The value is the next word.
    Next,
}

impl<'a> RecorderOption<'a> {
    /// None if the word is not an option, or ends the options.
    fn of(word: &'a str) -> Option<Self> {
        if let Some(long) = word.strip_prefix("--") {
            if let Some((name, value)) = long.split_once('=') {
                let value = Value::Here(value);
                return Some(Self { name, value });
            }
            let name = Some(long).filter(|name| !name.is_empty())?;
            let value = match LONG_WITH_VALUE.contains(&name) {
                true => Value::Next,
                false => Value::None,
            };
            return Some(Self { name, value });
        }
        // Short options may be combined, the last one with a value: `-agF99`.
        let short = word.strip_prefix('-').filter(|short| !short.is_empty())?;
        let with_value = short
            .bytes()
            .position(|option| SHORT_WITH_VALUE.contains(&option));
        let Some((name, behind)) = with_value.and_then(|at| {
            let (name, value) = short.get(at..)?.split_at_checked(1)?;
            Some((name, value))
        }) else {
            let value = Value::None;
            return Some(Self { name: short, value });
        };
        let value = match behind {
            "" => Value::Next,
            value => Value::Here(value),
        };
        Some(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_profiled_program_are_not_the_recorder_s() {
        for (command, expected) in [
            ("/usr/bin/perf record -F 99 -a", Some(Rate::Frequency(99))),
            ("perf record -c10000 ./a", Some(Rate::Period(10_000))),
            ("perf record --freq=50 ./a", Some(Rate::Frequency(50))),
            (
                "perf record --call-graph dwarf --count 7 a",
                Some(Rate::Period(7)),
            ),
            (
                "perf record -e cycles:u -agF99 ./a -c 5",
                Some(Rate::Frequency(99)),
            ),
            ("perf record -F max ./a", None),
            ("perf record -c 0 ./a", None),
            ("perf record -- ./a -F 9", None),
            ("perf record ./a -F 9", None),
            ("perf record -g sort -c 5", None),
            ("perf record -o -F ./a -c 5", None),
            ("perf record --all-cpus gzip --count 5", None),
            ("perf record -F", None),
            ("perf -F 9", None),
        ] {
            assert_eq!(rate_of_command(command), expected, "{command}");
        }
    }
}
