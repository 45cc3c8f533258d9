//! Counts and notes of an import, besides its records.

use std::collections::BTreeMap;

/// Counts of what was lost or left out, and notes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Samples that are not imported, by reason.
    pub(crate) excluded: BTreeMap<String, u64>,
    pub(crate) notes: Vec<String>,
    /// Frames of virtual machines.
    pub(crate) guest_frames: u64,
    losses: Losses,
    /// Samples that the recorder's filter dropped.
    filtered_out: u64,
    /// Records that were older than an earlier one.
    late: u64,
    latest: u64,
}

/// Losses of ring buffers, by two counts of the same losses.
#[derive(Debug, Default)]
struct Losses {
    /// The kernel's reports during the recording. They do not include the last losses.
    told: u64,
    /// The recorder's totals at its end.
    in_all: u64,
}

impl Tally {
    /// Makes a tally with these notes.
    pub(crate) fn new(notes: Vec<String>) -> Self {
        Self {
            notes,
            ..Self::default()
        }
    }

    /// The latest time of a record.
    pub(crate) const fn latest(&self) -> u64 {
        self.latest
    }

    /// Adds the time of a record that is written.
    pub(crate) fn passed(&mut self, time: u64) {
        if time < self.latest {
            add(&mut self.late, 1);
        }
        self.latest = self.latest.max(time);
    }

    /// Counts a sample that is not imported.
    pub(crate) fn exclude(&mut self, reason: &str) {
        add(self.excluded.entry(reason.to_owned()).or_default(), 1);
    }

    /// Adds lost records that the kernel reported.
    pub(crate) fn lost(&mut self, count: u64) {
        add(&mut self.losses.told, count);
    }

    /// Adds the recorder's total of an event's lost records.
    pub(crate) fn lost_in_all(&mut self, count: u64) {
        add(&mut self.losses.in_all, count);
    }

    /// The losses that the kernel did not report.
    pub(crate) const fn unreported(&self) -> u64 {
        self.losses.in_all.saturating_sub(self.losses.told)
    }

    /// Adds samples that the recorder's filter dropped.
    pub(crate) fn filtered_out(&mut self, count: u64) {
        add(&mut self.filtered_out, count);
    }

    /// Adds notes on the counts.
    pub(crate) fn note_counts(&mut self) {
        let Self {
            late,
            guest_frames: guests,
            filtered_out: filtered,
            ..
        } = *self;
        let notes = [
            (late, format!("{late} records were out of order of time")),
            (
                guests,
                format!("{guests} frames of virtual machines are left out of callchains"),
            ),
            (
                filtered,
                format!("perf record --filter left out {filtered} samples, which were not lost"),
            ),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        self.notes.extend(notes.map(|(_, note)| note));
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_are_counted_twice_are_lost_once() {
        let mut tally = Tally::default();
        tally.lost(5);
        tally.lost(3);
        assert_eq!(tally.unreported(), 0);
        // Two events. The kernel did not report the last losses.
        tally.lost_in_all(6);
        tally.lost_in_all(4);
        assert_eq!(tally.unreported(), 2);
    }

    #[test]
    fn what_is_counted_is_noted() {
        let mut tally = Tally::new(vec!["first".to_owned()]);
        tally.note_counts();
        assert_eq!(tally.notes.len(), 1);
        for time in [2, 1, 3] {
            tally.passed(time);
        }
        tally.filtered_out(7);
        tally.note_counts();
        assert!(tally.notes[1].starts_with("1 records"), "{:?}", tally.notes);
        assert!(tally.notes[2].contains("7 samples"), "{:?}", tally.notes);
    }
}
