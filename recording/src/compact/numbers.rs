//! Codes numbers of 64 bits: first how long a number is, then its bits from the highest on.

use super::range_coder::{Coder, Probability};

/// What is known of the numbers of one field. Their lengths may depend on a context.
#[derive(Debug)]
pub struct Numbers {
    /// By context: a binary tree over the seven bits of a length.
    lengths: Vec<[Probability; LENGTHS]>,
    /// By length: a binary tree over the bits behind the highest one.
    leading: Vec<[Probability; LEADING]>,
    /// By length: each bit behind these.
    rest: Vec<[Probability; 64]>,
}

/// The nodes of a tree over the lengths 0 to 64.
const LENGTHS: usize = 128;
/// The bits behind the highest one that depend on each other.
const LEADING_BITS: u32 = 4;
/// The nodes of a tree over these.
const LEADING: usize = 1 << LEADING_BITS;

impl Numbers {
    /// Makes the model of a field with this number of contexts.
    pub fn new(contexts: usize) -> Self {
        let lengths = usize::try_from(u64::BITS).unwrap_or(0).saturating_add(1);
        Self {
            lengths: vec![[Probability::default(); LENGTHS]; contexts],
            leading: vec![[Probability::default(); LEADING]; lengths],
            rest: vec![[Probability::default(); 64]; lengths],
        }
    }

    /// Codes a number. A decoder ignores `value`.
    pub fn code(&mut self, coder: &mut impl Coder, context: usize, value: u64) -> u64 {
        let lengths = self.lengths.get_mut(context);
        let lengths = lengths.map_or(&mut [][..], <[_; LENGTHS]>::as_mut_slice);
        let length = tree(coder, lengths, 7, u64::from(bits(value))).min(u64::from(u64::BITS));
        let Some(mut left) = (length as u32).checked_sub(1) else {
            return 0;
        };
        let row = length as usize;
        let mut coded = 1u64;
        let leading = left.min(LEADING_BITS);
        left = left.saturating_sub(leading);
        let nodes = self.leading.get_mut(row);
        let nodes = nodes.map_or(&mut [][..], <[_; LEADING]>::as_mut_slice);
        let mask = (1u64 << leading).wrapping_sub(1);
        coded = coded << leading | tree(coder, nodes, leading, value >> left & mask);
        let rest = self.rest.get_mut(row);
        let rest = rest.map_or(&mut [][..], <[_; 64]>::as_mut_slice);
        for at in (0..left).rev() {
            let bit = bit_at(coder, rest, at as usize, value >> at & 1 == 1);
            coded = coded << 1 | u64::from(bit);
        }
        coded
    }

    /// Codes a number by its difference to another one, modulo 2^64.
    pub fn code_from(&mut self, coder: &mut impl Coder, context: usize, from: u64, to: u64) -> u64 {
        let difference = to.wrapping_sub(from).cast_signed();
        let zigzag = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        let zigzag = self.code(coder, context, zigzag);
        from.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg())
    }
}

/// The number of bits of a number up to its highest one.
pub const fn bits(value: u64) -> u32 {
    u64::BITS.saturating_sub(value.leading_zeros())
}

/// Codes the lowest `width` bits of a number by a binary tree of probabilities, highest bit first.
pub fn tree(coder: &mut impl Coder, nodes: &mut [Probability], width: u32, value: u64) -> u64 {
    let mut node = 1usize;
    for at in (0..width).rev() {
        let bit = bit_at(coder, nodes, node, value >> at & 1 == 1);
        node = node << 1 | usize::from(bit);
    }
    // The highest bit is where the tree begins.
    (node as u64) & (1u64 << width).wrapping_sub(1)
}

/// Codes a bit by the probability at an index. One that is not there is even.
fn bit_at(coder: &mut impl Coder, from: &mut [Probability], index: usize, bit: bool) -> bool {
    match from.get_mut(index) {
        Some(probability) => coder.bit(probability, bit),
        None => coder.bit(&mut Probability::default(), bit),
    }
}

#[cfg(test)]
mod tests {
    use super::super::range_coder::{Decoder, Encoder};
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn numbers_come_back(numbers in vec((any::<u64>(), 0..64u32, 0..3usize), 0..300)) {
            let numbers: Vec<(u64, usize)> = numbers.into_iter().map(|(number, shift, context)| (number >> shift, context)).collect();
            let (mut encoder, mut model) = (Encoder::new(), Numbers::new(2));
            let mut last = u64::MAX;
            for (number, context) in &numbers {
                model.code(&mut encoder, *context, *number);
                model.code_from(&mut encoder, *context, last, *number);
                last = *number;
            }
            let bytes = encoder.finish();
            let (mut decoder, mut model) = (Decoder::new(&bytes), Numbers::new(2));
            let mut last = u64::MAX;
            for (number, context) in &numbers {
                prop_assert_eq!(model.code(&mut decoder, *context, 0), *number);
                prop_assert_eq!(model.code_from(&mut decoder, *context, last, 0), *number);
                last = *number;
            }
        }
    }
}
