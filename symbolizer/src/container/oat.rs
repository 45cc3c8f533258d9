//! Finds the dex files in an oat file, the ELF file into which Android 5 to 7 compile an app.
//!
//! The dynamic symbol `oatdata` points to ART's own header. An OatDexFile for each dex file follows it, and the dex files are in the same
//! section. From Android 8 on, they are in the .vdex file beside the oat file.

use super::ContainerEntry;
use super::input::Input;
use crate::Result;
use object::{Object, ObjectSegment, ObjectSymbol, ReadRef};

/// The layout of the headers in a version of the format.
struct Layout {
    /// Bytes of the header before the key-value store.
    header: u64,
    /// What follows the offset of the dex file in an OatDexFile.
    after: After,
}

enum After {
    /// A 32-bit number for each of its classes.
    PerClass,
    /// This many bytes.
    Bytes(u64),
}

/// The dex files of an oat file.
pub(super) fn entries<'d, R: ReadRef<'d>>(
    input: &Input<'_, R>,
) -> Result<Vec<Result<ContainerEntry>>> {
    let (start, end) = oatdata(input)?;
    let at = |offset: u64| start.saturating_add(offset);
    if input.bytes("oat magic", start, 4)? != b"oat\n" {
        return Err(input.bad("oat magic", start, "there is no oat header here"));
    }
    let layout = match input.version("oat version", at(4))? {
        // Android 5.0 and 5.1, with three additional entry points.
        39 | 45 => Layout {
            header: 84,
            after: After::PerClass,
        },
        // Android 6.
        64 => Layout {
            header: 72,
            after: After::PerClass,
        },
        // Android 7.0 and 7.1: offsets of the class table and of the lookup table.
        79 | 88 => Layout {
            header: 72,
            after: After::Bytes(8),
        },
        version @ 124.. => {
            let problem =
                format!("its dex files (version {version:03}) are in the .vdex file beside it");
            return Err(input.bad("oat version", at(4), problem));
        }
        version => {
            let problem = format!("{version:03} is none of 039, 045, 064, 079 and 088");
            return Err(input.bad("oat version", at(4), problem));
        }
    };
    let count = input.u32("dex_file_count", at(20))?;
    let store = input.u32("key_value_store_size", at(layout.header.saturating_sub(4)))?;
    let mut cursor = at(layout.header).saturating_add(u64::from(store));
    let mut entries = Vec::new();
    for _ in 0..count {
        match one(input, &layout, start, end, &mut cursor) {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                entries.push(Err(error));
                break;
            }
        }
    }
    Ok(super::refuse_overlaps(input, entries))
}

/// Reads the OatDexFile at `cursor` and advances it. The outer error means that the next one cannot be found.
fn one<'d, R: ReadRef<'d>>(
    input: &Input<'_, R>,
    layout: &Layout,
    start: u64,
    end: u64,
    cursor: &mut u64,
) -> Result<Result<ContainerEntry>> {
    /// The longest path on Linux (PATH_MAX).
    const MAX_LOCATION: u32 = 4096;
    let len = input.u32("dex_file_location_size", *cursor)?;
    if len > MAX_LOCATION {
        let problem = format!("a location of {len} bytes");
        return Err(input.bad("dex_file_location_size", *cursor, problem));
    }
    let location_at = cursor.saturating_add(4);
    let location = input.bytes("dex_file_location", location_at, len.into())?;
    // A checksum precedes the offset.
    let offset_at = location_at.saturating_add(len.into()).saturating_add(4);
    let offset = start.saturating_add(input.u32("dex_file_offset", offset_at)?.into());
    *cursor = offset_at.saturating_add(4);
    let extent = input.dex(offset, end);
    *cursor = cursor.saturating_add(match layout.after {
        After::Bytes(bytes) => bytes,
        After::PerClass if extent.is_ok() => {
            let classes = input.u32("class_defs_size", offset.saturating_add(0x60))?;
            u64::from(classes).saturating_mul(4)
        }
        After::PerClass => 0,
    });
    let name = String::from_utf8_lossy(location).into_owned();
    match (extent, &layout.after) {
        (Ok(extent), _) => Ok(Ok(ContainerEntry::plain(name, offset, extent.whole))),
        (Err(error), After::Bytes(_)) => Ok(Err(error)),
        (Err(error), After::PerClass) => Err(error),
    }
}

/// The file offset of the symbol `oatdata`, and the end of its segment.
fn oatdata<'d, R: ReadRef<'d>>(input: &Input<'_, R>) -> Result<(u64, u64)> {
    let elf = crate::parse_elf(input.data)
        .map_err(|error| input.bad("ELF header", 0, error.to_string()))?;
    let address = elf
        .dynamic_symbols()
        .find(|symbol| symbol.name_bytes() == Ok(b"oatdata"))
        .ok_or_else(|| input.bad("dynamic symbols", 0, "an ELF file without 'oatdata'"))?
        .address();
    elf.segments()
        .find_map(|segment| {
            let (start, size) = segment.file_range();
            let into = address
                .checked_sub(segment.address())
                .filter(|into| *into < size)?;
            Some((start.saturating_add(into), start.saturating_add(size)))
        })
        .ok_or_else(|| input.bad("oatdata", address, "lies in none of the file's segments"))
}
