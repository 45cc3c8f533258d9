//! Makes the callchain of a sample of perf.data.

use varid_model::perf::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};
use varid_model::{Address, FrameAddress};

use crate::perfdata::SourceSample;

/// `PERF_CONTEXT_HV`.
const CONTEXT_HV: u64 = (-32i64).cast_unsigned();

/// The form in which a recorder writes callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// As return addresses, as the kernel does.
    Returns,
    /// As addresses within the call. simpleperf does that for all callchains.
    Calls,
}

/// A sample's addresses in the form of a session.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) kernel: Vec<Address>,
    pub(crate) user: Vec<Address>,
    /// Number of frames that belong neither to the kernel nor to the user: those of a guest.
    pub(crate) others: u64,
}

impl Chain {
    /// Takes the addresses of a sample's callchain, or its instruction if it has none.
    pub(crate) fn fill(&mut self, sample: &SourceSample<'_>, callers: Callers, in_kernel: bool) {
        self.kernel.clear();
        self.user.clear();
        self.others = 0;
        let own = match in_kernel {
            true => PERF_CONTEXT_KERNEL,
            false => PERF_CONTEXT_USER,
        };
        let addresses = sample
            .callchain
            .into_iter()
            .flat_map(|chain| chain.addresses());
        for (context, address) in addresses {
            let frames = match context.unwrap_or(own) {
                PERF_CONTEXT_KERNEL | CONTEXT_HV => &mut self.kernel,
                PERF_CONTEXT_USER => &mut self.user,
                _ => {
                    self.others = self.others.saturating_add(1);
                    continue;
                }
            };
            let frame = match callers {
                Callers::Calls if !frames.is_empty() => {
                    FrameAddress::calling_at(address).recorded()
                }
                _ => address,
            };
            frames.push(frame);
        }
        // The branch stack has all callers of the user's code. The kernel's callchain only has those with frame pointers.
        if let Some(calls) = sample.calls.filter(|calls| !calls.is_empty())
            && !self.user.is_empty()
        {
            self.user.truncate(1);
            let callers = calls.addresses().map(FrameAddress::calling_at);
            self.user.extend(callers.map(FrameAddress::recorded));
        }
        if self.kernel.is_empty()
            && self.user.is_empty()
            && let Some(ip) = sample.ip
        {
            let frames = match in_kernel {
                true => &mut self.kernel,
                false => &mut self.user,
            };
            frames.push(Address::new(ip));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::Calls;
    use varid_model::perf::CallchainEntries;

    #[test]
    fn each_part_has_a_leaf_and_callers() {
        let words = [PERF_CONTEXT_KERNEL, 10, 20, PERF_CONTEXT_USER, 30, 40];
        let words = words.map(u64::to_le_bytes);
        let sample = SourceSample {
            ip: Some(10),
            callchain: Some(CallchainEntries::new(&words)),
            ..SourceSample::default()
        };
        let addresses = |numbers: [u64; 2]| numbers.map(Address::new).to_vec();
        let mut chain = Chain::default();
        chain.fill(&sample, Callers::Returns, true);
        assert_eq!(
            (chain.kernel, chain.user),
            (addresses([10, 20]), addresses([30, 40]))
        );
        let mut chain = Chain::default();
        chain.fill(&sample, Callers::Calls, true);
        assert_eq!(
            (chain.kernel, chain.user),
            (addresses([10, 21]), addresses([30, 41]))
        );
    }

    #[test]
    fn recorded_calls_stand_for_the_user_s_callers() {
        let words = [PERF_CONTEXT_KERNEL, 10, 20, PERF_CONTEXT_USER, 30, 40];
        let words = words.map(u64::to_le_bytes);
        let branches = [50, 30, 0, 60, 50, 0].map(u64::to_le_bytes);
        let addresses = |numbers: &[u64]| numbers.iter().copied().map(Address::new).collect();
        let filled = |words, branches| {
            let sample = SourceSample {
                ip: Some(10),
                callchain: Some(CallchainEntries::new(words)),
                calls: Some(Calls::new(branches)),
                ..SourceSample::default()
            };
            let mut chain = Chain::default();
            chain.fill(&sample, Callers::Returns, true);
            (chain.kernel, chain.user)
        };
        let kernel: Vec<_> = addresses(&[10, 20]);
        assert_eq!(
            filled(&words, &branches),
            (kernel.clone(), addresses(&[30, 51, 61]))
        );
        // An empty branch stack is ignored. So is that of a kernel thread, which has no user code.
        assert_eq!(filled(&words, &[]), (kernel.clone(), addresses(&[30, 40])));
        assert_eq!(filled(&words[..3], &branches), (kernel, Vec::new()));
    }

    #[test]
    fn without_a_callchain_the_instruction_is_the_only_frame() {
        let sample = SourceSample {
            ip: Some(10),
            ..SourceSample::default()
        };
        let mut chain = Chain::default();
        chain.fill(&sample, Callers::Returns, false);
        assert_eq!(
            (chain.kernel.len(), chain.user),
            (0, vec![Address::new(10)])
        );
    }
}
