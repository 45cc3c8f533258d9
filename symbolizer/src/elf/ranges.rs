//! Which of many ranges, nested ones among them, holds an address?

/// Ranges with a value each, flattened so that none overlaps: where ranges overlap, the one that starts last wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges<T> {
    parts: Vec<Part<T>>,
}

/// A stretch of addresses that one range answers for.
#[derive(Debug, Clone, Copy)]
struct Part<T> {
    start: u64,
    end: u64,
    value: T,
}

impl<T: Copy> Ranges<T> {
    /// Flattens `(start, end, value)`, which is sorted by start; of ranges with the same start the first one counts.
    pub(super) fn new(sorted: impl IntoIterator<Item = (u64, u64, T)>) -> Self {
        let mut last_start = None;
        Self::nested(
            sorted
                .into_iter()
                .filter(|&(start, end, _)| end > start && last_start.replace(start) != Some(start)),
        )
    }

    /// Flattens `(start, end, value)`, which is sorted by start, the outer of two with the same start first.
    pub(super) fn nested(sorted: impl IntoIterator<Item = (u64, u64, T)>) -> Self {
        let mut parts: Vec<Part<T>> = Vec::new();
        // Ranges that are open at the place reached, innermost last.
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

    /// The stretches that have a value: start, end.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.parts.iter().map(|part| (part.start, part.end))
    }

    /// Writes what the open ranges answer for between `at` and `to`.
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

    /// The value whose range holds `address`.
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
