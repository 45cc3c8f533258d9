//! How are samples taken?

use crate::config::PERIODS;
use crate::config::settings::check_within;
use serde::{Deserialize, Serialize};
use varid_sampler::ShimKind;
use varid_sampler::event::WaitKind;

/// Pages of each CPU's ring by default.
pub const RING_PAGES: usize = 2048;

/// How samples are taken, as far as only a command line can say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingRequest {
    /// Beside the events the time that threads do not run, off-cpu and runnable, with a sample of so many nanoseconds; 0: as the rate has
    /// it.
    pub off_cpu: Option<u64>,
    /// Where frames are walked; None: the best source that works here.
    pub shim: Option<ShimKind>,
    /// Pages of each CPU's ring, a power of two.
    pub ring_pages: usize,
}

impl Default for SamplingRequest {
    fn default() -> Self {
        Self {
            off_cpu: None,
            shim: None,
            ring_pages: RING_PAGES,
        }
    }
}

impl SamplingRequest {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(period) = self.off_cpu.filter(|ns| *ns > 0) {
            check_within("off-CPU period", period, &PERIODS)?;
        }
        check_pages(self.ring_pages)
    }

    /// The events of the time off CPU, as `-e` takes them.
    pub(super) fn off_cpu_events(&self) -> impl Iterator<Item = String> {
        let kinds = self.off_cpu.map(|period| {
            WaitKind::ALL.into_iter().map(move |kind| match period {
                0 => kind.name().to_owned(),
                _ => format!("{}/period={period}/", kind.name()),
            })
        });
        kinds.into_iter().flatten()
    }
}

/// Checks that a ring may have so many pages.
///
/// # Errors
///
/// It may not.
pub fn check_pages(pages: usize) -> Result<(), String> {
    if !pages.is_power_of_two() || !(16..=1 << 18).contains(&pages) {
        return Err("a ring has a power of two of pages, from 16 to 262144".to_owned());
    }
    Ok(())
}
