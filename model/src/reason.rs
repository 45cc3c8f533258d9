//! Why a part of a sample is missing, and the marker that stands for it.

/// Why a sample is not attributed, or only partly. The numbers are the slots of the markers, so reasons may only be appended. (3 was never
/// written.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An address is in no known mapping of its process.
    UnknownMapping = 1,
    /// The managed frames were being changed, or were inconsistent.
    TornFrames = 2,
    /// The record had no room for all frames.
    Truncated = 4,
    /// The process had ended before one of its methods could be read.
    VmGone = 5,
    /// The VM had not started yet, or its layout had not been read yet.
    VmNotReady = 6,
    /// A native frame's code has no unwind information.
    NoUnwindInfo = 7,
    /// A part of a native stack was not where its registers pointed.
    StackUnreadable = 8,
    /// A managed frame's method could not be found in its dex file.
    UnknownMethod = 9,
    /// The VM's build or layout is not known, or failed its check.
    UnknownVm = 10,
    /// The method or the instruction of a compiled frame, or of a similar interpreter frame, is not known. The name `art-quick` is from the
    /// time when only ART had such frames.
    UnknownCompiledCode = 11,
    /// For a wait off the CPU, only the leaf is known: the stacks were not captured.
    NotCaptured = 12,
    /// The VM keeps the outer frames of a virtual thread in the heap.
    VirtualThread = 13,
}

impl Reason {
    /// Every reason, in the order of the slots.
    pub const ALL: [Self; 12] = [
        Self::UnknownMapping,
        Self::TornFrames,
        Self::Truncated,
        Self::VmGone,
        Self::VmNotReady,
        Self::NoUnwindInfo,
        Self::StackUnreadable,
        Self::UnknownMethod,
        Self::UnknownVm,
        Self::UnknownCompiledCode,
        Self::NotCaptured,
        Self::VirtualThread,
    ];

    /// The stable name in kebab case, as in manifests, reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownMapping => "unknown-mapping",
            Self::TornFrames => "torn-frames",
            Self::Truncated => "truncated",
            Self::VmGone => "vm-gone",
            Self::VmNotReady => "vm-not-ready",
            Self::NoUnwindInfo => "no-unwind-info",
            Self::StackUnreadable => "stack-unreadable",
            Self::UnknownMethod => "unknown-method",
            Self::UnknownVm => "unknown-vm",
            Self::UnknownCompiledCode => "art-quick",
            Self::NotCaptured => "not-captured",
            Self::VirtualThread => "virtual-thread",
        }
    }

    /// A description of the reason.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::UnknownMapping => "code at an address where no mapping is known",
            Self::TornFrames => "the VM was changing its frames",
            Self::Truncated => "the stack is deeper than what is kept of it",
            Self::VmGone => "the process had ended before the method was read: let it run longer",
            Self::VmNotReady => "the VM was still starting",
            Self::NoUnwindInfo => "native code without unwind information",
            Self::StackUnreadable => "a part of the stack could not be read",
            Self::UnknownMethod => "the method is not named in its dex file",
            Self::UnknownVm => "this build of the VM is not known",
            Self::UnknownCompiledCode => "code that the VM has compiled and that is not known",
            Self::NotCaptured => "of a wait only the leaf is known",
            Self::VirtualThread => "the VM keeps the callers in a virtual thread in the heap",
        }
    }

    /// The marker's symbol: the name in brackets.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::UnknownMapping => "[unknown-mapping]",
            Self::TornFrames => "[torn-frames]",
            Self::Truncated => "[truncated]",
            Self::VmGone => "[vm-gone]",
            Self::VmNotReady => "[vm-not-ready]",
            Self::NoUnwindInfo => "[no-unwind-info]",
            Self::StackUnreadable => "[stack-unreadable]",
            Self::UnknownMethod => "[unknown-method]",
            Self::UnknownVm => "[unknown-vm]",
            Self::UnknownCompiledCode => "[art-quick]",
            Self::NotCaptured => "[not-captured]",
            Self::VirtualThread => "[virtual-thread]",
        }
    }
}

/// A frame that stands for missing frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Marker {
    /// Native frames that were left out on purpose (`--stack vertical`).
    Native,
    /// Frames that are missing for a reason.
    Reason(Reason),
}

impl Marker {
    /// Every marker, in the order of the slots.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Native).chain(Reason::ALL.into_iter().map(Self::Reason))
    }

    /// Its number in the slots for markers.
    #[must_use]
    pub const fn slot(self) -> u64 {
        match self {
            Self::Native => 0,
            Self::Reason(reason) => reason as u64,
        }
    }

    /// The marker in this slot.
    #[must_use]
    #[inline]
    pub fn in_slot(slot: u64) -> Option<Self> {
        Self::all().find(|marker| marker.slot() == slot)
    }

    /// Its symbol in `symbols/remap.elf` and in reports.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Native => "[native]",
            Self::Reason(reason) => reason.symbol(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_stand_in_the_order_of_their_slots() {
        for reason in Reason::ALL {
            assert_eq!(reason.symbol(), format!("[{}]", reason.name()));
        }
        for marker in Marker::all() {
            assert_eq!(Marker::in_slot(marker.slot()), Some(marker));
        }
        assert!(Marker::all().is_sorted_by_key(Marker::slot));
        assert_eq!(Marker::in_slot(3), None);
        assert_eq!(Marker::in_slot(14), None);
    }
}
