//! Counts the kernel's records that a session has lost or could not decode.

use varid_recording::SampleCounts;

/// Counts of records that were lost or could not be decoded.
#[derive(Debug, Default)]
pub struct Losses {
    /// The number of lost records that the kernel has reported.
    lost: u64,
    malformed: u64,
    throttled: u64,
    /// True if /proc was not reread after a loss. Records of mappings, execs and exits may be among the lost ones.
    outdated: bool,
}

impl Losses {
    /// Counts records that the kernel has lost for lack of space.
    pub fn add_lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        self.outdated = true;
    }

    /// Counts a record that could not be decoded.
    pub fn add_malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
        self.outdated = true;
    }

    /// Counts a throttled event.
    pub fn add_throttled(&mut self) {
        self.throttled = self.throttled.saturating_add(1);
    }

    /// Returns true if processes may have changed without a record since the last call.
    pub fn take_outdated(&mut self) -> bool {
        std::mem::take(&mut self.outdated)
    }

    /// Returns the number of lost records that the kernel has not reported yet: it writes the report when the ring has space again.
    /// `no_space` is the number of all lost records.
    pub fn unreported(&self, no_space: u64) -> u64 {
        no_space.saturating_sub(self.lost)
    }

    /// Puts the counts into the manifest's, which counts lost records itself.
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
