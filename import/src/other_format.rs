//! Recognizes formats that are not imported.

/// The beginnings of files in other formats, and descriptions of the formats.
const STARTS: [(&str, &str); 8] = [
    (
        "SIMPLEPERF",
        "a report of simpleperf (report-sample --protobuf), as Android Studio exports it: the perf.data that it was made of can be imported",
    ),
    ("*version", "a method trace of Android"),
    ("SLOW", "a method trace of Android"),
    ("# callgrind format", "a profile of callgrind"),
    ("JAVA PROFILE 1.", "a heap dump of Java"),
    ("Analysis of sampling", "a sample of macOS"),
    ("\u{7f}ELF", "an ELF file"),
    ("--- Heap", "a listing of Xcode's Instruments"),
];

/// Parts of the first lines of texts in other formats, and descriptions of the formats.
const LINES: [(&str, &str); 5] = [
    ("creator: callgrind", "a profile of callgrind"),
    ("Time and Allocation Profiling Report", "a profile of GHC"),
    ("Call graph:", "a sample of macOS"),
    (
        "\"$schema\":\"https://www.speedscope.app",
        "a profile of speedscope",
    ),
    ("\"traceEvents\"", "a trace of Chrome"),
];

/// Returns the description of a file with this beginning, if it has a known format that is not imported.
pub(crate) fn of_start(start: &[u8]) -> Option<&'static str> {
    let begins = STARTS
        .iter()
        .find(|(text, _)| start.starts_with(text.as_bytes()));
    if let Some((_, what)) = begins {
        return Some(what);
    }
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lines = || text.lines().take(32);
    let has = |sought: &str| lines().any(|line| line.contains(sought));
    if let Some((_, what)) = LINES.iter().find(|(sought, _)| has(sought)) {
        return Some(what);
    }
    let begins = |sought: &str| lines().any(|line| line.starts_with(sought));
    if begins("events:") && (begins("fn=") || begins("fl=")) {
        return Some("a profile in the format of callgrind");
    }
    // Folded stacks may begin with a thread's name in brackets.
    let list = text.strip_prefix('[').map(str::trim_start);
    let is_list = list.is_some_and(|list| list.starts_with(['{', '[', '"', ']']));
    if text.starts_with('{') || is_list {
        let is_firefox = has("\"meta\"") && text.contains("\"threads\"");
        return Some(match is_firefox {
            true => "a profile of Firefox",
            false => "JSON",
        });
    }
    // DTrace's ustack(): indented frames of MODULE`FUNCTION+0xOFFSET, then an indented number on its own line.
    let is_ustack = lines().any(|line| line.starts_with(' ') && line.contains('`'));
    is_ustack.then_some("the output of DTrace: stackcollapse.pl makes folded stacks of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_what_they_begin_with() {
        for (start, what) in [
            ("SIMPLEPERF\u{1}\0", Some("simpleperf")),
            (
                "version: 1\ncreator: callgrind-3.19\nevents: Ir\n",
                Some("callgrind"),
            ),
            ("# callgrind format\nevents: Ir\n", Some("callgrind")),
            (
                "events: Cycles\n\nfl=a.c\nfn=main\n16 20\n",
                Some("callgrind"),
            ),
            ("{\"meta\":{},\"threads\":[]}", Some("Firefox")),
            ("{\n  \"a\": 1\n}\n", Some("JSON")),
            (
                "\n   libc.so.1`read+0x7\n   prog`main+0x3\n     12\n",
                Some("DTrace"),
            ),
            ("main;f 3\n", None),
            ("[main tid=12];a;b 3\n", None),
            ("[\n  {\"name\"", Some("JSON")),
        ] {
            let found = of_start(start.as_bytes());
            assert_eq!(found.is_some(), what.is_some(), "{start}");
            assert!(
                found.unwrap_or("").contains(what.unwrap_or("")),
                "{start}: {found:?}"
            );
        }
    }
}
