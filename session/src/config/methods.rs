//! Patterns that select methods.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use varid_tunnel::abi::{FILTER_SIZE, FILTERS};
use wildmatch::WildMatchPattern;

/// Maximum number of patterns in a list.
pub const MAX_PATTERNS: usize = 1024;

/// A method's name, `package.Class.method`, in which `*` stands for any text. A pattern that starts with `!` excludes methods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MethodPattern {
    /// The pattern as written.
    text: String,
}

impl MethodPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// No method can have such a name.
    pub fn new(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('!').unwrap_or(text);
        if name.is_empty() {
            return Err("a pattern without a name means no method".to_owned());
        }
        let strange = |c: char| c.is_control() || "!()/;[]\\".contains(c);
        match name.chars().find(|c| strange(*c)) {
            None => Ok(Self {
                text: text.to_owned(),
            }),
            Some('(' | ')') => Err(format!(
                "'{text}' has parameters: a pattern means all methods of a name, as 'org.example.Balls.draw' does"
            )),
            Some(strange) => Err(format!(
                "{strange:?} is in no method's name: {text:?} is not written as 'org.example.Balls.draw' is, with * for any text and ! before what is left out"
            )),
        }
    }

    fn is_exclusion(&self) -> bool {
        self.text.starts_with('!')
    }

    fn matches(&self, method: &str) -> bool {
        matches(self.text.strip_prefix('!').unwrap_or(&self.text), method)
    }
}

impl TryFrom<String> for MethodPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl From<MethodPattern> for String {
    fn from(pattern: MethodPattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The result of a list of patterns for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A pattern names it.
    Keep,
    /// It is excluded, even if another pattern names it.
    Drop,
    /// No pattern names it.
    Unnamed,
}

/// Patterns of methods that are recorded. The innermost method of a stack that any pattern names decides. If none is named, the
/// sample is recorded if all patterns are exclusions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MethodFilter {
    patterns: Vec<MethodPattern>,
}

impl MethodFilter {
    /// Makes a filter of these patterns.
    pub fn new(patterns: Vec<MethodPattern>) -> Self {
        Self { patterns }
    }

    /// Returns true if there are no patterns, so that everything is recorded.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Its patterns, as written.
    pub fn patterns(&self) -> &[MethodPattern] {
        &self.patterns
    }

    /// Returns a filter with the patterns of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut patterns = self.patterns.clone();
        let new = other.patterns.iter().cloned();
        patterns.extend(new.filter(|pattern| !self.patterns.contains(pattern)));
        Self { patterns }
    }

    /// Returns the verdict on a method, `package.Class.method` without parameters.
    pub fn verdict(&self, method: &str) -> Verdict {
        let named = self.patterns.iter().filter(|p| p.matches(method));
        named.fold(Verdict::Unnamed, |verdict, pattern| {
            if verdict == Verdict::Drop || pattern.is_exclusion() {
                Verdict::Drop
            } else {
                Verdict::Keep
            }
        })
    }

    /// Returns the prefixes of the names of all recorded methods, which a VM can compare cheaply. Empty if all methods are
    /// recorded, or if prefixes cannot describe them.
    pub fn prefixes(&self) -> Vec<String> {
        let included = self.patterns.iter().filter(|p| !p.is_exclusion());
        let prefixes: BTreeSet<&str> = included
            .map(|pattern| pattern.text.split('*').next().unwrap_or_default())
            .collect();
        let fits = |prefix: &&str| !prefix.is_empty() && prefix.len() < FILTER_SIZE;
        if prefixes.len() > FILTERS || !prefixes.iter().all(fits) {
            return Vec::new();
        }
        prefixes.into_iter().map(str::to_owned).collect()
    }

    /// Returns true if samples without any named method are recorded.
    pub fn records_unnamed(&self) -> bool {
        self.patterns.iter().all(MethodPattern::is_exclusion)
    }
}

/// Returns true if a pattern matches a name; `*` stands for any text. The time is at most proportional to both lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    // No name contains the other wildcard.
    WildMatchPattern::<'*', '\0'>::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(patterns: &[&str]) -> MethodFilter {
        let patterns = patterns.iter().map(|text| MethodPattern::new(text));
        MethodFilter::new(patterns.collect::<Result<_, _>>().unwrap())
    }

    #[test]
    fn a_vm_filters_by_the_fixed_beginning_of_a_pattern() {
        for (patterns, prefixes) in [
            (&[][..], &[][..]),
            (&["org.example.*"], &["org.example."]),
            (&["b.*", "a.B.c", "!a.B.d", "b.*x"], &["a.B.c", "b."]),
            (&["a.*", "*.draw"], &[]),
            (&["!a.*"], &[]),
        ] {
            assert_eq!(filter(patterns).prefixes(), prefixes, "{patterns:?}");
        }
        let many: Vec<String> = (0..=FILTERS).map(|n| format!("a{n}.*")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(filter(&many).prefixes().is_empty());
        assert_eq!(filter(&many[1..]).prefixes().len(), FILTERS);
    }

    #[test]
    fn a_pattern_means_the_whole_name() {
        for (pattern, name, expected) in [
            ("a.B.c", "a.B.c", true),
            ("a.B.c", "a.B.cd", false),
            ("a.B.c", "x.a.B.c", false),
            ("a.*", "a.B.c", true),
            ("a.*", "ab.C.d", false),
            ("*.c", "a.B.c", true),
            ("*.c", "a.B.c.d", false),
            ("a.*.c*", "a.B.x.c1", true),
            ("*", "", true),
            ("", "", true),
            ("*ab*ab", "aabab ab", true),
            ("*é.x", "org.é.x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_left_out_is_left_out_wherever_it_is_said() {
        for order in [["a.*", "!a.Debug.*"], ["!a.Debug.*", "a.*"]] {
            let filter = filter(&order);
            assert_eq!(filter.verdict("a.Main.run"), Verdict::Keep);
            assert_eq!(filter.verdict("a.Debug.log"), Verdict::Drop);
            assert_eq!(filter.verdict("b.Main.run"), Verdict::Unnamed);
            assert!(!filter.records_unnamed());
        }
        assert!(filter(&["!a.*"]).records_unnamed());
        assert!(filter(&[]).records_unnamed());
    }

    #[test]
    fn filters_combine() {
        let both = filter(&["a.*", "b.*"]).and(&filter(&["b.*", "!b.X.*"]));
        assert_eq!(both, filter(&["a.*", "b.*", "!b.X.*"]));
        assert_eq!(both.verdict("b.X.f"), Verdict::Drop);
    }

    #[test]
    fn what_no_method_is_called_is_refused_with_the_way_to_write_it() {
        for bad in ["", "!", "a.B.c(int)", "La/B;", "!!a", "a\n"] {
            let error = MethodPattern::new(bad).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
        for good in ["a.B$C.<init>", "!*", "a.B.-$$Lambda", "a.B.größe"] {
            assert_eq!(MethodPattern::new(good).unwrap().to_string(), good);
        }
    }

    proptest! {
        /// Compares with the definition: every text that a star may stand for is tried.
        #[test]
        fn matching_is_what_it_is_defined_as(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            fn defined(pattern: &[u8], name: &[u8]) -> bool {
                match pattern.split_first() {
                    None => name.is_empty(),
                    Some((b'*', rest)) => (0..=name.len()).any(|at| defined(rest, &name[at..])),
                    Some((c, rest)) => name.split_first().is_some_and(|(n, behind)| n == c && defined(rest, behind)),
                }
            }
            prop_assert_eq!(matches(&pattern, &name), defined(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
