//! Matches names with a regular expression.

use regex_lite::Regex;

/// A regular expression that matches anywhere in a name. It is case-sensitive; `^` and `$` match the ends of the name.
///
/// Matching takes time proportional to the lengths of the expression and the name.
#[derive(Debug, Clone)]
pub struct NamePattern(Regex);

/// The error for an invalid regular expression.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}; any text is '.*', a dot '\\.'")]
pub struct NamePatternError(regex_lite::Error);

impl NamePattern {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// The expression is invalid or too large.
    pub fn new(text: &str) -> Result<Self, NamePatternError> {
        Regex::new(text).map(Self).map_err(NamePatternError)
    }

    /// Returns the text of the expression.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.as_str()
    }

    /// Returns true if the expression matches a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for NamePattern {}

impl std::str::FromStr for NamePattern {
    type Err = NamePatternError;

    fn from_str(text: &str) -> Result<Self, NamePatternError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::NamePattern;

    #[test]
    fn an_expression_is_found_anywhere_in_a_name() {
        for (pattern, name, expected) in [
            ("Balls", "org.example.Balls.draw", true),
            ("balls", "org.example.Balls.draw", false),
            (r"\.draw$", "org.example.Balls.draw", true),
            (r"\.draw$", "org.example.Balls.drawLine", false),
            ("^org.*draw", "org.example.Balls.drawLine", true),
            ("draw|fib", "org.example.Balls.fib(int)", true),
            ("", "x", true),
        ] {
            let pattern = NamePattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(name), expected, "{pattern:?} {name}");
        }
    }

    #[test]
    fn what_is_no_expression_says_what_to_write() {
        let error = NamePattern::new("*.draw").unwrap_err().to_string();
        assert!(error.contains("any text is '.*'"), "{error}");
    }
}
