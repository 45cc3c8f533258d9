//! The basis of the tests: samples, sessions, or both.

use super::session::SessionShares;

/// The basis of a comparison's tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestedBy {
    /// One session on each side.
    Sample,
    /// Several sessions.
    SessionAndSample,
    /// Several sessions with waits or exact counts. The number of waits does not indicate their duration, and an exact
    /// count has no sampling error.
    Session,
    /// One session with waits or exact counts on each side.
    Nothing,
}

impl TestedBy {
    /// Determines the basis for two sides.
    pub fn of(sides: [&[SessionShares]; 2]) -> Self {
        let mut all = sides.into_iter().flatten();
        let only_by_session = all.any(|session| !session.varies_by_sample());
        match (sides.iter().any(|side| side.len() > 1), only_by_session) {
            (false, false) => Self::Sample,
            (true, false) => Self::SessionAndSample,
            (true, true) => Self::Session,
            (false, true) => Self::Nothing,
        }
    }

    /// Combines the p-values by sample and by session. None if it cannot be tested. A difference by session must also
    /// be significant by sample, because a few equal samples in each session of a side have no variance.
    pub fn probability(self, by_sample: f64, by_session: Option<f64>) -> Option<f64> {
        match self {
            Self::Sample => Some(by_sample),
            Self::SessionAndSample => {
                Some(by_session.map_or(by_sample, |by_session| by_session.max(by_sample)))
            }
            Self::Session => by_session,
            Self::Nothing => None,
        }
    }

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::SessionAndSample | Self::Session => "session",
            Self::Nothing => "nothing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TestedBy;

    #[test]
    fn the_larger_p_counts_but_of_waits_only_that_by_session() {
        let by_session = Some(0.01);
        assert_eq!(TestedBy::Sample.probability(0.2, None), Some(0.2));
        let both = TestedBy::SessionAndSample;
        assert_eq!(both.probability(0.2, by_session), Some(0.2));
        assert_eq!(both.probability(0.001, by_session), by_session);
        assert_eq!(TestedBy::Session.probability(1.0, by_session), by_session);
        assert_eq!(TestedBy::Nothing.probability(1e-9, None), None);
    }
}
