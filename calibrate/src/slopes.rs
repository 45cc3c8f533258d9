//! How long does one repetition of each unit take?

use crate::quantile::quantile;

/// The low quantile of the times of a run that stands for it. Times are quantised to cycles, and the predictor of the processor has several stable
/// states: a minimum shows the rarest of them, a mean what other programs do.
const SHARE: f64 = 0.25;

/// The times of one repetition of each timer in a round, in nanoseconds, in the order of timers.
pub type Round = Vec<f64>;

/// The rounds of one VM. Units lie at other places, and the VM itself does, in each.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// Returns what one repetition takes, by the times of a short and of a long run, in their unit.
pub fn slope(short: &mut [f64], long: &mut [f64], more_repetitions: f64) -> f64 {
    (quantile(long, SHARE) - quantile(short, SHARE)) / more_repetitions
}
