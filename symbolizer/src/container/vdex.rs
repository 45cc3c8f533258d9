//! Finds the dex files in a .vdex file, in which Android 8 and later keep what they have verified.
//!
//! | version | Android | what holds the dex files |
//! |---|---|---|
//! | 006, 010 | 8.0, 8.1 | everything after the header and one checksum for each |
//! | 019 | 9 | a section of version 002, each file after the offset of its quickening table |
//! | 021 to 026 | 10, 11 | the same, after a longer header |
//! | 027 | 12 and later | a section named in a table |
//!
//! From 019 on, the files may be compact, and share the data that follows the last of them. On Android 10 and later, an app's own .vdex
//! file usually has no dex files: the VM then uses those of the APK.

use super::ContainerEntry;
use super::input::Input;
use crate::Result;
use object::ReadRef;

/// The kinds of the sections that hold the dex files, and a checksum for each of them.
const DEX_SECTION: u32 = 1;
const CHECKSUM_SECTION: u32 = 0;

/// The region that holds the dex files, one after the other.
struct Files {
    /// Offset of the first, including its prefix.
    start: u64,
    /// Offset after the last.
    end: u64,
    /// End of the data that they share.
    data_end: u64,
    count: u64,
    /// Size of the prefix of each file, in bytes.
    prefix: u64,
}

/// The dex files of a .vdex file.
pub(super) fn entries<'d, R: ReadRef<'d>>(
    input: &Input<'_, R>,
) -> Result<Vec<Result<ContainerEntry>>> {
    let files = match input.version("vdex version", 4)? {
        6 | 10 => one_header(input)?,
        19 => section_after(input, 20)?,
        21..=26 => section_after(input, 28)?,
        27 => section_table(input)?,
        version => {
            return Err(input.bad(
                "vdex version",
                4,
                format!("{version:03} is none of 006, 010, 019 and 021 to 027"),
            ));
        }
    };
    Ok(files.map_or_else(Vec::new, |files| files.walk(input)))
}

fn one_header<'d, R: ReadRef<'d>>(input: &Input<'_, R>) -> Result<Option<Files>> {
    let count = u64::from(input.u32("number_of_dex_files", 8)?);
    let size = u64::from(input.u32("dex_size", 12)?);
    let start = count.saturating_mul(4).saturating_add(24);
    let end = start.saturating_add(size);
    Ok((size != 0).then_some(Files {
        start,
        end,
        data_end: end,
        count,
        prefix: 0,
    }))
}

fn section_after<'d, R: ReadRef<'d>>(input: &Input<'_, R>, header: u64) -> Result<Option<Files>> {
    match input.version("dex section version", 8)? {
        0 => return Ok(None),
        2 => {}
        version => {
            return Err(input.bad(
                "dex section version",
                8,
                format!("{version:03} is neither 000 nor 002"),
            ));
        }
    }
    let count = u64::from(input.u32("number_of_dex_files", 12)?);
    let section = count.saturating_mul(4).saturating_add(header);
    let size = u64::from(input.u32("dex_size", section)?);
    let shared = u64::from(input.u32("dex_shared_data_size", section.saturating_add(4))?);
    let start = section.saturating_add(12);
    let end = start.saturating_add(size);
    Ok(Some(Files {
        start,
        end,
        data_end: end.saturating_add(shared),
        count,
        prefix: 4,
    }))
}

fn section_table<'d, R: ReadRef<'d>>(input: &Input<'_, R>) -> Result<Option<Files>> {
    /// Four kinds are known. A larger table is rejected.
    const MAX_SECTIONS: u32 = 64;
    let sections = input.u32("number_of_sections", 8)?;
    if sections > MAX_SECTIONS {
        let problem = format!("{sections} are more than there are kinds of them");
        return Err(input.bad("number_of_sections", 8, problem));
    }
    let (mut dex, mut count) = (None, 0);
    for section in 0..u64::from(sections) {
        let at = section.saturating_mul(12).saturating_add(12);
        let kind = input.u32("section_kind", at)?;
        let start = u64::from(input.u32("section_offset", at.saturating_add(4))?);
        let size = u64::from(input.u32("section_size", at.saturating_add(8))?);
        match kind {
            DEX_SECTION if size != 0 => dex = Some((start, start.saturating_add(size))),
            CHECKSUM_SECTION => count = size / 4,
            _ => {}
        }
    }
    Ok(dex.map(|(start, end)| Files {
        start,
        end,
        data_end: end,
        count,
        prefix: 0,
    }))
}

impl Files {
    /// The end of each file is the start of the next one, so nothing can be found after a broken one.
    fn walk<'d, R: ReadRef<'d>>(&self, input: &Input<'_, R>) -> Vec<Result<ContainerEntry>> {
        /// The most compact dex files that may each claim the whole section as their data. Apps have fewer.
        const MAX_SHARING: u64 = 64;
        let mut entries = Vec::new();
        let mut at = self.start;
        let mut left = input.len().saturating_mul(MAX_SHARING);
        for index in 0..self.count {
            if at >= self.end {
                let problem = format!("there are only {index} of {} dex files", self.count);
                entries.push(Err(input.bad("dex section", self.start, problem)));
                break;
            }
            let offset = at.saturating_add(self.prefix);
            let extent = input.dex(offset, self.data_end).and_then(|extent| {
                left = left.checked_sub(extent.whole).ok_or_else(|| {
                    let problem = "so many files share data that it is read without end";
                    input.bad("data_size", offset.saturating_add(0x68), problem)
                })?;
                Ok(extent)
            });
            match extent {
                Ok(extent) => {
                    let name = super::classes_dex(index);
                    // The data of the only file is not shared.
                    let own_len = if self.count == 1 {
                        extent.whole
                    } else {
                        extent.own
                    };
                    entries.push(Ok(ContainerEntry {
                        own_len,
                        ..ContainerEntry::plain(name, offset, extent.whole)
                    }));
                    at = offset.saturating_add(extent.own).saturating_add(3) & !3;
                }
                Err(error) => {
                    entries.push(Err(error));
                    break;
                }
            }
        }
        entries
    }
}
