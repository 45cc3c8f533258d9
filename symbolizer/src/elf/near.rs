//! Finds names that are similar to an unknown one.

/// Longer names are not compared by edit distance.
const MAX_COMPARED: usize = 64;

/// Returns the names that are most similar to `name`, best first: those within a small edit distance, and those that contain it.
pub(super) fn nearest<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str>,
    most: usize,
) -> Vec<String> {
    let few = name.len().checked_div(3).unwrap_or_default().max(1);
    let mut found: Vec<(usize, usize, &str)> = known
        .filter_map(|known| {
            // A demangled name has arguments.
            let bare = known.split('(').next().unwrap_or(known);
            let differs = distance(name, bare).filter(|differs| *differs <= few);
            let differs = differs.or_else(|| known.contains(name).then_some(few))?;
            Some((differs, known.len(), known))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let best = found.into_iter().take(most);
    best.map(|(.., known)| known.to_owned()).collect()
}

/// The edit distance in bytes. None if a name is too long.
fn distance(one: &str, other: &str) -> Option<usize> {
    if one.len().max(other.len()) > MAX_COMPARED {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, from) in one.bytes().enumerate() {
        let mut left = at.saturating_add(1);
        let mut diagonal = at;
        for (cell, to) in row.iter_mut().skip(1).zip(other.bytes()) {
            let changed = diagonal.saturating_add(usize::from(from != to));
            diagonal = *cell;
            left = changed.min(left.min(*cell).saturating_add(1));
            *cell = left;
        }
    }
    // The loop does not update the first cell, which would be the result for an empty `other`.
    if other.is_empty() {
        return Some(one.len());
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_other_letters_come_before_a_part() {
        let known = ["__libc_malloc", "calloc", "malloc", "free", "mallinfo"];
        let near = |name| nearest(name, known.into_iter(), 3);
        assert_eq!(near("maloc"), ["malloc"]);
        assert_eq!(near("malloc_"), ["malloc", "calloc"]);
        assert_eq!(near("libc_malloc"), ["__libc_malloc"]);
        assert!(near("pthread_create").is_empty());
    }

    #[test]
    fn letters_are_counted() {
        assert_eq!(distance("kitten", "sitting"), Some(3));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("abc", ""), Some(3));
        assert_eq!(distance("abc", "abc"), Some(0));
    }
}
