//! Makes texts that somebody else wrote safe to print.

use std::borrow::Cow;

/// The most characters that cells of a table are padded to. A wider cell makes only its own row longer.
pub const MAX_PADDING: usize = 1000;

/// Returns true if a terminal acts on a character: control characters, and those that change the direction of what follows (Unicode's
/// `Bidi_Control`), which can make one text look like another.
#[must_use]
pub fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns a text of several lines with `?` for each character that [`is_command`], except line ends and tabs.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let stays = |character: char| matches!(character, '\n' | '\t') || !is_command(character);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let shown = |character| if stays(character) { character } else { '?' };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns a text as one line with `?` for each character that [`is_command`].
#[must_use]
pub fn one_line(text: &str) -> String {
    let shown = |character| {
        if is_command(character) {
            '?'
        } else {
            character
        }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_turns_the_text_is_not_printed() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\u{202e}c\tä\n"), "a?[2J?b?c\tä\n");
        assert_eq!(one_line("a\nb\u{2066}"), "a?b?");
        assert!(matches!(printable("plain\n"), Cow::Borrowed(_)));
    }
}
