//! Rewrites the lines of a stack trace with the names of the source.

use super::{Mapping, ObfuscatedFrame, Position};
use crate::Frame;

/// ART prints this instead of the source file if the position is a dex pc.
const NO_FILE: &str = "Unknown Source";

/// A line of the form `PREFIXat CLASS.METHOD(FILE:LINE)SUFFIX`.
struct TraceLine<'t> {
    prefix: &'t str,
    class: &'t str,
    method: &'t str,
    file: &'t str,
    line: Option<u32>,
    suffix: &'t str,
}

impl Mapping {
    /// Returns the lines with the names of the source for one line of a Java stack trace, or of a log that contains stack traces.
    ///
    /// A frame becomes one line for each method that was inlined there, and one for the method itself. The candidates for an ambiguous
    /// frame follow each other. Each but the first is marked `<OR>`, as in R8's retrace. For an exception, the class is renamed. Every
    /// other line stays unchanged.
    #[must_use]
    pub fn retrace(&self, line: &str) -> Vec<String> {
        let retraced = match TraceLine::read(line) {
            Some(frame) => self.retrace_frame(&frame),
            None => self.retrace_exception(line).into_iter().collect(),
        };
        match retraced.is_empty() {
            true => vec![line.to_owned()],
            false => retraced,
        }
    }

    fn retrace_frame(&self, line: &TraceLine<'_>) -> Vec<String> {
        let position = line.line.map(|number| match line.file {
            NO_FILE if self.is_r8 => Position::Pc(number),
            _ => Position::Line(number),
        });
        let alternatives = self.alternatives_of(&ObfuscatedFrame {
            class: line.class,
            method: line.method,
            position,
            params: None,
            file: Some(line.file),
        });
        let mut lines = Vec::new();
        for (index, frames) in alternatives.iter().enumerate() {
            for (at, frame) in frames.iter().enumerate() {
                let mark = if index > 0 && at == 0 { "<OR> " } else { "" };
                let place = self.place(frame, line.file);
                let TraceLine { prefix, suffix, .. } = line;
                lines.push(format!(
                    "{prefix}{mark}at {}({place}){suffix}",
                    frame.function
                ));
            }
        }
        lines
    }

    /// The text in the parentheses of a frame.
    fn place(&self, frame: &Frame<'_>, file: &str) -> String {
        match &frame.location {
            Some(location) => format!("{}:{}", location.file, location.line),
            None => {
                let class = frame
                    .function
                    .rsplit_once('.')
                    .map_or("", |(class, _)| class);
                self.source_file(class, Some(file)).into_owned()
            }
        }
    }

    /// Rewrites a line with an exception's class at its start, or after `Caused by: `, `Exception in thread "main" ` or the like.
    fn retrace_exception(&self, line: &str) -> Option<String> {
        let head = line.split(": ").next().unwrap_or(line);
        let after = match line.strip_prefix(head) {
            Some(after) if head.trim().ends_with(" by") || head.trim() == "Suppressed" => {
                after.strip_prefix(": ")?
            }
            _ => line,
        };
        let word = after.split(": ").next()?.trim_end_matches(':');
        let word = word.trim().rsplit(' ').next()?;
        let class = self.class(word)?;
        let start = (word.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
        let (before, rest) = line.split_at_checked(start)?;
        Some(format!("{before}{class}{}", rest.strip_prefix(word)?))
    }
}

impl<'t> TraceLine<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let (start, _) = line.match_indices("at ").find(|(start, _)| {
            let before = line.get(..*start).unwrap_or_default();
            before.is_empty() || before.ends_with(char::is_whitespace)
        })?;
        let (prefix, rest) = line.split_at_checked(start)?;
        let (path, rest) = rest.strip_prefix("at ")?.split_once('(')?;
        let (place, suffix) = rest.split_once(')')?;
        // A module, or a class loader and a module, may precede the class.
        let path = path.rsplit('/').next().unwrap_or(path).trim();
        let (class, method) = path.rsplit_once('.')?;
        let numbered = place.rsplit_once(':');
        let numbered = numbered.and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line) = numbered.map_or((place, None), |(file, line)| (file, Some(line)));
        Some(Self {
            prefix,
            class,
            method,
            file,
            line,
            suffix,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPING: &str = "# compiler: R8\n\
        org.example.Lost -> a.x:\n\
        org.example.Main -> a.a:\n\
        \x20   1:1:int org.example.MathKt.twice(int):7:7 -> b\n\
        \x20   1:1:void run():12 -> b\n\
        \x20   void one() -> c\n\
        \x20   void two(int) -> c\n\
        \x20   0:9:void far():30:30 -> d\n";

    fn retraced(line: &str) -> Vec<String> {
        Mapping::parse(MAPPING.into()).unwrap().retrace(line)
    }

    #[test]
    fn a_frame_becomes_those_that_were_inlined() {
        assert_eq!(
            retraced("E/App: \tat a.a.b(SourceFile:1) ~[app]"),
            [
                "E/App: \tat org.example.MathKt.twice(Math.kt:7) ~[app]",
                "E/App: \tat org.example.Main.run(Main.java:12) ~[app]"
            ]
        );
        assert_eq!(
            retraced("\tat a.a.c(SourceFile)"),
            [
                "\tat org.example.Main.one(Main.java)",
                "\t<OR> at org.example.Main.two(Main.java)"
            ]
        );
        // A dex pc.
        assert_eq!(
            retraced("  at a.a.d(Unknown Source:4)"),
            ["  at org.example.Main.far(Main.java:30)"]
        );
    }

    #[test]
    fn exceptions_are_renamed_and_everything_else_stays() {
        for (line, expected) in [
            ("a.x: what: a.x", "org.example.Lost: what: a.x"),
            ("a.x", "org.example.Lost"),
            ("Caused by: a.x: gone", "Caused by: org.example.Lost: gone"),
            (
                "\tSuppressed: a.x: gone",
                "\tSuppressed: org.example.Lost: gone",
            ),
            (
                "Exception in thread \"main\" a.x: gone",
                "Exception in thread \"main\" org.example.Lost: gone",
            ),
            ("\t... 12 more", "\t... 12 more"),
            ("at last (nothing)", "at last (nothing)"),
            ("\tat b.b.b(SourceFile:1)", "\tat b.b.b(SourceFile:1)"),
            ("at", "at"),
            ("", ""),
        ] {
            assert_eq!(retraced(line), [expected]);
        }
    }
}
