//! Which way a branch is predicted to go.

use varid_model::Address;

/// A branch predictor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predictor {
    /// There is none: the next instructions are fetched.
    None,
    /// Branches backwards are predicted to be taken.
    BackwardTaken,
    /// Two-bit counters, by the address of the branch.
    Bimodal {
        /// The number of counters, a power of two.
        entries: u32,
    },
}

/// The direction that a predictor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The branch is taken.
    Taken,
    /// It is not.
    NotTaken,
}

/// A branch, as a predictor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its address.
    pub address: Address,
    /// The distance to its target in bytes.
    pub offset: i32,
}

/// A predictor's state.
#[derive(Debug, Clone)]
pub enum PredictorState {
    /// The direction depends on nothing but the branch.
    Static(Predictor),
    /// Counters from 0 to 3; 2 and 3 stand for taken. They are 1 in the beginning.
    Counters(Vec<u8>),
}

/// The counters' largest value.
const STRONGLY_TAKEN: u8 = 3;

impl PredictorState {
    /// Makes the state before the first branch.
    #[must_use]
    pub fn new(predictor: Predictor) -> Self {
        match predictor {
            Predictor::Bimodal { entries } => Self::Counters(vec![1; entries.max(1) as usize]),
            predictor => Self::Static(predictor),
        }
    }

    /// The direction in which a branch is predicted to go.
    #[must_use]
    pub fn predict(&self, branch: Branch) -> Direction {
        let is_taken = match self {
            Self::Static(Predictor::BackwardTaken) => branch.offset < 0,
            Self::Static(_) => false,
            Self::Counters(counters) => {
                let counter = counters.get(index(counters.len(), branch.address));
                counter.is_some_and(|counter| *counter >= 2)
            }
        };
        match is_taken {
            true => Direction::Taken,
            false => Direction::NotTaken,
        }
    }

    /// Notes the direction in which a branch went.
    pub fn update(&mut self, branch: Branch, went: Direction) {
        let Self::Counters(counters) = self else {
            return;
        };
        let index = index(counters.len(), branch.address);
        if let Some(counter) = counters.get_mut(index) {
            *counter = match went {
                Direction::Taken => counter.saturating_add(1).min(STRONGLY_TAKEN),
                Direction::NotTaken => counter.saturating_sub(1),
            };
        }
    }
}

/// Instructions are at least two bytes long.
const fn index(entries: usize, address: Address) -> usize {
    (address.get() >> 1) as usize & entries.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_learn_a_direction() {
        let branch = Branch {
            address: Address::new(0x100),
            offset: 8,
        };
        let mut state = PredictorState::new(Predictor::Bimodal { entries: 16 });
        assert_eq!(state.predict(branch), Direction::NotTaken);
        state.update(branch, Direction::Taken);
        assert_eq!(state.predict(branch), Direction::Taken);
        for _ in 0..4 {
            state.update(branch, Direction::Taken);
        }
        state.update(branch, Direction::NotTaken);
        assert_eq!(state.predict(branch), Direction::Taken);
        let backward = Branch {
            offset: -8,
            ..branch
        };
        let mut state = PredictorState::new(Predictor::BackwardTaken);
        state.update(branch, Direction::Taken);
        assert_eq!(state.predict(branch), Direction::NotTaken);
        assert_eq!(state.predict(backward), Direction::Taken);
    }
}
