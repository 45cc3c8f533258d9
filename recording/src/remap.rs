//! What do the addresses of the remap range mean?
//!
//! The range starts with markers: fixed addresses, one every 16 bytes, that stand in a
//! callchain where a frame is missing. Slot 0 is `[native]`: native frames that were left out
//! on purpose. After it comes one slot per [`Reason`]. [`FIRST_METHOD`] is where the slots of
//! methods without bytecode of their own start; their sizes are those of their code.
//!
//! A marker never stands for the leaf: the leaf is always what the PMU saw. A sample is
//! unattributed exactly if its callchain holds the marker of a reason.

use crate::record::{REMAP_BASE, REMAP_SIZE};

/// Bytes of address space of a marker.
pub const SLOT_SIZE: u64 = 16;

/// Slots that are set aside for markers, so that reasons can be added and old recordings
/// keep their meaning.
pub const MARKER_SLOTS: u64 = 64;

/// The first address that is not a marker's.
pub const FIRST_METHOD: u64 = REMAP_BASE + SLOT_SIZE * MARKER_SLOTS;

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

    /// The address that stands for it in a callchain.
    #[must_use]
    pub const fn address(self) -> u64 {
        // The discriminants count the slots of the reasons; both are far below MARKER_SLOTS.
        let slot = match self {
            Self::Native => 0,
            Self::Reason(reason) => (reason as u64).saturating_add(1),
        };
        REMAP_BASE.saturating_add(SLOT_SIZE.saturating_mul(slot))
    }

    /// The marker at this address: any byte of its slot, so that a caller's address minus one
    /// is not needed (markers are written without the + 1 of return addresses).
    #[must_use]
    #[inline]
    pub fn at(address: u64) -> Option<Self> {
        let slot = address.checked_sub(REMAP_BASE)?.checked_div(SLOT_SIZE)?;
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

/// Whether an address lies in the remap range.
#[must_use]
#[inline]
pub fn contains(address: u64) -> bool {
    address
        .checked_sub(REMAP_BASE)
        .is_some_and(|offset| offset < REMAP_SIZE)
}

/// Why a sample with this user callchain counts as unattributed: the first reason's marker
/// from the leaf on. `None`: it is attributed.
#[must_use]
pub fn unattributed(user: &[u64]) -> Option<Reason> {
    // Most chains have no marker: all of it is looked at at once, without a branch for each.
    const MARKERS: u64 = SLOT_SIZE * MARKER_SLOTS;
    let is_marker = |address: &u64| address.wrapping_sub(REMAP_BASE) < MARKERS;
    if !user
        .iter()
        .fold(false, |any, address| any | is_marker(address))
    {
        return None;
    }
    user.iter().find_map(|&address| match Marker::at(address) {
        Some(Marker::Reason(reason)) => Some(reason),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_is_found_at_every_byte_of_its_own_slot_only() {
        for (slot, marker) in Marker::all().enumerate() {
            assert_eq!(marker.address(), REMAP_BASE + 16 * slot as u64);
            assert_eq!(Marker::at(marker.address()), Some(marker));
            assert_eq!(Marker::at(marker.address() + 15), Some(marker));
        }
        assert_eq!(Marker::at(REMAP_BASE - 1), None);
        assert_eq!(Marker::at(FIRST_METHOD), None);
        assert_eq!(Marker::at(FIRST_METHOD - 1), None);
    }

    #[test]
    fn reasons_stand_in_the_order_of_their_slots_and_fit() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(reason.symbol(), format!("[{}]", reason.name()));
        }
        assert!((Reason::ALL.len() as u64) < MARKER_SLOTS);
    }

    #[test]
    fn left_out_native_frames_do_not_make_a_sample_unattributed() {
        let native = Marker::Native.address();
        let torn = Marker::Reason(Reason::TornFrames).address();
        assert_eq!(unattributed(&[1, native, 2]), None);
        assert_eq!(unattributed(&[1, native, torn]), Some(Reason::TornFrames));
    }
}
