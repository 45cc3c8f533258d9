//! Parses and formats times and sizes.

use std::time::Duration;

/// Parses a time: a number with `ms`, `s`, `m` or `h`, or in seconds without a unit.
///
/// # Errors
///
/// The text is not a time, or is out of range.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("'{unit}' is no unit of time: ms, s, m and h are")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no duration, as 10, 500ms or 2m are"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

/// Formats a duration so that [`duration`] can parse it.
pub fn duration_text(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    let seconds = duration.as_secs();
    match (seconds, nanoseconds) {
        (0, _) | (_, 1..) => {
            let part = format!("{nanoseconds:09}");
            format!("{seconds}.{part}s")
        }
        (h, 0) if h % 3600 == 0 => format!("{}h", h / 3600),
        (m, 0) if m % 60 == 0 => format!("{}m", m / 60),
        (s, 0) => format!("{s}s"),
    }
}

/// Parses a size in bytes: a number, with KB, MB or GB for powers of 1000, or with KiB, MiB or GiB for powers of 1024.
///
/// # Errors
///
/// The text is not a size, or is out of range.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let unit: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => {
            return Err(format!(
                "'{unit}' is no unit of size: B, KB, MB, GB, KiB, MiB and GiB are"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no size, as '256 MB' is"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("'{text}' is more than can be counted"))
}

/// Formats a size so that [`size`] can parse it.
pub fn size_text(size: u64) -> String {
    for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")] {
        if let Some(number) = size.checked_div(unit).filter(|_| size.is_multiple_of(unit))
            && number > 0
        {
            return format!("{number} {name}");
        }
    }
    format!("{size} B")
}

fn split(text: &str) -> (&str, &str) {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "x", "1d", "-1", "1e400", "1 h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256 MB"), Ok(256_000_000));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "MB", "1.5 MB", "1 mb", "-1", "99999999999999 GB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0u64..1 << 30, nanos in 0u32..1_000_000_000, bytes: u64) {
            prop_assert_eq!(size(&size_text(bytes)), Ok(bytes));
            let whole = Duration::from_secs(seconds);
            prop_assert_eq!(duration(&duration_text(whole)), Ok(whole));
            let part = Duration::new(seconds >> 12, nanos / 1000 * 1000);
            let read = duration(&duration_text(part)).unwrap();
            prop_assert!(read.abs_diff(part) < Duration::from_micros(1));
        }
    }
}
