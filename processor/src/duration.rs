//! How long an instruction takes: always the same, or by its operands.

use std::ops::AddAssign;

/// A number of the processor's clock cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cycles(pub u64);

impl Cycles {
    /// The sum, no more than the largest number.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cycles {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

/// The values of an instruction's source registers. 0 for what it does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operands {
    /// Of rs1.
    pub first: u32,
    /// Of rs2, or the amount of a shift by a constant.
    pub second: u32,
}

/// How many cycles instructions of a class take, if nothing holds them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration {
    /// The cycles, without those that depend on operands.
    pub cycles: u32,
    /// What it depends on.
    pub varies: Variation,
}

/// How a duration depends on operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variation {
    /// It does not.
    None,
    /// A divisor of zero takes this many cycles instead.
    ZeroDivisor(u32),
    /// A divider shifts the divisor up: this many more cycles for each of its leading zeros, or of the leading ones but the first of a
    /// negative one.
    DivisorZeros(u32),
    /// A multiplier stops after the highest set bit of rs2.
    MultiplierBits {
        /// The cycles for each bit up to the highest that is set.
        each: u32,
        /// The fewest cycles in all.
        least: u32,
    },
    /// A shifter takes one cycle for each step.
    ShiftSteps(Steps),
}

/// The steps of a serial shifter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// By one bit.
    Ones,
    /// By four bits while there are as many left, then by one.
    FoursThenOnes,
}

/// Whether a divider's operands have a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signedness {
    /// They have one.
    Signed,
    /// They have none.
    Unsigned,
}

impl Duration {
    /// One that does not vary.
    #[must_use]
    pub const fn fixed(cycles: u32) -> Self {
        Self {
            cycles,
            varies: Variation::None,
        }
    }

    /// The cycles of an instruction with these operands.
    #[must_use]
    pub const fn of(self, operands: Operands, signedness: Signedness) -> u32 {
        match self.varies {
            Variation::None => self.cycles,
            Variation::ZeroDivisor(cycles) => match operands.second {
                0 => cycles,
                _ => self.cycles,
            },
            Variation::DivisorZeros(each) => {
                let is_negative = operands.second.cast_signed() < 0;
                let skipped = match signedness {
                    Signedness::Signed if is_negative => {
                        operands.second.leading_ones().saturating_sub(1)
                    }
                    _ => operands.second.leading_zeros(),
                };
                self.cycles.saturating_add(skipped.saturating_mul(each))
            }
            Variation::MultiplierBits { each, least } => {
                let bits = u32::BITS.saturating_sub(operands.second.leading_zeros());
                let cycles = self.cycles.saturating_add(bits.saturating_mul(each));
                match cycles < least {
                    true => least,
                    false => cycles,
                }
            }
            Variation::ShiftSteps(steps) => {
                let amount = operands.second & 31;
                let steps = match steps {
                    Steps::Ones => amount,
                    Steps::FoursThenOnes => (amount >> 2).saturating_add(amount & 3),
                };
                self.cycles.saturating_add(steps)
            }
        }
    }

    /// The fewest and the most cycles that it takes with any operands.
    #[must_use]
    pub const fn bounds(self) -> (u32, u32) {
        let (low, more) = match self.varies {
            Variation::None => (self.cycles, 0),
            Variation::ZeroDivisor(cycles) if cycles < self.cycles => (cycles, 0),
            Variation::ZeroDivisor(cycles) => (self.cycles, cycles.saturating_sub(self.cycles)),
            Variation::DivisorZeros(each) => (self.cycles, each.saturating_mul(32)),
            Variation::MultiplierBits { each, least } if least < self.cycles => {
                (self.cycles, each.saturating_mul(32))
            }
            Variation::MultiplierBits { each, least } => (least, each.saturating_mul(32)),
            Variation::ShiftSteps(Steps::Ones) => (self.cycles, 31),
            // 28 in fours, then 3.
            Variation::ShiftSteps(Steps::FoursThenOnes) => (self.cycles, 10),
        };
        (low, self.cycles.saturating_add(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(duration: Duration, second: u32) -> u32 {
        let operands = Operands { first: 7, second };
        duration.of(operands, Signedness::Signed)
    }

    fn vary(cycles: u32, varies: Variation) -> Duration {
        Duration { cycles, varies }
    }

    #[test]
    fn units_take_as_long_as_their_operands_say() {
        assert_eq!(cycles(Duration::fixed(3), u32::MAX), 3);
        let ibex = vary(37, Variation::ZeroDivisor(2));
        assert_eq!((cycles(ibex, 0), cycles(ibex, 1)), (2, 37));
        let cv32e40p = vary(3, Variation::DivisorZeros(1));
        assert_eq!((cycles(cv32e40p, 0), cycles(cv32e40p, 1 << 31)), (35, 3));
        for (divisor, expected) in [(-1_i32, 34), (-2, 33), (-3, 32), (-4, 32), (i32::MIN, 3)] {
            assert_eq!(cycles(cv32e40p, divisor.cast_unsigned()), expected);
        }
        let operands = Operands {
            first: 0,
            second: u32::MAX,
        };
        assert_eq!(cv32e40p.of(operands, Signedness::Unsigned), 3);
        let slow = vary(1, Variation::MultiplierBits { each: 1, least: 2 });
        assert_eq!(
            (cycles(slow, 0), cycles(slow, 1), cycles(slow, 6)),
            (2, 2, 4)
        );
        let serial = vary(4, Variation::ShiftSteps(Steps::Ones));
        assert_eq!((cycles(serial, 0), cycles(serial, 31)), (4, 35));
        let two_stage = vary(4, Variation::ShiftSteps(Steps::FoursThenOnes));
        assert_eq!((cycles(two_stage, 7), cycles(two_stage, 31)), (8, 14));
        for duration in [ibex, cv32e40p, slow, serial, two_stage] {
            let (low, high) = duration.bounds();
            for second in (0..32).map(|bit| u32::MAX >> bit).chain([0, 1, 2, 28]) {
                let taken = cycles(duration, second);
                assert!((low..=high).contains(&taken), "{duration:?} {second:#x}");
            }
        }
    }
}
