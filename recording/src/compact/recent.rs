//! Codes values by what followed the same context before.

use std::collections::HashMap;

use super::numbers::{Numbers, bits};
use super::range_coder::Coder;

/// The values that followed each context, those that are likely first.
#[derive(Debug)]
pub struct Recent {
    lists: HashMap<u64, Vec<u64>>,
    /// Places in the lists, from 1, or 0 for a value that is not there.
    places: Numbers,
    variants: usize,
}

/// The most values of a context.
const MAX_VALUES: usize = 16;
/// The most contexts. Beyond that, all are forgotten: memory does not grow with a recording.
const MAX_CONTEXTS: usize = 1 << 18;
/// One more than the bits of a number of values.
const FILLS: usize = 6;

impl Recent {
    /// Makes an empty model. Places depend on one of `variants`, beside the number of values of the context.
    pub fn new(variants: usize) -> Self {
        Self {
            lists: HashMap::new(),
            places: Numbers::new(variants.saturating_mul(FILLS)),
            variants,
        }
    }

    /// Codes a value of a context by its place. None: it is not one of the context's values, and was not coded.
    pub fn find(
        &mut self,
        coder: &mut impl Coder,
        context: u64,
        variant: usize,
        value: u64,
    ) -> Option<u64> {
        let list = self.lists.get_mut(&context);
        let values = list.as_deref().map_or(&[][..], Vec::as_slice);
        let place = values.iter().position(|known| *known == value);
        let place = place.map_or(0, |place| place.saturating_add(1) as u64);
        let fill = bits(values.len() as u64) as usize;
        let row = fill.saturating_mul(self.variants).saturating_add(variant);
        let place = self.places.code(coder, row, place).checked_sub(1)?;
        let place = usize::try_from(place).ok()?;
        let list = list?;
        let found = *list.get(place)?;
        // Nearer to the front, not to it: a value that is rare does not displace those that are not.
        if let Some(moved) = list.get_mut(place / 2..=place) {
            moved.rotate_right(1);
        }
        Some(found)
    }

    /// Adds a value to a context that does not have it.
    pub fn insert(&mut self, context: u64, value: u64) {
        if self.lists.len() >= MAX_CONTEXTS {
            self.lists.clear();
        }
        let list = self.lists.entry(context).or_default();
        list.truncate(MAX_VALUES.saturating_sub(1));
        list.insert(list.len() / 2, value);
    }

    /// Returns the likeliest value of a context.
    pub fn first(&self, context: u64) -> Option<u64> {
        self.lists.get(&context)?.first().copied()
    }
}

/// Makes a context of several numbers.
pub fn context(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |mixed: u64, number| {
        let mixed = (mixed.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

#[cfg(test)]
mod tests {
    use super::super::range_coder::{Decoder, Encoder};
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn values_come_back(values in vec((0..3u64, 0..40u64), 0..500)) {
            let (mut encoder, mut recent) = (Encoder::new(), Recent::new(1));
            let mut missed = Vec::new();
            for (context, value) in &values {
                if recent.find(&mut encoder, *context, 0, *value).is_none() {
                    recent.insert(*context, *value);
                    missed.push(*value);
                }
            }
            let bytes = encoder.finish();
            let (mut decoder, mut recent) = (Decoder::new(&bytes), Recent::new(1));
            let mut missed = missed.into_iter();
            for (context, value) in &values {
                let found = recent.find(&mut decoder, *context, 0, 0).unwrap_or_else(|| {
                    let value = missed.next().expect("a value that was not found before");
                    recent.insert(*context, value);
                    value
                });
                prop_assert_eq!(found, *value);
            }
        }
    }
}
