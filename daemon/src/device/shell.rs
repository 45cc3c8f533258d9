//! Quotes commands for the device's shell, and reads their exit status from its output.
//!
//! adb passes one line to the shell. Devices before Android 7 have one stream for output and errors, end lines by CR LF and report
//! no exit status. So scripts print the status themselves, after a unique mark.

use std::time::{SystemTime, UNIX_EPOCH};

/// Quotes an argument for the shell.
pub fn quote(argument: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,:@%=".contains(char);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

/// Quotes arguments, and joins them to one line.
pub fn quoted<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = arguments.into_iter().map(quote).collect();
    quoted.join(" ")
}

/// Returns a token that no other command prints, neither by chance nor at the same time.
pub fn unique() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = now.map_or(0, |since| since.as_nanos());
    format!("varid-{}-{moment:x}", std::process::id())
}

/// The mark that precedes a script's exit status in its output.
#[derive(Debug, Clone)]
pub struct Mark(String);

impl Mark {
    /// Makes a mark that no output contains by chance.
    pub fn new() -> Self {
        Self(unique())
    }

    /// Returns the script with its exit status at the end of its output.
    pub fn ended(&self, script: &str) -> String {
        format!("({script}\n); s=$?; echo; echo {} $s", self.0)
    }

    /// Returns a script in a process of its own, which first prints a line with that process's id.
    pub fn announced(&self, script: &str) -> String {
        let script = format!("echo {} $$; {script}", self.0);
        format!("sh -c {}", quote(&script))
    }

    /// Returns the process id in a first line.
    pub fn pid(&self, line: &str) -> Option<u32> {
        let number = line.trim_end().strip_prefix(&self.0)?;
        number.strip_prefix(' ')?.parse().ok()
    }
}

/// Maximum size of a status including its line end, in bytes.
const MAX_STATUS: usize = 16;

/// Separates the output from the mark and the status at its end. Bytes that are certain to be output are returned at once.
#[derive(Debug)]
pub struct Stream {
    end: Vec<u8>,
    held: Vec<u8>,
    ended: bool,
}

impl Stream {
    /// Reads output that ends with `mark`.
    pub fn new(mark: &Mark) -> Self {
        Self {
            end: format!("\n{} ", mark.0).into_bytes(),
            held: Vec::new(),
            ended: false,
        }
    }

    /// Takes the next bytes. Returns those that are output.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.ended {
            // The status is a number.
            let most = self.end.len().saturating_add(MAX_STATUS);
            let room = most.saturating_sub(self.held.len());
            self.held.extend(bytes.iter().take(room));
            return Vec::new();
        }
        self.held.extend_from_slice(bytes);
        // The end may start with CR, on devices that end lines with CR LF.
        let end = &self.end;
        if let Some(at) = find(&self.held, end) {
            self.ended = true;
            let status = self.held.split_off(at);
            let output = std::mem::replace(&mut self.held, status);
            return without_cr(output);
        }
        let kept = (1..=end.len().saturating_add(1))
            .rev()
            .find(|length| {
                let at = self.held.len().checked_sub(*length);
                let tail = at.and_then(|at| self.held.get(at..)).unwrap_or_default();
                let tail = tail.strip_prefix(b"\r").unwrap_or(tail);
                at.is_some() && end.starts_with(tail)
            })
            .unwrap_or(0);
        let rest = self.held.split_off(self.held.len().saturating_sub(kept));
        std::mem::replace(&mut self.held, rest)
    }

    /// Returns the exit status, if the end has completely arrived.
    pub fn status(&self) -> Option<i32> {
        let said = self.held.get(self.end.len()..).filter(|_| self.ended)?;
        let said = std::str::from_utf8(said).ok()?;
        said.split_once('\n')?.0.trim_end().parse().ok()
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

fn without_cr(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&b'\r') {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn sh(script: &str) -> Vec<u8> {
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        output.stdout
    }

    fn through(script: &str) -> (Vec<u8>, Option<i32>) {
        let mark = Mark::new();
        let mut stream = Stream::new(&mark);
        let output = stream.take(&sh(&mark.ended(script)));
        (output, stream.status())
    }

    #[test]
    fn a_script_ends_with_its_status_however_it_ends() {
        assert_eq!(through("echo a; echo b"), (b"a\nb\n".to_vec(), Some(0)));
        assert_eq!(through("printf a; exit 7"), (b"a".to_vec(), Some(7)));
        assert_eq!(through("false"), (vec![], Some(1)));
        assert_eq!(through("kill -9 $$").1, None);
    }

    #[test]
    fn a_command_is_announced_by_its_own_number() {
        let mark = Mark::new();
        let said = String::from_utf8(sh(&mark.announced("exec sh -c 'echo $$'"))).unwrap();
        let (first, second) = said.trim_end().split_once('\n').unwrap();
        assert_eq!(mark.pid(first), Some(second.parse().unwrap()));
        assert_eq!(mark.pid("varid-0 5"), None);
    }

    #[test]
    fn old_devices_lines_end_by_cr_lf() {
        let mark = Mark(String::from("M"));
        let mut stream = Stream::new(&mark);
        assert_eq!(stream.take(b"x\r\n\r\nM 3\r\n"), b"x\r\n");
        assert_eq!(stream.status(), Some(3));
        assert_eq!(mark.pid("M 17\r"), Some(17));
    }

    #[test]
    fn a_status_that_was_cut_off_is_none() {
        let mark = Mark(String::from("M"));
        for cut in ["x", "x\n", "x\nM", "x\nM ", "x\nM 1"] {
            let mut stream = Stream::new(&mark);
            stream.take(cut.as_bytes());
            assert_eq!(stream.status(), None, "{cut:?}");
        }
    }

    proptest! {
        #[test]
        fn words_survive_the_shell(words in prop::collection::vec("[^\0]{0,12}", 1..5)) {
            let line = quoted(words.iter().map(String::as_str));
            let mut expected = words.join("\0").into_bytes();
            expected.push(0);
            prop_assert_eq!(sh(&format!("printf '%s\\0' {line}")), expected);
        }

        #[test]
        fn output_is_whole_however_it_is_cut(
            output in "[M1\r\n a]{0,40}", cuts in prop::collection::vec(1..6usize, 0..40)
        ) {
            let mark = Mark(String::from("MARK"));
            let mut stream = Stream::new(&mark);
            let whole = format!("{output}\nMARK 4\n");
            let mut rest = whole.as_bytes();
            let mut seen = Vec::new();
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                seen.extend(stream.take(now));
                rest = later;
            }
            seen.extend(stream.take(rest));
            prop_assert_eq!(String::from_utf8(seen).unwrap(), output.strip_suffix('\r').unwrap_or(&output));
            prop_assert_eq!(stream.status(), Some(4));
        }
    }
}
