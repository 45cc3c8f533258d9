//! Why is something missing of a sample, and what stands in its place?

/// Why a sample is not, or not fully, attributed. The order is that of the slots: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An address lay in no mapping that is known of its process.
    UnknownMapping,
    /// The managed frames were in the middle of a change, or contradicted themselves.
    TornFrames,
    /// A frame pointed to code or a method that had been freed or reused by then.
    StaleSlot,
    /// The record had no room for all frames.
    Truncated,
    /// The VM had gone when the sample was resolved.
    VmGone,
    /// The VM had not started up, or its layout had not been read yet.
    VmNotReady,
    /// A native frame's code has no unwind information.
    NoUnwindInfo,
    /// A stretch of native stack was not where its registers said.
    StackUnreadable,
    /// A managed frame's method could not be named from its dex file.
    UnknownMethod,
    /// The VM's build or layout is not known, or failed its check.
    UnknownVm,
    /// Code compiled by ART: its frames are not walked yet.
    ArtQuick,
}

impl Reason {
    /// Every reason, in the order of the slots.
    pub const ALL: [Self; 11] = [
        Self::UnknownMapping,
        Self::TornFrames,
        Self::StaleSlot,
        Self::Truncated,
        Self::VmGone,
        Self::VmNotReady,
        Self::NoUnwindInfo,
        Self::StackUnreadable,
        Self::UnknownMethod,
        Self::UnknownVm,
        Self::ArtQuick,
    ];

    /// The stable name, in kebab case: in manifests, reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownMapping => "unknown-mapping",
            Self::TornFrames => "torn-frames",
            Self::StaleSlot => "stale-slot",
            Self::Truncated => "truncated",
            Self::VmGone => "vm-gone",
            Self::VmNotReady => "vm-not-ready",
            Self::NoUnwindInfo => "no-unwind-info",
            Self::StackUnreadable => "stack-unreadable",
            Self::UnknownMethod => "unknown-method",
            Self::UnknownVm => "unknown-vm",
            Self::ArtQuick => "art-quick",
        }
    }

    /// The marker's symbol: the name in brackets.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::UnknownMapping => "[unknown-mapping]",
            Self::TornFrames => "[torn-frames]",
            Self::StaleSlot => "[stale-slot]",
            Self::Truncated => "[truncated]",
            Self::VmGone => "[vm-gone]",
            Self::VmNotReady => "[vm-not-ready]",
            Self::NoUnwindInfo => "[no-unwind-info]",
            Self::StackUnreadable => "[stack-unreadable]",
            Self::UnknownMethod => "[unknown-method]",
            Self::UnknownVm => "[unknown-vm]",
            Self::ArtQuick => "[art-quick]",
        }
    }
}

/// A frame that stands where knowledge is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Marker {
    /// Native frames that were left out on purpose (`--stack vertical`).
    Native,
    /// Frames that could not be had.
    Reason(Reason),
}

impl Marker {
    /// Every marker, in the order of the slots.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Native).chain(Reason::ALL.into_iter().map(Self::Reason))
    }

    /// Its place among all markers.
    #[must_use]
    pub const fn slot(self) -> u64 {
        match self {
            Self::Native => 0,
            // The discriminants count the slots of the reasons.
            Self::Reason(reason) => (reason as u64).saturating_add(1),
        }
    }

    /// The marker in this slot.
    #[must_use]
    #[inline]
    pub fn in_slot(slot: u64) -> Option<Self> {
        match slot.checked_sub(1) {
            None => Some(Self::Native),
            Some(index) => Reason::ALL
                .get(usize::try_from(index).ok()?)
                .copied()
                .map(Self::Reason),
        }
    }

    /// The symbol that it has in `symbols/remap.elf` and in reports.
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
    fn reasons_and_markers_stand_in_the_order_of_their_slots() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(reason.symbol(), format!("[{}]", reason.name()));
        }
        for (slot, marker) in Marker::all().enumerate() {
            assert_eq!(marker.slot(), slot as u64);
            assert_eq!(Marker::in_slot(slot as u64), Some(marker));
        }
        assert_eq!(Marker::in_slot(Marker::all().count() as u64), None);
    }
}
