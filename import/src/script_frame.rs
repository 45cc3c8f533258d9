//! Parses a frame's line of `perf script`.
//!
//! ```text
//! ADDRESS [FUNCTION[+0xOFFSET]] [(FILE)]
//! ```
//!
//! Functions and files may contain blanks and parentheses. The file begins at the parenthesis that the last one closes.

/// A frame, or a function that is inlined into the frame after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) address: u64,
    /// Empty if it has no name.
    pub(crate) function: &'a str,
    /// None if the text has no files.
    pub(crate) file: Option<&'a str>,
}

impl<'a> Frame<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (address, rest) = text
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((text, ""));
        let address = u64::from_str_radix(address, 16).ok()?;
        let (function, file) = split_file(rest.trim_start());
        let function = function.trim();
        let function = match function.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
            _ => function,
        };
        Some(Self {
            address,
            function,
            file: file.map(|file| file.strip_suffix(" (deleted)").unwrap_or(file)),
        })
    }
}

/// Splits a function and its file, which is in the last parentheses, if these are a separate word.
fn split_file(text: &str) -> (&str, Option<&str>) {
    let file = text.strip_suffix(')').and_then(|inner| {
        let at = opening(inner)?;
        let (function, file) = inner.split_at_checked(at)?;
        let is_word = function.is_empty() || function.ends_with(' ');
        is_word.then_some((function, file.strip_prefix('(')?))
    });
    match file {
        Some((function, file)) => (function, Some(file)),
        None => (text, None),
    }
}

/// Finds the parenthesis that is closed after this text. Parentheses are balanced in a function's name, but not necessarily in a path: then
/// it is the first one before a path.
fn opening(text: &str) -> Option<usize> {
    let paired = paired_opening(text).filter(|at| {
        let function = text.get(..*at).unwrap_or_default();
        let count = |sought| function.matches(sought).count();
        count('(') == count(')') || !function.contains(" (/")
    });
    let path = || match text.starts_with("(/") {
        true => Some(0),
        false => text.find(" (/").map(|at| at.saturating_add(1)),
    };
    paired.or_else(path).or_else(|| text.rfind('('))
}

fn paired_opening(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth = depth.saturating_add(1),
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_an_address_a_function_and_a_file() {
        for (line, address, function, file) in [
            ("\t 4005 main+0x1f (/bin/a)", 0x4005, "main", Some("/bin/a")),
            (
                " 4005 std::f(int, (anonymous namespace)::g)+0x2 (/bin/a b)",
                0x4005,
                "std::f(int, (anonymous namespace)::g)",
                Some("/bin/a b"),
            ),
            (
                "4005 [unknown] (/bin/a (deleted))",
                0x4005,
                "[unknown]",
                Some("/bin/a"),
            ),
            (
                "ffffffff81000000 do_idle ([kernel.kallsyms])",
                0xffff_ffff_8100_0000,
                "do_idle",
                Some("[kernel.kallsyms]"),
            ),
            ("4005 (/bin/a)", 0x4005, "", Some("/bin/a")),
            ("4005 f (inlined)", 0x4005, "f", Some("inlined")),
            (
                "4005 f+0x2 (/opt/My App (x86)/bin)",
                0x4005,
                "f",
                Some("/opt/My App (x86)/bin"),
            ),
            (
                "4005 (/opt/My App (x86)/bin (deleted))",
                0x4005,
                "",
                Some("/opt/My App (x86)/bin"),
            ),
            (
                "4005 f(int) (/opt/a :) b)",
                0x4005,
                "f(int)",
                Some("/opt/a :) b"),
            ),
            (
                "4005 f(int) ([anon:a (b)])",
                0x4005,
                "f(int)",
                Some("[anon:a (b)]"),
            ),
            ("4005 f (a b) (libx.so)", 0x4005, "f (a b)", Some("libx.so")),
            (
                "4005 f(int) (/opt/a (b/prog)",
                0x4005,
                "f(int)",
                Some("/opt/a (b/prog"),
            ),
            // A name that begins with a parenthesis, with and without a file.
            (
                "4005 (*Conn).Close+0x1 (/bin/a)",
                0x4005,
                "(*Conn).Close",
                Some("/bin/a"),
            ),
            (
                "4005 (anonymous namespace)::Q::run() const (/bin/a)",
                0x4005,
                "(anonymous namespace)::Q::run() const",
                Some("/bin/a"),
            ),
            (
                "4005 (anonymous namespace)::f(int)",
                0x4005,
                "(anonymous namespace)::f(int)",
                None,
            ),
            ("4005 main", 0x4005, "main", None),
            ("4005", 0x4005, "", None),
        ] {
            let expected = Frame {
                address,
                function,
                file,
            };
            assert_eq!(Frame::parse(line), Some(expected), "{line}");
        }
        for line in ["", "  main.c:12", "zzzz main (/bin/a)"] {
            assert_eq!(Frame::parse(line), None, "{line}");
        }
    }
}
