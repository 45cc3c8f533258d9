//! Is a sample recorded? Of its stack the innermost method that a pattern names decides.

use crate::config::{MethodFilter, Verdict};
use std::collections::HashMap;
use varid_model::ById;
use varid_model::{Address, FrameAddress, Marker, MonotonicNs};
use varid_process::Image;
use varid_recording::remap;
use varid_recording::remap::marker_at;
use varid_vm::ManagedProcess;
use varid_vm::attribution::RemapTable;

/// Addresses whose verdict is remembered; more begin anew.
const REMEMBERED: usize = 1 << 16;

/// Why a sample is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filtered {
    /// None of its methods is to be, or one is to be left out.
    Method,
    /// The same, but frames are missing that might have been others.
    MethodIncomplete,
}

impl Filtered {
    /// As the manifest names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::MethodIncomplete => "method-incomplete",
        }
    }
}

/// Which of a process's samples are recorded, from when on. A process all of whose samples are has none.
#[derive(Debug)]
pub struct Gate {
    /// The patterns now.
    now: Option<Filter>,
    /// Those from a time on.
    next: Option<(MonotonicNs, Option<Filter>)>,
}

impl Gate {
    /// One that lets everything pass.
    pub fn open() -> Self {
        Self {
            now: None,
            next: None,
        }
    }

    /// From a time on other patterns stand.
    pub fn change(
        &mut self,
        time: MonotonicNs,
        methods: &MethodFilter,
        managed: &mut ManagedProcess,
    ) {
        let mut time = time;
        match self.next.take() {
            // Samples come in order of time, and soon: of before the last change there is none left.
            Some((from, next)) if from < time => {
                self.now = next;
                managed.forget_callchains();
            }
            // One that was told of first, and stands only later, stands no more.
            Some((from, _)) => time = from,
            None => {}
        }
        self.next = Some((time, Filter::of(methods)));
    }

    /// The patterns that stand at a sample's time, which is not before that of the sample before.
    pub fn at(&mut self, time: MonotonicNs, managed: &mut ManagedProcess) -> Option<&mut Filter> {
        if self.next.as_ref().is_some_and(|(from, _)| *from <= time) {
            self.now = self.next.take().and_then(|(_, next)| next);
            // What they stand for may not have been recorded.
            managed.forget_callchains();
        }
        self.now.as_mut()
    }
}

/// Patterns, and what they say of the addresses of a process.
#[derive(Debug)]
pub struct Filter {
    methods: MethodFilter,
    by_address: ById<u64, Verdict>,
    /// The address space that they are of, and the state of its mappings.
    space: (u64, u64),
    by_method: HashMap<([u8; 20], u32), Verdict>,
}

impl Filter {
    /// None is needed where everything is recorded.
    pub fn of(methods: &MethodFilter) -> Option<Self> {
        (!methods.is_empty()).then(|| Self {
            methods: methods.clone(),
            by_address: ById::default(),
            space: (0, 0),
            by_method: HashMap::new(),
        })
    }

    /// Why a sample with this user callchain, leaf first, is not recorded; None: it is.
    pub fn refuses(
        &mut self,
        user: &[Address],
        managed: &ManagedProcess,
        remap: &RemapTable,
    ) -> Option<Filtered> {
        let space = (managed.space().serial(), managed.space().changes());
        if self.space != space || self.by_address.len() > REMEMBERED {
            self.by_address.clear();
            self.space = space;
        }
        let mut incomplete = false;
        for (depth, address) in user.iter().enumerate() {
            let address = FrameAddress::in_callchain(depth, *address).lookup();
            incomplete |= matches!(marker_at(address), Some(Marker::Reason(_)));
            match self.verdict(address.get(), managed, remap) {
                Verdict::Keep => return None,
                Verdict::Drop => return Some(filtered(incomplete)),
                Verdict::Silent => {}
            }
        }
        (!self.methods.keeps_the_unnamed()).then(|| filtered(incomplete))
    }

    fn verdict(&mut self, address: u64, managed: &ManagedProcess, remap: &RemapTable) -> Verdict {
        if let Some(known) = self.by_address.get(&address) {
            return *known;
        }
        let verdict = self.find(address, managed, remap);
        self.by_address.insert(address, verdict);
        verdict
    }

    fn find(&mut self, address: u64, managed: &ManagedProcess, remap: &RemapTable) -> Verdict {
        if remap::contains(Address::new(address)) {
            return remap
                .name(address)
                .map_or(Verdict::Silent, |name| self.methods.verdict(plain(name)));
        }
        let Some(mapped) = managed.process.space.at(address) else {
            return Verdict::Silent;
        };
        let Image::Code(dex) = &mapped.image else {
            return Verdict::Silent;
        };
        let offset = address
            .wrapping_sub(mapped.start)
            .wrapping_add(mapped.pgoff);
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        let Some(method) = dex.bytecode.method_at(offset) else {
            return Verdict::Silent;
        };
        let methods = &self.methods;
        let verdict = || match dex.bytecode.method_name(method.index) {
            Some(name) => methods.verdict(plain(&name)),
            None => Verdict::Silent,
        };
        let known = self.by_method.entry((dex.build_id, method.index));
        *known.or_insert_with(verdict)
    }
}

fn filtered(incomplete: bool) -> Filtered {
    match incomplete {
        true => Filtered::MethodIncomplete,
        false => Filtered::Method,
    }
}

/// A method's name without the parameters that tell it from others of its name.
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
        ManagedProcess::new(1, VmKinds::default())
    }

    fn methods(pattern: &str) -> MethodFilter {
        MethodFilter::new(vec![MethodPattern::new(pattern).unwrap()])
    }

    #[test]
    fn patterns_stand_for_samples_from_their_time_on() {
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
        // A change before the last one was reached.
        gate.change(
            MonotonicNs::new(300),
            &MethodFilter::default(),
            &mut process(),
        );
        assert_eq!(at(&mut gate, 299), Some(methods("b.*")));
        assert_eq!(at(&mut gate, 300), None);
        // One of a time that a change already waits for, or has gone by.
        gate.change(MonotonicNs::new(500), &methods("c.*"), &mut process());
        gate.change(MonotonicNs::new(400), &methods("d.*"), &mut process());
        assert_eq!(at(&mut gate, 499), None);
        assert_eq!(at(&mut gate, 500), Some(methods("d.*")));
    }

    #[test]
    fn what_is_not_recorded_for_want_of_frames_is_told_apart() {
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
        // Left out native frames are no methods.
        let native = address_of(Marker::Native).get() + 1;
        assert_eq!(why("a.*", &[0x1000, native]), Some(Filtered::Method));
        assert_eq!(why("!a.*", &[0x1000, torn]), None);
        assert!(Filter::of(&MethodFilter::default()).is_none());
    }
}
