//! Filters names.

use regex_lite::{Regex, RegexBuilder};

/// Matches names that contain a text: as a regular expression or, if it is not a valid one, literally. Case matters if the text has
/// a capital letter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    regex: Option<Regex>,
}

impl Filter {
    /// Makes the filter of this text. An empty text matches all names.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(!text.chars().any(char::is_uppercase))
                .build()
                .ok()
        };
        let regex = (!text.is_empty())
            .then(|| build(&text).or_else(|| build(&regex_lite::escape(&text))))
            .flatten();
        Self { text, regex }
    }

    /// The text of the filter.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if a name matches.
    #[must_use]
    pub fn shows(&self, name: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn a_filter_is_an_expression_where_it_can_be_one() {
        for (text, name, expected) in [
            ("", "anything", true),
            ("balls", "org.example.Balls.draw", true),
            ("Balls", "org.example.Balls.draw", true),
            ("BALLS", "org.example.Balls.draw", false),
            ("^org.*draw$", "org.example.Balls.draw", true),
            ("draw$", "org.example.Balls.drawLine", false),
            ("draw|fib", "org.example.Balls.fib(int)", true),
            ("fib(int)", "org.example.Balls.fib(int)", false),
            ("fib(", "org.example.Balls.fib(int)", true),
            ("*", "operator*", true),
            ("*", "operator", false),
        ] {
            assert_eq!(Filter::new(text).shows(name), expected, "{text} {name}");
        }
    }
}
