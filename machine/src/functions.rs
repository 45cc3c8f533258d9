//! Which function an address belongs to.

use varid_riscv::{Image, SymbolKind};

/// The functions of a program, by the symbols of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    /// Start and end, by ascending start. They do not overlap.
    ranges: Vec<(u32, u32)>,
}

impl Functions {
    /// Takes the symbols of functions, and labels in code outside of those.
    #[must_use]
    pub fn new(image: &Image) -> Self {
        let in_code = image.symbols.iter().filter(|symbol| {
            let segment = image.segment(symbol.address);
            symbol.kind != SymbolKind::Object && segment.is_some_and(|it| it.mode.execute)
        });
        let narrow = |number: u64| u32::try_from(number).ok();
        let mut sized = Vec::new();
        let mut labels = Vec::new();
        for symbol in in_code {
            let Some(start) = narrow(symbol.address.get()) else {
                continue;
            };
            let end = narrow(symbol.size).and_then(|size| start.checked_add(size));
            match end.filter(|end| *end > start) {
                Some(end) if symbol.kind == SymbolKind::Function => sized.push((start, end)),
                _ => labels.push(start),
            }
        }
        Self::of_parts(sized, labels)
    }

    /// Makes functions of ranges, and of labels that go on to the next function.
    fn of_parts(mut sized: Vec<(u32, u32)>, mut labels: Vec<u32>) -> Self {
        // Of two functions with the same start the larger one counts. One that begins within another one ends it.
        sized.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        sized.dedup_by_key(|(start, _)| *start);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (start, end) in sized {
            if let Some(last) = ranges.last_mut() {
                last.1 = last.1.min(start);
            }
            ranges.push((start, end));
        }
        let sized = Self { ranges };
        labels.sort_unstable();
        labels.dedup();
        labels.retain(|label| sized.start(*label).is_none());
        let mut starts: Vec<(u32, Option<u32>)> = sized
            .ranges
            .iter()
            .map(|(start, end)| (*start, Some(*end)))
            .chain(labels.into_iter().map(|label| (label, None)))
            .collect();
        starts.sort_unstable();
        let nexts = starts.iter().skip(1).map(|(start, _)| *start);
        let nexts = nexts.chain([u32::MAX]);
        let ranges = starts
            .iter()
            .zip(nexts)
            .map(|((start, end), next)| (*start, end.unwrap_or(next)))
            .collect();
        Self { ranges }
    }

    /// Returns the start of the function that an address is in.
    #[must_use]
    pub fn start(&self, address: u32) -> Option<u32> {
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let (start, end) = self.ranges.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_around_it() {
        let sized = vec![(0x100, 0x200), (0x100, 0x110), (0x180, 0x190)];
        let functions = Functions::of_parts(sized, vec![0x80, 0x120, 0x300]);
        let start = |address| functions.start(address);
        assert_eq!(start(0x7f), None);
        assert_eq!([start(0x80), start(0xff)], [Some(0x80); 2]);
        assert_eq!([start(0x100), start(0x17f)], [Some(0x100); 2]);
        assert_eq!([start(0x180), start(0x190)], [Some(0x180), None]);
        assert_eq!(start(0x4000), Some(0x300));
    }
}
