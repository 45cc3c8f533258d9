//! Parses the text of a probe: `uprobe:/lib/libc.so.6:malloc`, `kretprobe:vfs_read`.
//!
//! The syntax is bpftrace's. perf names a probe first (`perf probe`); [`super::tracefs`] looks up such names.

/// The text of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeText {
    /// True for a return probe.
    pub at_return: bool,
    /// The probed place.
    pub place: PlaceText,
}

/// A place in code, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceText {
    /// In a file: `/lib/libc.so.6:malloc`.
    File {
        /// Its absolute path.
        path: String,
        /// The place in the file.
        at: CodeText,
    },
    /// In the kernel: `FUNCTION[+OFFSET]`.
    Kernel {
        /// The function.
        function: String,
        /// Bytes from its start.
        offset: u64,
    },
}

/// A place in a file's code, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeText {
    /// `0x98930`: an address as `nm` prints it.
    Address(u64),
    /// `FUNCTION[+OFFSET]`.
    Function {
        /// The function.
        name: String,
        /// Bytes from its start.
        offset: u64,
    },
}

/// Returns true if the text of an event starts like a probe.
pub fn begins_probe(text: &str) -> bool {
    kind_of(text).is_some()
}

/// Returns true if the text of a probe continues after a comma: C++ names have commas between arguments.
pub fn is_incomplete(text: &str) -> bool {
    let count = |wanted: char| text.chars().filter(|letter| *letter == wanted).count();
    count('(') > count(')') || count('<') > count('>')
}

/// Splits off the kind. Returns whether the place is in a file, whether it is a return probe, and the remaining text.
fn kind_of(text: &str) -> Option<(bool, bool, &str)> {
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "uprobe" => Some((true, false, rest)),
        "uretprobe" => Some((true, true, rest)),
        "kprobe" => Some((false, false, rest)),
        "kretprobe" => Some((false, true, rest)),
        _ => None,
    }
}

impl ProbeText {
    /// Parses the text of an event. Returns None if it is not a probe.
    pub fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        let Some((of_file, at_return, rest)) = kind_of(text) else {
            return Ok(None);
        };
        let place = if of_file {
            let (path, at) = rest.split_once(':').ok_or("a uprobe is PATH:FUNCTION")?;
            if !path.starts_with('/') {
                return Err("the path of a uprobe's file begins with '/'");
            }
            PlaceText::File {
                path: path.to_owned(),
                at: code_text(at)?,
            }
        } else {
            let (function, offset) = function_and_offset(rest);
            let known = |letter: char| letter.is_ascii_alphanumeric() || "_.$".contains(letter);
            if function.is_empty() || !function.chars().all(known) {
                return Err("a kprobe is FUNCTION[+OFFSET]");
            }
            PlaceText::Kernel {
                function: function.to_owned(),
                offset,
            }
        };
        let offset = match &place {
            PlaceText::Kernel { offset, .. } => *offset,
            PlaceText::File { at, .. } => match at {
                CodeText::Function { offset, .. } => *offset,
                CodeText::Address(_) => 0,
            },
        };
        if at_return && offset != 0 {
            return Err("a function returns as a whole, not at an offset");
        }
        Ok(Some(Self { at_return, place }))
    }
}

fn code_text(text: &str) -> Result<CodeText, &'static str> {
    if text.starts_with("0x") {
        let address = number(text).ok_or("an address is hexadecimal: 0x98930")?;
        return Ok(CodeText::Address(address));
    }
    match function_and_offset(text) {
        ("", _) => Err("a uprobe is PATH:FUNCTION"),
        (name, offset) => Ok(CodeText::Function {
            name: name.to_owned(),
            offset,
        }),
    }
}

/// Splits `FUNCTION[+OFFSET]`. A C++ operator's name may itself contain a '+'.
fn function_and_offset(text: &str) -> (&str, u64) {
    let split = text.rsplit_once('+');
    let split = split.and_then(|(name, offset)| Some((name, number(offset)?)));
    split.unwrap_or((text, 0))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_has_a_place_in_the_code_of_a_file_or_of_the_kernel() {
        let function = |name: &str, offset| CodeText::Function {
            name: name.to_owned(),
            offset,
        };
        for (text, at_return, path, at) in [
            ("uprobe:/a/b.so:f", false, "/a/b.so", function("f", 0)),
            ("uprobe:/b:f+0x10", false, "/b", function("f", 16)),
            ("uprobe:/b:0x1234", false, "/b", CodeText::Address(0x1234)),
            (
                "uretprobe:/b:a::operator+",
                true,
                "/b",
                function("a::operator+", 0),
            ),
        ] {
            let place = PlaceText::File {
                path: path.to_owned(),
                at,
            };
            let expected = ProbeText { at_return, place };
            assert_eq!(ProbeText::parse(text), Ok(Some(expected)), "{text}");
        }
        let kernel = ProbeText::parse("kprobe:vfs_read+4").unwrap().unwrap();
        let place = PlaceText::Kernel {
            function: "vfs_read".to_owned(),
            offset: 4,
        };
        assert_eq!(
            kernel,
            ProbeText {
                at_return: false,
                place
            }
        );
        assert_eq!(ProbeText::parse("cycles:u"), Ok(None));
    }

    #[test]
    fn an_invalid_place_is_an_error() {
        for (text, what) in [
            ("uprobe:/bin/true", "PATH:FUNCTION"),
            ("uprobe:/bin/true:", "PATH:FUNCTION"),
            ("uprobe:true:main", "begins with '/'"),
            ("uprobe:/bin/true:0xyz", "hexadecimal"),
            ("kprobe:", "FUNCTION[+OFFSET]"),
            ("kprobe:vfs read", "FUNCTION[+OFFSET]"),
            ("kretprobe:vfs_read+4", "as a whole"),
            ("uretprobe:/bin/true:main+4", "as a whole"),
        ] {
            let error = ProbeText::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
