//! By what differences are tested: by samples, by sessions, or by both.

use super::session::SessionShares;

/// What the tests of a comparison are by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestedBy {
    /// One session a side.
    Sample,
    /// Several sessions.
    SessionAndSample,
    /// Several sessions, of waits or of exact counts. The number of waits says nothing of how long they take, and an exact count has no error
    /// of sampling.
    Session,
    /// One session of these a side.
    Nothing,
}

impl TestedBy {
    /// Of two sides.
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

    /// How likely a difference is by chance, of how likely it is by sample and by session; none: that cannot be said. By session it must be
    /// unlikely by sample, too: the same few samples in each session of a side do not vary.
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

    /// Its name in JSON.
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
