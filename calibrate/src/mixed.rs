//! Which instructions are in mixed units, in any format?

use fastrand::Rng;

/// The number of mixed units.
const UNITS: u64 = 160;
/// The number of phrases in each: as many that programs are full of as of any others.
const PHRASES: usize = 24;

/// Returns the names and the instructions of units of random phrases. They are the same each time. `common`: phrases that programs are full of.
pub(crate) fn bodies<I: Clone>(
    common: &[Vec<I>],
    others: &[Vec<I>],
) -> impl Iterator<Item = (String, Vec<I>)> {
    (0..UNITS).map(move |seed| {
        let mut random = Rng::with_seed(seed);
        let mut body = Vec::new();
        for phrase in 0..PHRASES {
            let from = if phrase % 2 == 0 { common } else { others };
            body.extend(random.choice(from).into_iter().flatten().cloned());
        }
        (format!("mixed {seed}"), body)
    })
}
