//! Codes binary decisions. A decision takes the fewer bits, the more probable it was.
//!
//! The interval of 32-bit numbers from `low` to `high` is divided in proportion to the probability of each decision, and its first byte is
//! written when both ends agree on it. Encoder and decoder have the same interface, so one function over both describes a format.

/// How often a decision was true so far. The first decisions change it most.
#[derive(Debug, Clone, Copy)]
pub struct Probability {
    /// Of 65,536.
    parts: u16,
    /// The number of decisions so far, at most [`Self::SETTLED`].
    seen: u8,
}

impl Default for Probability {
    fn default() -> Self {
        Self {
            parts: 1 << 15,
            seen: 0,
        }
    }
}

impl Probability {
    /// The number of decisions after which a probability changes at its slowest.
    const SETTLED: u8 = 13;

    /// Divides an interval: the part up to the returned number is for true. Both parts have a number at least.
    fn split(self, low: u32, high: u32) -> u32 {
        let size = u64::from(high.wrapping_sub(low));
        let part = size.wrapping_mul(u64::from(self.parts)) >> 16;
        // Less than `size`, because `parts` is less than 65,536.
        low.wrapping_add(part as u32)
    }

    const fn update(&mut self, bit: bool) {
        let shift = match self.seen {
            0 => 1,
            1..=2 => 2,
            3..=5 => 3,
            6..Self::SETTLED => 4,
            _ => 5,
        };
        if self.seen < Self::SETTLED {
            self.seen = self.seen.saturating_add(1);
        }
        self.parts = match bit {
            true => self
                .parts
                .saturating_add(u16::MAX.saturating_sub(self.parts) >> shift),
            false => self.parts.saturating_sub(self.parts >> shift),
        };
    }
}

/// An encoder or a decoder.
pub trait Coder {
    /// Codes a decision and returns it. A decoder ignores `bit`.
    fn bit(&mut self, probability: &mut Probability, bit: bool) -> bool;
}

/// Writes decisions.
#[derive(Debug)]
pub struct Encoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl Encoder {
    pub const fn new() -> Self {
        Self {
            low: 0,
            high: u32::MAX,
            out: Vec::new(),
        }
    }

    /// Returns the bytes of all decisions.
    pub fn finish(mut self) -> Vec<u8> {
        // Both ends differ in their first byte. A decoder reads zeros behind the end.
        self.out.push((self.high >> 24) as u8);
        self.out
    }
}

impl Coder for Encoder {
    fn bit(&mut self, probability: &mut Probability, bit: bool) -> bool {
        let middle = probability.split(self.low, self.high);
        match bit {
            true => self.high = middle,
            false => self.low = middle.wrapping_add(1),
        }
        probability.update(bit);
        while (self.low ^ self.high) >> 24 == 0 {
            self.out.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
        bit
    }
}

/// Reads decisions. Any bytes are decisions.
#[derive(Debug)]
pub struct Decoder<'b> {
    low: u32,
    high: u32,
    /// The next four bytes of the coded number: it lies between `low` and `high`.
    number: u32,
    bytes: std::slice::Iter<'b, u8>,
}

impl<'b> Decoder<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        let mut decoder = Self {
            low: 0,
            high: u32::MAX,
            number: 0,
            bytes: bytes.iter(),
        };
        for _ in 0..size_of::<u32>() {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        let byte = self.bytes.next().copied().unwrap_or(0);
        self.number = self.number << 8 | u32::from(byte);
    }
}

impl Coder for Decoder<'_> {
    fn bit(&mut self, probability: &mut Probability, _: bool) -> bool {
        let middle = probability.split(self.low, self.high);
        let bit = self.number <= middle;
        match bit {
            true => self.high = middle,
            false => self.low = middle.wrapping_add(1),
        }
        probability.update(bit);
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn a_decision_that_is_always_the_same_takes_nearly_nothing() {
        let (mut encoder, mut probability) = (Encoder::new(), Probability::default());
        for _ in 0..10_000 {
            encoder.bit(&mut probability, true);
        }
        assert!(encoder.finish().len() < 20);
    }

    proptest! {
        #[test]
        fn decisions_come_back(bits in vec((0..4usize, any::<bool>()), 0..3000)) {
            let (mut encoder, mut probabilities) = (Encoder::new(), [Probability::default(); 4]);
            for (context, bit) in &bits {
                encoder.bit(&mut probabilities[*context], *bit);
            }
            let bytes = encoder.finish();
            let (mut decoder, mut probabilities) = (Decoder::new(&bytes), [Probability::default(); 4]);
            for (context, bit) in &bits {
                prop_assert_eq!(decoder.bit(&mut probabilities[*context], false), *bit);
            }
        }
    }
}
