//! What is a low quantile of some measurements?

/// Returns a quantile of values, interpolated between neighbours. NaN if there are none.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place among measurements in memory"
    )]
    let (place, below) = {
        let place = share * last as f64;
        (place, place.floor() as usize)
    };
    let at = |index: usize| values.get(index.min(last)).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(below), at(below.saturating_add(1)));
    low + (high - low) * place.fract()
}

/// Returns the middle one of values. NaN if there are none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)]
    fn quantiles_are_interpolated() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 0.25), 1.75);
        assert_eq!(median(&mut values), 2.5);
        assert_eq!(quantile(&mut values, 1.0), 4.0);
        assert!(median(&mut []).is_nan());
    }
}
