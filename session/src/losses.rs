//! Which records of the kernel did a session not get, or not understand?

use varid_recording::SampleCounts;

/// Counts of records that were lost or could not be decoded.
#[derive(Debug, Default)]
pub struct Losses {
    /// Lost records that the kernel has reported.
    lost: u64,
    malformed: u64,
    throttled: u64,
    /// Records of mappings, execs and exits may be among them, and /proc was not reread since.
    outdated: bool,
}

impl Losses {
    /// The kernel had no room for so many records.
    pub fn add_lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        self.outdated = true;
    }

    /// A record could not be decoded.
    pub fn add_malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
        self.outdated = true;
    }

    /// The kernel has stopped an event for a while.
    pub fn add_throttled(&mut self) {
        self.throttled = self.throttled.saturating_add(1);
    }

    /// Whether processes may have changed without a record since the last call.
    pub fn take_outdated(&mut self) -> bool {
        std::mem::take(&mut self.outdated)
    }

    /// How many records are lost that the kernel has not reported yet: it writes the report when the ring has room again. `no_space` is the
    /// number of all lost records.
    pub fn unreported(&self, no_space: u64) -> u64 {
        no_space.saturating_sub(self.lost)
    }

    /// Puts the counts in the manifest's, which counts lost records itself.
    pub fn write_to(&self, counts: &mut SampleCounts) {
        counts.throttled = self.throttled;
        counts.malformed = self.malformed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_missing_makes_processes_outdated_once() {
        let mut losses = Losses::default();
        losses.add_throttled();
        assert!(!losses.take_outdated());
        losses.add_lost(3);
        assert!(losses.take_outdated() && !losses.take_outdated());
        losses.add_malformed();
        assert!(losses.take_outdated());
        assert_eq!((losses.unreported(5), losses.unreported(2)), (2, 0));
    }
}
