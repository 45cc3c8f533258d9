//! Where do functions start and end, whether they have names or not?

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};

/// Function bounds from an `.eh_frame` section: start, end, sorted by start.
///
/// A broken entry is left out, a broken section ends the list: what was read stands.
pub(super) fn bounds(
    section: &[u8],
    address: u64,
    text: u64,
    big_endian: bool,
    address_size: u8,
) -> Vec<(u64, u64)> {
    let endian = if big_endian {
        RunTimeEndian::Big
    } else {
        RunTimeEndian::Little
    };
    let mut frames = EhFrame::from(EndianSlice::new(section, endian));
    frames.set_address_size(address_size);
    let bases = BaseAddresses::default()
        .set_eh_frame(address)
        .set_text(text);
    let mut found = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(frame) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        let start = frame.initial_address();
        let end = start.saturating_add(frame.len());
        // A linker that dropped a function leaves its frame at zero.
        if start != 0 && end > start {
            found.push((start, end));
        }
    }
    found.sort_unstable();
    found
}
