//! Finds the range that contains an address. Ranges may be nested.

/// Ranges with a value each, flattened so that none overlap. Where ranges overlap, the one that starts last wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges<T> {
    parts: Vec<Part<T>>,
}

/// A part of the address space with the value of one range.
#[derive(Debug, Clone, Copy)]
struct Part<T> {
    start: u64,
    end: u64,
    value: T,
}

impl<T: Copy> Ranges<T> {
    /// Flattens `(start, end, value)`, which must be sorted by start. Among ranges with the same start, the first one wins.
    pub(super) fn new(sorted: impl IntoIterator<Item = (u64, u64, T)>) -> Self {
        let mut last_start = None;
        Self::nested(
            sorted
                .into_iter()
                .filter(|&(start, end, _)| end > start && last_start.replace(start) != Some(start)),
        )
    }

    /// Flattens `(start, end, value)`, which must be sorted by start. Of two ranges with the same start, the outer one must be first.
    pub(super) fn nested(sorted: impl IntoIterator<Item = (u64, u64, T)>) -> Self {
        let mut parts: Vec<Part<T>> = Vec::new();
        // The ranges that contain `at`, innermost last.
        let mut open: Vec<(u64, T)> = Vec::new();
        let mut at = 0u64;
        for (start, end, value) in sorted {
            if end <= start {
                continue;
            }
            Self::advance(&mut parts, &mut open, at, start);
            at = start;
            open.push((end, value));
        }
        Self::advance(&mut parts, &mut open, at, u64::MAX);
        parts.shrink_to_fit();
        Self { parts }
    }

    /// The parts that have a value: start and end.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.parts.iter().map(|part| (part.start, part.end))
    }

    /// Appends the parts of the open ranges between `at` and `to`.
    fn advance(parts: &mut Vec<Part<T>>, open: &mut Vec<(u64, T)>, mut at: u64, to: u64) {
        while let Some(&(end, value)) = open.last() {
            let until = end.min(to);
            if at < until {
                parts.push(Part {
                    start: at,
                    end: until,
                    value,
                });
                at = until;
            }
            if end > to {
                return;
            }
            open.pop();
        }
    }

    /// The value of the range that contains `address`.
    pub(super) fn get(&self, address: u64) -> Option<T> {
        let after = self.parts.partition_point(|part| part.start <= address);
        self.parts
            .get(after.checked_sub(1)?)
            .filter(|part| address < part.end)
            .map(|part| part.value)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn the_innermost_range_answers() {
        let ranges = Ranges::new([
            (10, 50, 'a'),
            (20, 30, 'b'),
            (20, 40, 'x'),
            (25, 45, 'c'),
            (60, 60, 'y'),
            (70, 80, 'd'),
        ]);
        let text: String = (0..10)
            .map(|ten| ranges.get(ten * 10 + 5).unwrap_or('.'))
            .collect();
        assert_eq!(text, ".acca..d..");
        assert_eq!(ranges.get(24), Some('b'));
        assert_eq!(ranges.get(49), Some('a'));
        assert_eq!(ranges.get(50), None);
        assert_eq!(ranges.get(80), None);
    }
}
