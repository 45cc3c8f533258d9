//! The request's settings for sampling that only the command line can give.

use crate::config::PERIODS;
use crate::config::settings::check_within;
use serde::{Deserialize, Serialize};
use varid_sampler::ShimKind;
use varid_sampler::event::WaitKind;

/// Default number of pages of each CPU's ring.
pub const RING_PAGES: usize = 2048;

/// How samples are taken: the settings that a configuration file cannot contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingRequest {
    /// Also sample off-CPU time (off-cpu and runnable), with this many nanoseconds per sample. 0: use the rate.
    pub off_cpu: Option<u64>,
    /// The source that walks frames, or None for the best one that works here.
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
    /// Checks that the off-CPU period and the size of the ring are valid.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(period) = self.off_cpu.filter(|ns| *ns > 0) {
            check_within("off-CPU period", period, &PERIODS)?;
        }
        check_pages(self.ring_pages)
    }

    /// Returns the events of off-CPU time, in the syntax of `-e`.
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

/// Checks the size of a ring.
///
/// # Errors
///
/// It is not a power of two, or outside the bounds.
pub fn check_pages(pages: usize) -> Result<(), String> {
    if !pages.is_power_of_two() || !(16..=1 << 18).contains(&pages) {
        return Err("a ring has a power of two of pages, from 16 to 262144".to_owned());
    }
    Ok(())
}
