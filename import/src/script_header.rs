//! Parses the comments of `perf script --header` about the recording, which precede the samples.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use varid_model::Rate;
use varid_recording::Host;

use crate::{
    limits::{MAX_NAME, MAX_SHORT_NAME, cut},
    recorder_options::rate_of_command,
};

/// The most events that are kept, as in a session.
const MAX_EVENTS: usize = 1_000;

/// The information in the comments of a text. Missing information is empty.
#[derive(Debug, Default)]
pub(crate) struct ScriptHeader {
    pub(crate) command: String,
    pub(crate) host: Host,
    /// The end of the recording: perf uses the modification time of its file.
    pub(crate) captured: Option<SystemTime>,
    /// The events in order, with their sampling rates if they are known.
    events: Vec<(String, Option<Rate>)>,
}

impl ScriptHeader {
    /// Adds the information in a comment.
    pub(crate) fn comment(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else {
            return;
        };
        let value = value.trim();
        match key.trim() {
            "cmdline" => cut(value, MAX_NAME).clone_into(&mut self.command),
            "os release" => cut(value, MAX_SHORT_NAME).clone_into(&mut self.host.kernel),
            "arch" => cut(value, MAX_SHORT_NAME).clone_into(&mut self.host.arch),
            "nrcpus online" => self.host.cpus = value.parse().unwrap_or(0),
            "captured on" => self.captured = time(value),
            "event" if self.events.len() < MAX_EVENTS => self.events.extend(event(value)),
            _ => {}
        }
    }

    /// The sampling rate of an event, from its own line or else from the recorder's command line.
    pub(crate) fn rate(&self, event: &str) -> Option<Rate> {
        let of_event = self
            .place(event)
            .and_then(|place| self.events.get(place)?.1);
        of_event.or_else(|| rate_of_command(&self.command))
    }

    /// The index of an event in the recording.
    pub(crate) fn place(&self, event: &str) -> Option<usize> {
        self.events.iter().position(|(name, _)| name == event)
    }
}

/// `name = cycles, , id = { 5 }, type = 0, …, { sample_period, sample_freq } = 4000, …, freq = 1, …`
fn event(value: &str) -> Option<(String, Option<Rate>)> {
    let rest = value.strip_prefix("name = ")?;
    let ends = [", , ", ", id = ", ", type = "];
    let end = ends.iter().filter_map(|end| rest.find(end)).min()?;
    let (name, attributes) = rest.split_at_checked(end)?;
    let is_frequency = attributes
        .split(", ")
        .any(|attribute| attribute == "freq = 1");
    let number = attributes.split_once("sample_freq } = ");
    let number = number.and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
    let rate = number.filter(|number| *number > 0);
    let rate = rate.map(|number| match is_frequency {
        true => Rate::Frequency(number),
        false => Rate::Period(number),
    });
    Some((cut(name, MAX_SHORT_NAME).to_owned(), rate))
}

/// Parses a time in the format of ctime(3): `Tue Feb 21 03:35:44 2017`. Its time zone is unknown and assumed to be UTC.
fn time(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let words: Vec<_> = text.split_whitespace().collect();
    let [_, month, day, clock, year] = words[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)?;
    let (day, year) = (day.parse::<u64>().ok()?, year.parse::<u64>().ok()?);
    let parts: Option<Vec<u64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts?[..] else {
        return None;
    };
    if !(1970..10_000).contains(&year) || !(1..32).contains(&day) {
        return None;
    }
    // Let years begin in March, so that a leap day is the last day of a year.
    let months = (month as u64).checked_add(10)? % 12;
    let year = year.checked_sub(u64::from(month < 2))?;
    let leap_days = (year / 4)
        .checked_sub(year / 100)?
        .checked_add(year / 400)?;
    let of_months = months.checked_mul(153)?.checked_add(2)? / 5;
    let days = year
        .checked_mul(365)?
        .checked_add(leap_days)?
        .checked_add(of_months)?
        .checked_add(day)?
        // The days from March of the year 0 to 1970.
        .checked_sub(719_469)?;
    let of_day = hours
        .checked_mul(3_600)?
        .checked_add(minutes.checked_mul(60)?)?
        .checked_add(seconds)?;
    let since = days.checked_mul(86_400)?.checked_add(of_day)?;
    UNIX_EPOCH.checked_add(Duration::from_secs(since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_recording::manifest::rfc3339;

    #[test]
    fn times_are_those_of_ctime() {
        for (text, expected) in [
            ("Thu Jan  1 00:00:00 1970", "1970-01-01T00:00:00Z"),
            ("Tue Feb 21 03:35:44 2017", "2017-02-21T03:35:44Z"),
            ("Thu Feb 29 23:59:59 2024", "2024-02-29T23:59:59Z"),
            ("Fri Mar  1 00:00:00 2024", "2024-03-01T00:00:00Z"),
            ("Fri Dec 31 12:00:00 1999", "1999-12-31T12:00:00Z"),
        ] {
            assert_eq!(rfc3339(time(text).unwrap()), expected, "{text}");
        }
        for text in [
            "",
            "Tue Feb 21 03:35 2017",
            "Tue Foo 21 03:35:44 2017",
            "x Feb 99 1:1:1 2017",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn an_event_s_own_line_tells_how_often_it_is_sampled_else_the_command() {
        let mut header = ScriptHeader::default();
        for comment in [
            " cmdline : /usr/bin/perf record -F 99 -a -- sleep -c 5 ",
            " nrcpus online : 4",
            " event : name = cycles:u, , id = { 5, 6 }, type = 0, size = 128, { sample_period, sample_freq } = 5000, sample_type = IP, inherit = 1",
            " event : name = cpu/event=1,umask=2/, , id = { 7 }, type = 4, { sample_period, sample_freq } = 4000, freq = 1, task = 1",
            " event : name = cpu-clock, type = 1, config = 0x0",
        ] {
            header.comment(comment);
        }
        assert_eq!(header.host.cpus, 4);
        assert_eq!(
            (header.place("cpu-clock"), header.place("other")),
            (Some(2), None)
        );
        assert_eq!(header.rate("cycles:u"), Some(Rate::Period(5_000)));
        assert_eq!(
            header.rate("cpu/event=1,umask=2/"),
            Some(Rate::Frequency(4_000))
        );
        assert_eq!(header.rate("cpu-clock"), Some(Rate::Frequency(99)));
        // A period of 0 means that there is none.
        header.comment(" event : name = dummy, , id = { 8 }, type = 1, { sample_period, sample_freq } = 0, freq = 0");
        assert_eq!(header.rate("dummy"), Some(Rate::Frequency(99)));
    }
}
