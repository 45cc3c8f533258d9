//! Defines the meaning of the addresses in the remap range.
//!
//! The range starts with markers: fixed addresses, one every 16 bytes, that stand in a callchain where a frame is missing. Slot 0 is
//! `[native]`: native frames that were left out on purpose. One slot for each [`Reason`] follows. The slots of methods without bytecode of
//! their own start at [`FIRST_METHOD`]. Each has the size of the method's code.
//!
//! A marker never stands for the leaf: the leaf is always what the PMU saw. A sample is unattributed exactly if its callchain has the
//! marker of a reason.

use crate::record::{REMAP_BASE, REMAP_SIZE};
use varid_model::{Address, FrameAddress, Marker, Reason};

/// The size of a marker's slot, in bytes.
pub const SLOT_SIZE: u64 = 16;

/// The number of slots reserved for markers, so that reasons can be added and old recordings keep their meaning.
pub const MARKER_SLOTS: u64 = 64;

/// The first address after the markers.
pub const FIRST_METHOD: u64 = REMAP_BASE + SLOT_SIZE * MARKER_SLOTS;

/// Where the framework's part of the range starts. The app's comes first, with the markers.
pub const FRAMEWORK_BASE: u64 = REMAP_BASE + REMAP_SIZE / 2;

/// Where the VM's part of the range starts: its last sixteenth.
pub const VM_BASE: u64 = REMAP_BASE + REMAP_SIZE / 16 * 15;

/// The files of the parts, among the session's symbols.
pub const APP_FILE: &str = "remap.elf";
/// See [`APP_FILE`].
pub const FRAMEWORK_FILE: &str = "remap-framework.elf";
/// See [`APP_FILE`].
pub const VM_FILE: &str = "remap-vm.elf";

/// Where in a part's file its addresses start. Nothing has a name at zero: perf asks addr2line for it behind each address, and
/// waits for an answer that says nothing.
pub const FILE_OFFSET: u64 = 0x1000;

/// Returns the address that stands for a marker in a callchain.
#[must_use]
pub const fn address_of(marker: Marker) -> Address {
    // Both factors are far below MARKER_SLOTS.
    Address::new(REMAP_BASE.saturating_add(SLOT_SIZE.saturating_mul(marker.slot())))
}

/// Returns the marker whose slot has this address. Any byte of the slot counts, so that a recorded address finds it as well as a lookup
/// address.
#[must_use]
#[inline]
pub fn marker_at(address: Address) -> Option<Marker> {
    let slot = address
        .get()
        .checked_sub(REMAP_BASE)?
        .checked_div(SLOT_SIZE)?;
    // Libraries lie above the range.
    match slot < MARKER_SLOTS {
        true => Marker::in_slot(slot),
        false => None,
    }
}

/// Returns true if an address lies in the remap range.
#[must_use]
#[inline]
pub fn contains(address: Address) -> bool {
    address
        .get()
        .checked_sub(REMAP_BASE)
        .is_some_and(|offset| offset < REMAP_SIZE)
}

/// Returns the address that shows which function a frame belongs to. This is [`FrameAddress::lookup`], except for a slot of the remap
/// range, which holds no code and calls nothing.
#[must_use]
#[inline]
pub fn lookup(frame: FrameAddress) -> Address {
    match frame.recorded() {
        slot if contains(slot) => slot,
        _ => frame.lookup(),
    }
}

/// Returns why a sample with this user callchain counts as unattributed: the reason of the first such marker from the leaf on. `None` if it
/// is attributed.
#[must_use]
pub fn unattributed(user: &[Address]) -> Option<Reason> {
    // Most chains have no marker, so the whole chain is checked at once, without a branch for each address.
    const MARKERS: u64 = SLOT_SIZE * MARKER_SLOTS;
    let is_marker = |address: &Address| address.get().wrapping_sub(REMAP_BASE) < MARKERS;
    if !user
        .iter()
        .fold(false, |any, address| any | is_marker(address))
    {
        return None;
    }
    user.iter().find_map(|&address| match marker_at(address) {
        Some(Marker::Reason(reason)) => Some(reason),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_is_found_at_every_byte_of_its_own_slot_only() {
        let at = |number: u64| marker_at(Address::new(number));
        for marker in Marker::all() {
            let address = address_of(marker).get();
            assert_eq!(address, REMAP_BASE + 16 * marker.slot());
            assert!(marker.slot() < MARKER_SLOTS);
            assert_eq!(at(address), Some(marker));
            assert_eq!(at(address + 15), Some(marker));
        }
        assert_eq!(at(REMAP_BASE - 1), None);
        assert_eq!(at(FIRST_METHOD), None);
        assert_eq!(at(FIRST_METHOD - 1), None);
        assert_eq!(at(u64::MAX), None);
    }

    #[test]
    fn a_caller_is_looked_up_at_its_call_unless_it_is_no_code() {
        let place = |number: u64| FrameAddress::in_callchain(1, Address::new(number));
        assert_eq!(lookup(place(0x1001)), Address::new(0x1000));
        assert_eq!(lookup(place(FIRST_METHOD)), Address::new(FIRST_METHOD));
    }

    #[test]
    fn left_out_native_frames_do_not_make_a_sample_unattributed() {
        let native = address_of(Marker::Native);
        let torn = address_of(Marker::Reason(Reason::TornFrames));
        let [leaf, caller] = [1, 2].map(Address::new);
        assert_eq!(unattributed(&[leaf, native, caller]), None);
        let reason = Some(Reason::TornFrames);
        assert_eq!(unattributed(&[leaf, native, torn]), reason);
    }
}
