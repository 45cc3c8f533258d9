//! Removes parameters, return type and template arguments from a name.

/// Suffixes that compilers append for a part or a copy of a function, with or without a number.
const COPIES: [&str; 6] = [
    ".isra",
    ".constprop",
    ".part",
    ".cold",
    ".lto_priv",
    ".llvm",
];

/// A scan of a name of C++, Rust, Go or Java.
pub struct Scan<'n> {
    rest: &'n str,
    plain: String,
    /// The start of the name in `plain`, after the return type.
    start: usize,
    /// Whether there are parameters: only then may there be a return type.
    has_parameters: bool,
}

impl<'n> Scan<'n> {
    pub fn new(name: &'n str) -> Self {
        let name = original(name);
        Self {
            rest: name,
            plain: String::with_capacity(name.len()),
            start: 0,
            has_parameters: false,
        }
    }

    /// Returns the plain name. None if its brackets are unbalanced.
    pub fn plain(mut self) -> Option<String> {
        while let Some(char) = self.rest.chars().next() {
            match char {
                'o' if is_operator(self.rest) && !self.plain.ends_with(is_of_name) => {
                    self.operator()?
                }
                '<' if self.ends_a_name() => _ = self.group('<', '>')?,
                '(' => self.parenthesis()?,
                '<' | '{' | '[' => self.kept_group(char)?,
                ' ' => {
                    self.push(char);
                    self.start = self.plain.len();
                }
                _ => self.push(char),
            }
        }
        let is_typed = self.has_parameters && self.start < self.plain.len();
        let start = if is_typed { self.start } else { 0 };
        let name = self.plain.get(start..)?;
        Some(name.trim_start_matches(['*', '&']).trim().to_owned())
    }

    fn push(&mut self, char: char) {
        self.plain.push(char);
        self.skip(char.len_utf8());
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Returns true if the scanned part ends with a name, which arguments may follow.
    fn ends_a_name(&self) -> bool {
        let before = self.plain.strip_suffix("::");
        // Rust's `drop_in_place::<T>`; a lambda of C++ and an implementation of Rust are names themselves.
        let is_lambda = ["<lambda", "<unnamed", "<impl "];
        let before = match before {
            Some(_) if is_lambda.iter().any(|start| self.rest.starts_with(start)) => return false,
            Some(before) => before,
            None => &self.plain,
        };
        let is_end = |char: char| is_of_name(char) || "]})".contains(char);
        before.ends_with(is_end)
    }

    /// Scans `operator` with its sign, `()`, `[]`, or type.
    fn operator(&mut self) -> Option<()> {
        self.plain.push_str("operator");
        self.skip("operator".len());
        let signs = [
            "()", "[]", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">",
        ];
        if let Some(sign) = signs.iter().find(|sign| self.rest.starts_with(**sign)) {
            self.plain.push_str(sign);
            self.skip(sign.len());
            let arguments = self.rest.strip_prefix(' ').unwrap_or(self.rest);
            if arguments.starts_with('<') {
                self.rest = arguments;
                self.group('<', '>')?;
            }
        } else if self.rest.starts_with(' ') {
            // `operator new[]`, `operator unsigned int`: up to the parameters.
            while let Some(char) = self.rest.chars().next().filter(|char| *char != '(') {
                match char {
                    '<' => _ = self.group('<', '>')?,
                    _ => self.push(char),
                }
            }
        }
        Some(())
    }

    /// Takes a bracketed group from the rest. None if it is not closed.
    fn group(&mut self, open: char, close: char) -> Option<&'n str> {
        let mut depth = 0_usize;
        let mut before = ' ';
        for (at, char) in self.rest.char_indices() {
            let is_arrow = char == '>' && before == '-';
            before = char;
            if char == open {
                depth = depth.saturating_add(1);
            } else if char == close && !is_arrow {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let end = at.saturating_add(close.len_utf8());
                    let (group, rest) = self.rest.split_at_checked(end)?;
                    self.rest = rest;
                    // Rust has a separator before it.
                    if open == '<' {
                        let kept = self.plain.strip_suffix("::").map(str::len);
                        self.plain.truncate(kept.unwrap_or(self.plain.len()));
                    }
                    return Some(group);
                }
            }
        }
        None
    }

    /// Scans a group that is part of the name: `{lambda(int)#1}`, `<T as Trait>`, `[abi:cxx11]`. Its content is also
    /// simplified.
    fn kept_group(&mut self, open: char) -> Option<()> {
        let close = match open {
            '<' => '>',
            '{' => '}',
            _ => ']',
        };
        let before = self.plain.len();
        let group = self.group(open, close)?;
        // Keep the separator before it.
        if before > self.plain.len() {
            self.plain.push_str("::");
        }
        let inside = group.strip_prefix(open)?.strip_suffix(close)?;
        self.plain.push(open);
        self.plain.push_str(&without_groups(inside)?);
        self.plain.push(close);
        Some(())
    }

    /// Scans parameters, or a parenthesis that is part of the name.
    fn parenthesis(&mut self) -> Option<()> {
        let is_first = self.plain.is_empty() || self.plain.ends_with([' ', ':', '.']);
        let group = self.group('(', ')')?;
        // `(anonymous namespace)::f`, Go's `(*T).f`.
        if group == "(anonymous namespace)" || is_first && self.rest.starts_with(['.', ':']) {
            self.plain.push_str(group);
            return Some(());
        }
        self.has_parameters = true;
        let trimmed = self.plain.trim_end().len();
        self.plain.truncate(trimmed);
        // A Java method in descriptor form is followed by its return type.
        if is_descriptor(self.rest) {
            self.rest = "";
        }
        for qualifier in [" const", " volatile", " &&", "&&", " &", "&", " noexcept"] {
            let after = self.rest.strip_prefix(qualifier);
            if let Some(after) = after {
                self.rest = after;
            }
        }
        Some(())
    }
}

/// Removes the contents of parentheses and angle brackets.
fn without_groups(text: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut before = ' ';
    for char in text.chars() {
        match char {
            '(' | '<' => depth = depth.saturating_add(1),
            '>' if before == '-' => {}
            ')' | '>' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => kept.push(char),
            _ => {}
        }
        before = char;
    }
    (depth == 0).then_some(kept)
}

/// Returns true if a text is a JVM type descriptor: `V`, `[J`, `Lorg/example/Tree;`.
fn is_descriptor(text: &str) -> bool {
    let element = text.trim_start_matches('[');
    let class = element
        .strip_prefix('L')
        .and_then(|class| class.strip_suffix(';'));
    match class {
        Some(class) => !class.is_empty() && !class.contains([';', '(', ' ']),
        None => element.len() == 1 && element.starts_with(|char| "BCDFIJSZV".contains(char)),
    }
}

/// Returns true if a text starts with the word `operator`.
pub fn is_operator(text: &str) -> bool {
    let after = text.strip_prefix("operator");
    after.is_some_and(|after| !after.starts_with(is_of_name))
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Removes a compiler's suffix for a part or a copy of the function.
fn original(name: &str) -> &str {
    // Demanglers put it after the parameters.
    let end = [" [clone", " (."].iter().filter_map(|mark| name.find(mark));
    let mut name = end.min().and_then(|end| name.get(..end)).unwrap_or(name);
    loop {
        let numberless = name.trim_end_matches(|char: char| char.is_ascii_digit());
        let numberless = numberless.strip_suffix('.').unwrap_or(name);
        let copies = COPIES.iter();
        let mut shorter = copies.filter_map(|copy| {
            // Compilers number all copies except the cold part of a function. Methods of Java or Go may have such
            // unnumbered names.
            let unnumbered = (*copy == ".cold").then(|| name.strip_suffix(copy));
            let unnumbered = unnumbered.flatten().filter(|name| !name.contains('.'));
            numberless
                .strip_suffix(copy)
                .filter(|_| numberless != name)
                .or(unnumbered)
        });
        match shorter.next() {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}
