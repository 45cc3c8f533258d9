//! Parses a line of a mapping file.

/// A range of the file's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range of `part`, a subslice of `text`.
    fn of(text: &str, part: &str) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        Self {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(start.saturating_add(part.len())).unwrap_or(u32::MAX),
        }
    }

    /// The text in this range.
    pub(super) fn get(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// The original lines of a range of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Original {
    /// The same lines.
    Same,
    /// This line: the call of the method that was inlined.
    Line(u32),
    /// First and last line.
    From(u32, u32),
}

/// A method, or one line range of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) obfuscated: Span,
    /// Its class, if it differs from the class that lists it, because it was inlined or moved.
    pub(super) class: Option<Span>,
    pub(super) name: Span,
    pub(super) params: Span,
    /// First and last line in the obfuscated class.
    pub(super) lines: Option<(u32, u32)>,
    pub(super) original: Original,
    /// The obfuscated descriptor, if it differs from the original one.
    pub(super) residual: Option<Span>,
    /// Whether the compiler synthesized it.
    pub(super) synthesized: bool,
}

/// The content of a line.
pub(super) enum Line {
    /// `original.Name -> a.b:`
    Class { original: Span, obfuscated: Span },
    /// `1:3:void method(int):10:12 -> a`
    Method(Member),
    /// A field (`int field -> a`), another comment, or an empty line.
    Other,
    /// R8's note on the class above it: its source file.
    SourceFile(Span),
    /// R8's note on the method above it: its obfuscated descriptor.
    Residual(Span),
    /// R8's note on the class or method above it: the compiler synthesized it.
    Synthesized,
    /// R8 wrote the file.
    R8,
}

impl Line {
    /// Reads `line`, a subslice of `text`. `None` if it is invalid.
    pub(super) fn read(text: &str, line: &str) -> Option<Self> {
        let trimmed = line.trim();
        if let Some(comment) = trimmed.strip_prefix('#') {
            return Some(Self::note(text, comment.trim()));
        }
        if trimmed.is_empty() {
            return Some(Self::Other);
        }
        let (left, right) = trimmed.split_once(" -> ")?;
        let (left, right) = (left.trim(), right.trim());
        if line.starts_with(char::is_whitespace) {
            let member = || Some(Self::Method(method(text, left, right)?));
            return if left.contains('(') {
                member()
            } else {
                Some(Self::Other)
            };
        }
        Some(Self::Class {
            original: Span::of(text, left),
            obfuscated: Span::of(text, right.strip_suffix(':')?),
        })
    }

    fn note(text: &str, comment: &str) -> Self {
        let span = |name| string(comment, name).map(|value| Span::of(text, value));
        if comment == "compiler: R8" {
            return Self::R8;
        }
        match string(comment, "id") {
            Some("sourceFile") => span("fileName").map_or(Self::Other, Self::SourceFile),
            Some("com.android.tools.r8.residualsignature") => {
                span("signature").map_or(Self::Other, Self::Residual)
            }
            Some("com.android.tools.r8.synthesized") => Self::Synthesized,
            Some("com.android.tools.r8.mapping") => Self::R8,
            _ => Self::Other,
        }
    }
}

/// The string value of `name` in a JSON object of one line. `None` if it has escapes.
fn string<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = object;
    loop {
        let (_, after) = rest.split_once('"')?;
        let (key, after) = after.split_once('"')?;
        let Some(value) = after.trim_start().strip_prefix(':') else {
            // It was a string value, not a name.
            rest = after;
            continue;
        };
        rest = value.trim_start();
        if key == name {
            let (value, _) = rest.strip_prefix('"')?.split_once('"')?;
            return (!value.contains('\\')).then_some(value);
        }
    }
}

/// Reads `1:3:void org.example.Other.method(int,long):10:12`. The line numbers are optional.
fn method(text: &str, left: &str, obfuscated: &str) -> Option<Member> {
    let (lines, rest) = leading_lines(left)?;
    let (result, rest) = rest.split_once(' ')?;
    if result.contains(':') {
        return None;
    }
    let (name, rest) = rest.split_once('(')?;
    let (params, after) = rest.split_once(')')?;
    let original = match after.strip_prefix(':').map(|lines| lines.split_once(':')) {
        None if after.is_empty() => Original::Same,
        None => return None,
        Some(None) => Original::Line(after.strip_prefix(':')?.parse().ok()?),
        Some(Some((first, last))) => Original::From(first.parse().ok()?, last.parse().ok()?),
    };
    let (class, name) = match name.rsplit_once('.') {
        Some((class, name)) => (Some(Span::of(text, class)), name),
        None => (None, name),
    };
    Some(Member {
        obfuscated: Span::of(text, obfuscated),
        class,
        name: Span::of(text, name),
        params: Span::of(text, params),
        lines,
        original,
        residual: None,
        synthesized: false,
    })
}

type Lines = Option<(u32, u32)>;

/// The optional range of lines in front of a method, and the rest.
fn leading_lines(left: &str) -> Option<(Lines, &str)> {
    if !left.starts_with(|first: char| first.is_ascii_digit()) {
        return Some((None, left));
    }
    let (first, rest) = left.split_once(':')?;
    let (last, rest) = rest.split_once(':')?;
    Some((Some((first.parse().ok()?, last.parse().ok()?)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_read_with_and_without_its_lines() {
        let read = |line: &str| match Line::read(line, line) {
            Some(Line::Method(member)) => {
                let class = member.class.map(|class| class.get(line).to_owned());
                let params = member.params.get(line).to_owned();
                Some((
                    member.name.get(line).to_owned(),
                    class,
                    params,
                    member.lines,
                    member.original,
                ))
            }
            _ => None,
        };
        let plain = |name: &str| (name.to_owned(), None, String::new());
        let (name, class, params) = plain("run");
        assert_eq!(
            read("    void run() -> a"),
            Some((name, class, params, None, Original::Same))
        );
        let (name, class, params) = plain("<init>");
        assert_eq!(
            read("    3:5:void <init>():7 -> <init>"),
            Some((name, class, params, Some((3, 5)), Original::Line(7)))
        );
        assert_eq!(
            read("    1:2:int[] org.example.A$B.f(int,java.lang.String[]):30:31 -> b"),
            Some((
                "f".into(),
                Some("org.example.A$B".into()),
                "int,java.lang.String[]".into(),
                Some((1, 2)),
                Original::From(30, 31)
            ))
        );
        for broken in [
            "    1:void f() -> a",
            "    void f(:1 -> a",
            "    1:2:void f():x -> a",
        ] {
            assert!(Line::read(broken, broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn r8_s_notes_are_read() {
        let line = r#"# {"fileName" : "Main.kt","id":"sourceFile"}"#;
        match Line::read(line, line) {
            Some(Line::SourceFile(name)) => assert_eq!(name.get(line), "Main.kt"),
            _ => panic!("not read"),
        }
        let line =
            r#"      # {"id":"com.android.tools.r8.residualsignature","signature":"(La;I)V"}"#;
        match Line::read(line, line) {
            Some(Line::Residual(name)) => assert_eq!(name.get(line), "(La;I)V"),
            _ => panic!("not read"),
        }
        for line in [
            r#"# {"id":"#,
            r#"# {"id""#,
            r#"# {"id":"a\"b"}"#,
            "#",
            "# pg_map_id: 1",
        ] {
            assert!(
                matches!(Line::read(line, line), Some(Line::Other)),
                "{line}"
            );
        }
    }
}
