//! Parses and checks a time span of a recording.

use std::{fmt, str::FromStr, time::Duration};

/// A time span relative to the start of the recording, including its start and excluding its end. The syntax is `A..B`,
/// in seconds or with `s`, `ms` or `us`. Without A it starts with the recording; without B it ends with the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    start: Duration,
    end: Option<Duration>,
}

/// The error for an invalid [`TimeSpan`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeSpanError {
    /// The two dots are missing.
    #[error("a span is A..B, in seconds since the start: 1.5..3, 500ms..2s, 10.., ..0.5")]
    NoSpan,
    /// One of the times is invalid.
    #[error("'{0}' is no time: 1.5, 2s, 500ms and 20us are some")]
    NoTime(String),
    /// The end precedes the start.
    #[error("it ends before it begins")]
    Empty,
}

/// Returns a duration in nanoseconds. A `u64` holds 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl TimeSpan {
    /// Makes a span. Without an end it lasts until the end of the recording.
    ///
    /// # Errors
    ///
    /// The end is not after the start.
    pub fn new(start: Duration, end: Option<Duration>) -> Result<Self, TimeSpanError> {
        if end.is_some_and(|end| end <= start) {
            return Err(TimeSpanError::Empty);
        }
        Ok(Self { start, end })
    }

    /// Returns true if the span contains a time since the start of the recording.
    #[must_use]
    pub fn contains(&self, since_start: Duration) -> bool {
        since_start >= self.start && self.end.is_none_or(|end| since_start < end)
    }

    /// Returns the part of the span that lies in a recording of this duration.
    #[must_use]
    pub fn length_in(&self, recording: Duration) -> Duration {
        let end = self.end.map_or(recording, |end| end.min(recording));
        end.saturating_sub(self.start)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.start.as_secs_f64())?;
        match self.end {
            Some(end) => write!(f, "{}", end.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl FromStr for TimeSpan {
    type Err = TimeSpanError;

    fn from_str(text: &str) -> Result<Self, TimeSpanError> {
        let (start, end) = text.split_once("..").ok_or(TimeSpanError::NoSpan)?;
        let optional = |text: &str| match text.trim() {
            "" => Ok(None),
            text => time(text)
                .map(Some)
                .ok_or_else(|| TimeSpanError::NoTime(text.to_owned())),
        };
        Self::new(optional(start)?.unwrap_or_default(), optional(end)?)
    }
}

/// `1.5`, `2s`, `500ms`, `20us`.
fn time(text: &str) -> Option<Duration> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("", 1.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))?;
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = number.trim().parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(number * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::{TimeSpan, TimeSpanError};
    use std::time::Duration;

    #[test]
    fn a_span_has_its_begin_and_not_its_end() {
        for (text, inside, outside) in [
            ("1.5..3", &[1_500, 2_999][..], &[1_499, 3_000][..]),
            ("500ms..2s", &[500, 1_999], &[499, 2_000]),
            ("2000us..", &[2, u64::MAX], &[1]),
            ("..0.5", &[0, 499], &[500]),
            ("..", &[0, u64::MAX], &[]),
        ] {
            let span: TimeSpan = text.parse().unwrap();
            let contains = |ms: &u64| span.contains(Duration::from_millis(*ms));
            assert!(inside.iter().all(contains), "{text}");
            assert!(!outside.iter().any(contains), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_says_why() {
        let error = |text: &str| text.parse::<TimeSpan>().unwrap_err();
        assert_eq!(error("1"), TimeSpanError::NoSpan);
        for bad in [
            "a..2", "1..2..3", "-1..2", "1e400..", "nan..", "1h..2h", ".s..2",
        ] {
            assert!(matches!(error(bad), TimeSpanError::NoTime(_)), "{bad}");
        }
        assert_eq!(error("3..1"), TimeSpanError::Empty);
        assert_eq!(error("1..1"), TimeSpanError::Empty);
    }

    #[test]
    fn a_span_is_shown_as_it_is_written() {
        for (text, shown) in [("500ms..2", "0.5..2"), ("..1", "0..1"), ("1..", "1..")] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().to_string(), shown);
        }
    }
}
