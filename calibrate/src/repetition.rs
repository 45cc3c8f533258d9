//! How often is a unit repeated, and by what?

use crate::clock::Clock;
use crate::program::{MethodNumber, Run, Shape};

/// The numbers of copies in a straight line.
const COPIES: [u16; 2] = [150, 600];
/// Copies in a loop, of a unit that is otherwise in a straight line, and of others.
const LOOPED_COPIES: u16 = 100;
const SITES: u16 = 8;
/// The numbers of iterations for a fine clock, of a unit that is short and of one that is long. The processor learns within the first hundred what
/// follows what, as it does in the loops of programs.
const ITERATIONS: [u32; 2] = [8, 48];
const ITERATIONS_OF_LONG: [u32; 2] = [16, 144];
/// From so many instructions on a unit is long: it has one copy.
const LONG: usize = 16;

/// How the copies of a unit in a method are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// Once.
    Once(u16),
    /// In each iteration of a loop, with the operands that they need.
    Loop(u16),
}

impl Copies {
    /// Returns the number of copies.
    pub(crate) const fn number(self) -> u16 {
        match self {
            Self::Once(copies) | Self::Loop(copies) => copies,
        }
    }
}

/// How a unit is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// By two methods, each with so many copies.
    Straight([u16; 2]),
    /// By a method with a loop, which has so many copies, in two numbers of iterations.
    Loop(u16, [u32; 2]),
}

impl Repetition {
    /// Returns how a unit of so many instructions is repeated for a clock. A coarse clock times loops only.
    pub(crate) fn new(shape: Shape, instructions: usize, clock: Clock) -> Self {
        let is_long = instructions >= LONG;
        let iterations = match is_long {
            true => ITERATIONS_OF_LONG,
            false => ITERATIONS,
        };
        match (shape, clock, is_long) {
            (Shape::Straight, Clock::Nano | Clock::Counter, _) => Self::Straight(COPIES),
            (Shape::Straight, Clock::Millis, _) => Self::Loop(LOOPED_COPIES, iterations),
            (Shape::Loop, _, false) => Self::Loop(SITES, iterations),
            (Shape::Loop, _, true) => Self::Loop(1, iterations),
        }
    }

    /// Returns the short and the long run, by methods that `add` adds.
    pub(crate) fn runs<E>(
        self,
        mut add: impl FnMut(Copies) -> Result<MethodNumber, E>,
    ) -> Result<[Run; 2], E> {
        match self {
            Self::Straight([short, long]) => {
                let mut run = |copies: u16| {
                    Ok(Run {
                        method: add(Copies::Once(copies))?,
                        repetitions: copies.into(),
                    })
                };
                Ok([run(short)?, run(long)?])
            }
            Self::Loop(copies, iterations) => {
                let method = add(Copies::Loop(copies))?;
                Ok(iterations.map(|repetitions| Run {
                    method,
                    repetitions,
                }))
            }
        }
    }
}
