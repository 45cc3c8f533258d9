//! Finds the bounds of functions, with or without names.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, Error, RunTimeEndian, UnwindOffset,
    UnwindSection,
};

use super::parts::Section;
use super::reader::ElfReader;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// Start and end of each function.
type Bounds = Vec<(u64, u64)>;

/// The bounds of functions.
#[derive(Debug)]
pub(super) struct Functions {
    /// Sorted by start.
    bounds: Bounds,
    /// False if an entry can stand for several functions: in ARM's table, linkers merge neighbours with equal unwind instructions.
    exact: bool,
}

impl Functions {
    /// All bounds (start and end), sorted by start.
    pub(super) fn all(&self) -> &[(u64, u64)] {
        &self.bounds
    }

    /// The bounds that stand for one function each.
    pub(super) fn exact(&self) -> &[(u64, u64)] {
        if self.exact { &self.bounds } else { &[] }
    }
}

/// Reads the bounds of functions from a file and the files that belong to it: from `.eh_frame` and `.debug_frame`, or else from
/// `.ARM.exidx`.
///
/// A broken entry is left out. A broken section ends the list, and the entries before are used.
pub(super) fn of(images: &[&ElfReader<'_>]) -> Functions {
    let mut bounds = read(images, ".eh_frame", eh_frame);
    bounds.extend(read(images, ".debug_frame", debug_frame));
    let exact = !bounds.is_empty();
    if !exact {
        bounds = read(images, ".ARM.exidx", exidx);
    }
    bounds.sort_unstable();
    bounds.dedup();
    Functions { bounds, exact }
}

/// The bounds in the first section with that name that has any.
fn read(
    images: &[&ElfReader<'_>],
    name: &str,
    read: impl Fn(&ElfReader<'_>, &Section, &[u8]) -> Bounds,
) -> Bounds {
    let of = |image: &&ElfReader<'_>| {
        let section = image.section(name)?;
        let mut bounds = read(image, section, &image.bytes(section).ok()?);
        // For a function that was dropped, the linker leaves an entry with address zero.
        bounds.retain(|&(start, end)| start != 0 && start < end);
        Some(bounds).filter(|bounds| !bounds.is_empty())
    };
    images.iter().find_map(of).unwrap_or_default()
}

fn eh_frame(image: &ElfReader<'_>, section: &Section, bytes: &[u8]) -> Bounds {
    let mut frames = EhFrame::from(Slice::new(bytes, image.encoding().endian()));
    frames.set_address_size(image.encoding().address_size());
    let text = image.section(".text").map_or(0, |text| text.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address)
        .set_text(text);
    entries(&frames, &bases)
}

fn debug_frame(image: &ElfReader<'_>, _: &Section, bytes: &[u8]) -> Bounds {
    let mut frames = DebugFrame::from(Slice::new(bytes, image.encoding().endian()));
    frames.set_address_size(image.encoding().address_size());
    entries(&frames, &BaseAddresses::default())
}

fn entries<'d, S: UnwindSection<Slice<'d>>>(frames: &S, bases: &BaseAddresses) -> Bounds {
    let mut found = Vec::new();
    // CIEs precede the FDEs that refer to them, so each is read once.
    let mut common = HashMap::new();
    let mut entries = frames.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        match entry {
            CieOrFde::Cie(entry) => {
                common.insert(entry.offset(), entry);
            }
            CieOrFde::Fde(partial) => {
                let frame = partial.parse(|_, _, at| {
                    let at = UnwindOffset::into(at);
                    common.get(&at).cloned().ok_or(Error::NotCieId(at as u64))
                });
                if let Ok(frame) = frame {
                    let start = frame.initial_address();
                    found.push((start, start.saturating_add(frame.len())));
                }
            }
        }
    }
    found
}

/// ARM's index has the start of each function as a distance from the entry itself. A function ends at the start of the next one, the last
/// one at the end of its section.
fn exidx(image: &ElfReader<'_>, section: &Section, bytes: &[u8]) -> Bounds {
    let starts: Vec<u64> = bytes
        .chunks_exact(8)
        .zip((section.address..).step_by(8))
        .filter_map(|(entry, address)| {
            // A signed number of 31 bits. Bit 0 means Thumb.
            let distance = image.encoding().u32(entry, 0)?;
            let distance = i64::from(((distance << 1) as i32) >> 1);
            Some(address.wrapping_add_signed(distance) & 0xffff_fffe)
        })
        .collect();
    let end = starts.last().and_then(|&last| {
        image
            .sections
            .iter()
            .filter(|section| section.is_executable())
            .map(|section| {
                (
                    section.address,
                    section.address.saturating_add(section.size),
                )
            })
            .find_map(|(start, end)| (start <= last && last < end).then_some(end))
    });
    let ends = starts.iter().skip(1).copied().chain(end);
    starts.iter().copied().zip(ends).collect()
}
