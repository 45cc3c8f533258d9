//! What is to be known of an imported recording besides its records?

use std::collections::BTreeMap;

/// Counts of what is not in the session as it was recorded, and notes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Samples that are not imported, by the reason.
    pub(crate) excluded: BTreeMap<String, u64>,
    pub(crate) notes: Vec<String>,
    /// Frames of virtual machines.
    pub(crate) guest_frames: u64,
    losses: Losses,
    /// Samples that the recorder's filter let go.
    filtered_out: u64,
    /// Records that were older than one before.
    late: u64,
    latest: u64,
}

/// What ring buffers had no room for, by two counts of the same.
#[derive(Debug, Default)]
struct Losses {
    /// The kernel's, while it recorded: none of what it lost last.
    told: u64,
    /// The recorder's at its end.
    in_all: u64,
}

impl Tally {
    /// With these notes.
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

    /// A record of this time is written.
    pub(crate) fn passed(&mut self, time: u64) {
        if time < self.latest {
            add(&mut self.late, 1);
        }
        self.latest = self.latest.max(time);
    }

    /// A sample is not imported.
    pub(crate) fn exclude(&mut self, reason: &str) {
        add(self.excluded.entry(reason.to_owned()).or_default(), 1);
    }

    /// The kernel told of so many lost records.
    pub(crate) fn lost(&mut self, count: u64) {
        add(&mut self.losses.told, count);
    }

    /// The recorder counted so many lost records of an event in all.
    pub(crate) fn lost_in_all(&mut self, count: u64) {
        add(&mut self.losses.in_all, count);
    }

    /// What was lost and the kernel did not tell.
    pub(crate) const fn unreported(&self) -> u64 {
        self.losses.in_all.saturating_sub(self.losses.told)
    }

    /// The recorder's filter let so many samples go.
    pub(crate) fn filtered_out(&mut self, count: u64) {
        add(&mut self.filtered_out, count);
    }

    /// Adds notes of what was counted.
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
        // Of two events, the last losses of which the kernel did not tell.
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
