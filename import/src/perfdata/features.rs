//! The features of a perf.data file, which describe its recording.

use std::collections::HashMap;

use varid_model::perf::{
    Fields, Malformed, RECORD_HEADER,
    file::{HEADER_BUILD_ID, MISC_BUILD_ID_SIZE},
};

use super::{damage::Damage, event_index::EventIndex, events::SourceEvent};

/// The features of perf, and after them those of simpleperf (`record_file.h`).
mod bit {
    pub(super) use varid_model::perf::file::feature::*;
    pub(super) const FILE: u32 = 128;
    pub(super) const META_INFO: u32 = 129;
    pub(super) const FILE2: u32 = 132;
}

/// A feature: its bit, its bytes, and their offset in the file.
pub(super) type Section = (u32, Vec<u8>, u64);

/// Returns true if a feature is used.
pub(super) const fn is_read(feature: u32) -> bool {
    matches!(
        feature,
        bit::TRACING_DATA
            | bit::BUILD_ID
            | bit::HOSTNAME
            | bit::OSRELEASE
            | bit::ARCH
            | bit::NRCPUS
            | bit::CMDLINE
            | bit::EVENT_DESC
            | bit::DIR_FORMAT
            | bit::FILE
            | bit::META_INFO
            | bit::FILE2
    )
}

/// The description of the recording. Missing information is empty.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Features {
    /// The machine's name.
    pub host_name: String,
    /// The kernel's release.
    pub kernel: String,
    /// The machine as in uname(2).
    pub arch: String,
    /// Number of CPUs that were online.
    pub cpus: u32,
    /// The recorder's command line.
    pub command: Vec<String>,
    /// The format of the tracepoints' raw data, as perf keeps it.
    pub tracing_data: Vec<u8>,
    /// The recording is a folder, in which other files also have records.
    pub is_folder: bool,
    /// Build-ids by path.
    pub build_ids: HashMap<String, Vec<u8>>,
    /// Information that simpleperf has about its recording.
    pub meta_info: HashMap<String, String>,
    /// simpleperf's files with their symbols: the bytes, and whether they have the first version of the format.
    pub files: Vec<(Vec<u8>, bool)>,
}

/// Returns the feature in a record of a pipe.
pub(super) fn of_record(body: Vec<u8>, offset: u64) -> Option<Section> {
    let bit = u64::from_le_bytes(*body.first_chunk::<8>()?);
    let rest = body.get(8..)?.to_vec();
    Some((u32::try_from(bit).ok()?, rest, offset))
}

/// Returns the feature of tracepoints in a record of a pipe.
pub(super) const fn tracing_data(content: Vec<u8>, offset: u64) -> Section {
    (bit::TRACING_DATA, content, offset)
}

/// Converts a build-id record to the feature's form: with a header, whose size covers only this record.
pub(super) fn build_id_record(body: Vec<u8>, offset: u64) -> Section {
    let size = body.len().saturating_add(RECORD_HEADER);
    let mut record = HEADER_BUILD_ID.to_le_bytes().to_vec();
    record.extend(0u16.to_le_bytes());
    record.extend(u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes());
    record.extend(body);
    (bit::BUILD_ID, record, offset)
}

impl Features {
    /// Returns true if simpleperf wrote the file.
    #[must_use]
    pub fn is_simpleperf(&self) -> bool {
        !self.meta_info.is_empty()
    }

    /// The names of simpleperf's events.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        let types = self.meta_info.get("event_type_info");
        let lines = types.map_or("", String::as_str).lines();
        // A name may contain commas.
        lines.map(|line| line.rsplitn(3, ',').nth(2).unwrap_or(line))
    }

    /// Adds the content of a section. Events that the section names get these names: `index` finds them by id.
    pub(super) fn add(
        &mut self,
        feature: u32,
        bytes: Vec<u8>,
        at: u64,
        events: &mut [SourceEvent],
        index: &EventIndex,
    ) -> Result<(), Damage> {
        let damage = |malformed: Malformed| Damage {
            offset: at.saturating_add(malformed.at as u64),
            reason: malformed.reason,
        };
        let mut fields = Fields::new(&bytes);
        match feature {
            bit::TRACING_DATA => self.tracing_data = bytes,
            bit::DIR_FORMAT => self.is_folder = true,
            bit::HOSTNAME => self.host_name = string(&mut fields).map_err(damage)?,
            bit::OSRELEASE => self.kernel = string(&mut fields).map_err(damage)?,
            bit::ARCH => self.arch = string(&mut fields).map_err(damage)?,
            bit::NRCPUS => (_, self.cpus) = fields.pair().map_err(damage)?,
            bit::CMDLINE => {
                let count = fields.u32().map_err(damage)?;
                for _ in 0..count {
                    self.command.push(string(&mut fields).map_err(damage)?);
                }
            }
            bit::EVENT_DESC => event_names(&mut fields, events, index).map_err(damage)?,
            bit::BUILD_ID => self.add_build_ids(&mut fields).map_err(damage)?,
            bit::META_INFO => {
                let mut texts = bytes.split(|byte| *byte == 0);
                while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    self.meta_info.insert(text(key), text(value));
                }
            }
            bit::FILE => self.files.push((bytes, true)),
            bit::FILE2 => self.files.push((bytes, false)),
            _ => {}
        }
        Ok(())
    }

    /// Parses records of a process, a build-id and a path.
    fn add_build_ids(&mut self, fields: &mut Fields<'_>) -> Result<(), Malformed> {
        while !fields.is_empty() {
            let short = fields.malformed("a record smaller than its header");
            fields.u32()?;
            let word = fields.u32()?;
            let [m0, m1, s0, s1] = word.to_le_bytes();
            let misc = u16::from_le_bytes([m0, m1]);
            let size = usize::from(u16::from_le_bytes([s0, s1]));
            let body = fields.bytes(size.checked_sub(RECORD_HEADER).ok_or(short)?)?;
            let mut body = Fields::new(body);
            body.u32()?; // pid
            let id: [u8; 20] = body.array()?;
            let [size, _, _, _] = body.array()?;
            let len = match misc & MISC_BUILD_ID_SIZE {
                0 => id.len(),
                _ => usize::from(size).min(id.len()),
            };
            let path = body.text().unwrap_or_default();
            let path = String::from_utf8_lossy(path).into_owned();
            let id = id.get(..len).unwrap_or_default().to_vec();
            if id.iter().any(|byte| *byte != 0) {
                self.build_ids.insert(path, id);
            }
        }
        Ok(())
    }
}

/// `struct perf_header_string`.
fn string(fields: &mut Fields<'_>) -> Result<String, Malformed> {
    let len = fields.u32()?;
    let long = fields.malformed("a text that is longer than its section");
    let text = fields.bytes(usize::try_from(len).map_err(|_| long)?)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Sets the names of events, by their ids, or by their order if they have none.
fn event_names(
    fields: &mut Fields<'_>,
    events: &mut [SourceEvent],
    index: &EventIndex,
) -> Result<(), Malformed> {
    let count = fields.u32()?;
    let size = fields.u32()? as usize;
    for place in 0..count as usize {
        fields.bytes(size)?;
        let ids = fields.u32()?;
        let name = string(fields)?;
        let ids = fields.words(ids.into())?;
        let first = ids.first().map(|id| u64::from_le_bytes(*id));
        let named = first.and_then(|id| index.with_id(id));
        if let Some(event) = events.get_mut(named.unwrap_or(place)) {
            event.name = name;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::events::tests::event;

    #[test]
    fn events_have_their_names_by_their_ids_or_by_their_order() {
        let mut events = [&[1, 2][..], &[3], &[]].map(event);
        let index = EventIndex::new(&events);
        let mut section = Vec::new();
        section.extend(4u32.to_le_bytes());
        section.extend(8u32.to_le_bytes());
        for (name, ids) in [
            ("second", &[3u64][..]),
            ("first", &[1, 2]),
            ("third", &[]),
            ("of no event", &[99]),
        ] {
            section.extend([0; 8]);
            section.extend(u32::try_from(ids.len()).unwrap().to_le_bytes());
            section.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
            section.extend(name.as_bytes());
            section.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        Features::default()
            .add(bit::EVENT_DESC, section, 0, &mut events, &index)
            .unwrap();
        let names = events.each_ref().map(|event| event.name.as_str());
        assert_eq!(names, ["first", "second", "third"]);
    }
}
