//! Formats numbers as C's `%g` does.

/// Formats `number` with six significant digits, as C does: `0.1`, `1e+10`, `3.14159`, `-nan`.
pub(super) fn general(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return format!("{sign}nan");
    }
    if number.is_infinite() {
        return format!("{sign}inf");
    }
    // Round to six digits first: that determines the notation.
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(5i32.saturating_sub(exponent)) {
        Ok(decimals) if exponent >= -4 => trimmed(&format!("{number:.decimals$}")).to_owned(),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(digits), exponent.unsigned_abs())
        }
    }
}

/// Removes trailing zeros after the decimal point.
fn trimmed(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_read_as_c_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (100_000.0, "100000"),
            (999_999.5, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_1, "0.0001"),
            (0.000_099_999_96, "0.0001"),
            (0.000_012_345_67, "1.23457e-05"),
            (5e-324, "4.94066e-324"),
            (f64::MAX, "1.79769e+308"),
            (f64::from(1e-45_f32), "1.4013e-45"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}
