//! Decides which samples are recorded. The innermost method of the stack that any pattern names decides.

use crate::config::{MethodFilter, Verdict};
use std::collections::HashMap;
use varid_model::ById;
use varid_model::{Address, FrameAddress, Marker, MonotonicNs};
use varid_process::ProcessImage;
use varid_recording::remap;
use varid_recording::remap::marker_at;
use varid_vm::ManagedProcess;
use varid_vm::attribution::RemapTable;

/// Maximum number of addresses with a cached verdict. The cache is emptied when it is full.
const MAX_CACHED: usize = 1 << 16;

/// The reason why a sample is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filtered {
    /// None of its methods is recorded, or one of them is excluded.
    Method,
    /// The same, but missing frames might have changed the decision.
    MethodIncomplete,
}

impl Filtered {
    /// The reason's name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::MethodIncomplete => "method-incomplete",
        }
    }
}

/// Decides by time which of a process's samples are recorded. A process whose samples are all recorded has no gate.
#[derive(Debug)]
pub struct Gate {
    /// The current patterns.
    now: Option<Filter>,
    next: Option<Change>,
}

/// A change of the patterns.
#[derive(Debug)]
struct Change {
    /// The time from which the patterns are valid.
    from: MonotonicNs,
    patterns: Option<Filter>,
}

impl Gate {
    /// Returns a gate that all samples pass.
    pub fn open() -> Self {
        Self {
            now: None,
            next: None,
        }
    }

    /// Changes the patterns from a time on.
    pub fn change(
        &mut self,
        time: MonotonicNs,
        methods: &MethodFilter,
        managed: &mut ManagedProcess,
    ) {
        let mut time = time;
        match self.next.take() {
            // Samples arrive in order of time, so no sample from before the last change remains.
            Some(Change { from, patterns }) if from < time => {
                self.now = patterns;
                managed.invalidate_callchains();
            }
            // A later rule for the same process replaces an earlier one that is not valid yet.
            Some(Change { from, .. }) => time = from,
            None => {}
        }
        self.next = Some(Change {
            from: time,
            patterns: Filter::of(methods),
        });
    }

    /// Returns the patterns that are valid at a sample's time. Samples must be passed in order of time.
    pub fn at(&mut self, time: MonotonicNs, managed: &mut ManagedProcess) -> Option<&mut Filter> {
        if let Some(change) = self.next.take_if(|change| change.from <= time) {
            self.now = change.patterns;
            // The names of the frames may not have been recorded.
            managed.invalidate_callchains();
        }
        self.now.as_mut()
    }
}

/// Patterns, and a cache of their verdicts on the addresses of a process.
#[derive(Debug)]
pub struct Filter {
    methods: MethodFilter,
    by_address: ById<u64, Verdict>,
    /// The mappings of these addresses.
    space: Option<SpaceState>,
    by_method: HashMap<MethodKey, Verdict>,
}

/// Identifies an address space and the state of its mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SpaceState {
    serial: u64,
    changes: u64,
}

/// Identifies a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MethodKey {
    /// The build-id of its dex file.
    dex: [u8; 20],
    /// Its index in the dex file.
    index: u32,
}

impl Filter {
    /// Returns a filter of these patterns, or None if they accept everything.
    pub fn of(methods: &MethodFilter) -> Option<Self> {
        (!methods.is_empty()).then(|| Self {
            methods: methods.clone(),
            by_address: ById::default(),
            space: None,
            by_method: HashMap::new(),
        })
    }

    /// Returns the reason why a sample with this user callchain, leaf first, is not recorded, or None if it is.
    pub fn refuses(
        &mut self,
        user: &[Address],
        managed: &ManagedProcess,
        remap: &RemapTable,
    ) -> Option<Filtered> {
        let space = Some(SpaceState {
            serial: managed.space().serial(),
            changes: managed.space().changes(),
        });
        if self.space != space || self.by_address.len() > MAX_CACHED {
            self.by_address.clear();
            self.space = space;
        }
        let mut incomplete = false;
        for (depth, address) in user.iter().enumerate() {
            let address = FrameAddress::in_callchain(depth, *address).lookup();
            incomplete |= matches!(marker_at(address), Some(Marker::Reason(_)));
            match self.verdict(address, managed, remap) {
                Verdict::Keep => return None,
                Verdict::Drop => return Some(filtered(incomplete)),
                Verdict::Unnamed => {}
            }
        }
        (!self.methods.records_unnamed()).then(|| filtered(incomplete))
    }

    fn verdict(
        &mut self,
        address: Address,
        managed: &ManagedProcess,
        remap: &RemapTable,
    ) -> Verdict {
        if let Some(known) = self.by_address.get(&address.get()) {
            return *known;
        }
        let verdict = self.find(address, managed, remap);
        self.by_address.insert(address.get(), verdict);
        verdict
    }

    fn find(&mut self, address: Address, managed: &ManagedProcess, remap: &RemapTable) -> Verdict {
        if remap::contains(address) {
            return remap
                .name(address.get())
                .map_or(Verdict::Unnamed, |name| self.methods.verdict(plain(name)));
        }
        let Some(mapped) = managed.process.space.at(address.get()) else {
            return Verdict::Unnamed;
        };
        let ProcessImage::Code(dex) = &mapped.image else {
            return Verdict::Unnamed;
        };
        let offset = u32::try_from(mapped.offset_of(address.get())).ok();
        let Some(method) = offset.and_then(|offset| dex.bytecode.method_at(offset)) else {
            return Verdict::Unnamed;
        };
        let methods = &self.methods;
        let verdict = || match dex.bytecode.method_name(method.index) {
            Some(name) => methods.verdict(plain(&name)),
            None => Verdict::Unnamed,
        };
        let known = self.by_method.entry(MethodKey {
            dex: dex.build_id,
            index: method.index,
        });
        *known.or_insert_with(verdict)
    }
}

fn filtered(incomplete: bool) -> Filtered {
    match incomplete {
        true => Filtered::MethodIncomplete,
        false => Filtered::Method,
    }
}

/// Returns a method's name without its parameters.
fn plain(name: &str) -> &str {
    name.split_once('(').map_or(name, |(plain, _)| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MethodPattern;
    use varid_model::Reason;
    use varid_recording::remap::address_of;
    use varid_vm::VmKinds;

    fn process() -> ManagedProcess {
        ManagedProcess::new(varid_model::Pid::new(1), VmKinds::default())
    }

    fn methods(pattern: &str) -> MethodFilter {
        MethodFilter::new(vec![MethodPattern::new(pattern).unwrap()])
    }

    #[test]
    fn patterns_hold_for_samples_from_their_time_on() {
        let mut managed = process();
        let mut gate = Gate::open();
        let mut at = |gate: &mut Gate, time| {
            let filter = gate.at(MonotonicNs::new(time), &mut managed);
            filter.map(|filter| filter.methods.clone())
        };
        gate.change(MonotonicNs::new(100), &methods("a.*"), &mut process());
        assert_eq!(at(&mut gate, 99), None);
        assert_eq!(at(&mut gate, 100), Some(methods("a.*")));
        gate.change(MonotonicNs::new(200), &methods("b.*"), &mut process());
        assert_eq!(at(&mut gate, 199), Some(methods("a.*")));
        // The previous change has not been reached yet.
        gate.change(
            MonotonicNs::new(300),
            &MethodFilter::default(),
            &mut process(),
        );
        assert_eq!(at(&mut gate, 299), Some(methods("b.*")));
        assert_eq!(at(&mut gate, 300), None);
        // The new change is earlier than a pending one.
        gate.change(MonotonicNs::new(500), &methods("c.*"), &mut process());
        gate.change(MonotonicNs::new(400), &methods("d.*"), &mut process());
        assert_eq!(at(&mut gate, 499), None);
        assert_eq!(at(&mut gate, 500), Some(methods("d.*")));
    }

    #[test]
    fn a_sample_with_missing_frames_is_counted_separately() {
        let (managed, remap) = (process(), RemapTable::new().unwrap());
        let torn = address_of(Marker::Reason(Reason::TornFrames)).get() + 1;
        let why = |pattern: &str, user: &[u64]| {
            let mut filter = Filter::of(&methods(pattern)).unwrap();
            let user: Vec<_> = user.iter().copied().map(Address::new).collect();
            filter.refuses(&user, &managed, &remap)
        };
        assert_eq!(why("a.*", &[0x1000, 0x2001]), Some(Filtered::Method));
        assert_eq!(
            why("a.*", &[0x1000, torn]),
            Some(Filtered::MethodIncomplete)
        );
        assert_eq!(why("a.*", &[]), Some(Filtered::Method));
        // Native frames that were left out are not methods.
        let native = address_of(Marker::Native).get() + 1;
        assert_eq!(why("a.*", &[0x1000, native]), Some(Filtered::Method));
        assert_eq!(why("!a.*", &[0x1000, torn]), None);
        assert!(Filter::of(&MethodFilter::default()).is_none());
    }
}
