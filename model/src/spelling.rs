//! Finds the known word that is most similar to a misspelt one.

/// Returns the known word that is most similar to `written`. None if no word is similar.
#[must_use]
pub fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let distances = known.iter().map(|word| (distance(written, word), *word));
    let (distance, word) = distances.min()?;
    // At most a third of the word may differ.
    (distance.saturating_mul(3) <= word.len().max(3)).then_some(word)
}

/// The Levenshtein distance in characters. If `one` is much longer than `other`, it is the length of `one`, so that long names are cheap.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > other.len().saturating_mul(2).saturating_add(8) {
        return one.len();
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, from) in one.chars().enumerate() {
        let mut left = at.saturating_add(1);
        let mut diagonal = at;
        let mut next = vec![left];
        for (above, to) in row.iter().skip(1).zip(&other) {
            let changed = diagonal.saturating_add(usize::from(from != *to));
            let moved = left.min(*above).saturating_add(1);
            left = changed.min(moved);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_matched_to_the_most_similar_one() {
        let known = ["methods", "frequency", "period", "all"];
        for (name, meant) in [
            ("method", Some("methods")),
            ("metods", Some("methods")),
            ("freqency", Some("frequency")),
            ("al", Some("all")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
