//! The events of a perf.data file.

use std::{
    collections::HashMap,
    io::{Read, Seek},
    ops::Range,
};

use varid_model::Rate;
use varid_model::perf::{
    Fields, Malformed, PERF_COUNT_SW_DUMMY, PERF_FORMAT_GROUP, PERF_SAMPLE_READ,
    PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, event_name,
};

use super::{
    damage::Damage,
    header::{Header, SECTION, bytes, range},
    layout::RecordLayout,
};

/// The most events of a file, as in a session.
const MAX_EVENTS: usize = 1_000;
/// The most ids of all events. An event has one for each CPU and thread.
const MAX_IDS: u64 = 1 << 20;
/// The first published size of `struct perf_event_attr`.
const ATTR_SIZE_V0: usize = 64;

/// An event of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEvent {
    /// Its name in perf.
    pub name: String,
    /// Its sampling rate.
    pub rate: Rate,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// The ids of its samples.
    pub ids: Vec<u64>,
    /// The fields of its records.
    pub layout: RecordLayout,
    /// `perf_event_attr.inherit`: each thread has its own counts.
    pub inherits: bool,
    /// The modifiers that perf appends to the event's name after a colon.
    modifiers: String,
}

/// A period that no event reaches: simpleperf's `INFINITE_SAMPLE_PERIOD`, for the counters of `--add-counter`.
const NEVER: u64 = 1 << 62;

impl SourceEvent {
    /// Returns true if it has no samples of its own and is read with those of another event.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.rate == Rate::READ || matches!(self.rate, Rate::Period(NEVER..))
    }

    /// Returns true if its samples have the counts of its group.
    #[must_use]
    pub const fn reads_group(&self) -> bool {
        self.layout.has(PERF_SAMPLE_READ) && self.layout.reads(PERF_FORMAT_GROUP)
    }

    /// Returns true if it only carries records other than samples.
    #[must_use]
    pub const fn is_dummy(&self) -> bool {
        self.kind == PERF_TYPE_SOFTWARE && self.config == PERF_COUNT_SW_DUMMY as u64
    }

    /// Parses `struct perf_event_attr`.
    fn of_attr(attr: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(attr);
        let kind = fields.u32()?;
        let size = fields.u32()?;
        // The attribute of a later perf may be longer. Early versions of simpleperf have no size.
        let size = match usize::try_from(size) {
            Ok(size @ ATTR_SIZE_V0..) => size.min(attr.len()),
            _ => attr.len(),
        };
        let config = fields.u64()?;
        let period = fields.u64()?;
        let sample_type = fields.u64()?;
        let read_format = fields.u64()?;
        let flags = fields.u64()?;
        let later = |at: usize| {
            let word = at
                .checked_add(8)
                .filter(|end| *end <= size)
                .and_then(|end| attr.get(at..end)?.first_chunk::<8>());
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        let has = |bit: u32| flags.checked_shr(bit).is_some_and(|rest| rest & 1 != 0);
        Ok(Self {
            name: String::new(),
            rate: if has(10) {
                Rate::Frequency(period)
            } else {
                Rate::Period(period)
            },
            kind,
            config,
            ids: Vec::new(),
            layout: RecordLayout::new(sample_type, read_format, later(80), later(72), has(18)),
            inherits: has(1),
            modifiers: modifiers(flags),
        })
    }

    /// Parses a record that replaces an attribute of the header.
    fn of_record(body: &[u8], offset: u64) -> Result<Self, Damage> {
        let size = body.get(4..8).and_then(|size| size.first_chunk::<4>());
        let size = size.map_or(0, |size| u32::from_le_bytes(*size));
        let size = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .max(ATTR_SIZE_V0);
        let damage = Damage {
            offset,
            reason: "an event's attribute is longer than its record",
        };
        let Some((attr, ids)) = body.split_at_checked(size) else {
            return Err(damage);
        };
        let mut event = Self::of_attr(attr).map_err(|_| damage)?;
        event.ids = words(ids);
        Ok(event)
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Collects the events of a file, at most as many as a session may have.
#[derive(Debug)]
pub(super) struct EventList {
    events: Vec<SourceEvent>,
    /// How many more ids are accepted.
    room: u64,
}

impl Default for EventList {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            room: MAX_IDS,
        }
    }
}

impl EventList {
    /// Takes room for the ids of an event at `offset` of the file.
    fn reserve(&mut self, ids: u64, offset: u64) -> Result<(), Damage> {
        let damage = |reason| Damage { offset, reason };
        if self.events.len() >= MAX_EVENTS {
            return Err(damage("more than 1,000 events"));
        }
        self.room = self
            .room
            .checked_sub(ids)
            .ok_or(damage("the events have more than a million ids"))?;
        Ok(())
    }

    /// Adds the event of a record that replaces an attribute of the header.
    pub(super) fn add_record(&mut self, body: &[u8], offset: u64) -> Result<(), Damage> {
        let event = SourceEvent::of_record(body, offset)?;
        self.reserve(event.ids.len() as u64, offset)?;
        self.events.push(event);
        Ok(())
    }

    /// Returns all events.
    pub(super) fn into_events(self) -> Vec<SourceEvent> {
        self.events
    }
}

/// Reads the events from the header's attributes, without their names.
pub(super) fn read(
    file: &mut (impl Read + Seek),
    header: &Header,
    len: u64,
) -> Result<Vec<SourceEvent>, Damage> {
    let Range { start, end } = header.attrs;
    let damage = |offset, reason| Damage { offset, reason };
    let attr_size = header.attr_size.checked_sub(SECTION);
    let Some(attr_size) = attr_size.filter(|size| *size >= ATTR_SIZE_V0 as u64) else {
        return Err(damage(16, "the events' attributes are too small"));
    };
    let count = end.saturating_sub(start).checked_div(header.attr_size);
    let mut list = EventList::default();
    for place in 0..count.unwrap_or(0) {
        let at = start.saturating_add(place.saturating_mul(header.attr_size));
        let attr = bytes(file, &(at..at.saturating_add(attr_size)))?;
        let ids_at = at.saturating_add(attr_size);
        let section = words(&bytes(file, &(ids_at..ids_at.saturating_add(SECTION)))?);
        let mut event = SourceEvent::of_attr(&attr)
            .map_err(|_| damage(at, "the file ends within an event's attribute"))?;
        let [ids, size] = section[..] else {
            return Err(damage(ids_at, "the file ends within an event's attribute"));
        };
        list.reserve(size / 8, ids_at)?;
        let ids = range(ids, size, len)
            .ok_or(damage(ids_at, "the ids of an event lie outside the file"))?;
        event.ids = words(&bytes(file, &ids)?);
        list.events.push(event);
    }
    Ok(list.into_events())
}

/// Gives each unnamed event a name: simpleperf's name for its index, the name of the tracepoint with its id, or perf's name for its
/// numbers.
pub(super) fn complete<'a>(
    events: &mut [SourceEvent],
    names: impl Iterator<Item = &'a str>,
    tracepoints: &HashMap<u64, String>,
) {
    let names = names.map(Some).chain(std::iter::repeat(None));
    for (event, name) in events.iter_mut().zip(names) {
        if event.name.is_empty() {
            let tracepoint = || {
                let name = tracepoints.get(&event.config).cloned();
                name.filter(|_| event.kind == PERF_TYPE_TRACEPOINT)
            };
            let known = name.map(str::to_owned).or_else(tracepoint);
            event.name = known.unwrap_or_else(|| generic_name(event));
        }
    }
}

/// perf's name for an event.
fn generic_name(event: &SourceEvent) -> String {
    let name = match (event_name(event.kind, event.config), event.kind) {
        (Some(name), _) => name.to_owned(),
        (None, PERF_TYPE_TRACEPOINT) => format!("tracepoint-{}", event.config),
        (None, kind) => format!("event-{kind}-{:#x}", event.config),
    };
    match event.modifiers.as_str() {
        "" => name,
        modifiers => format!("{name}:{modifiers}"),
    }
}

/// The modifiers for an attribute's flags, as in perf (`evsel__add_modifiers` of its evsel.c).
fn modifiers(flags: u64) -> String {
    let has = |bit: u32| flags.checked_shr(bit).is_some_and(|rest| rest & 1 != 0);
    let (user, kernel, hypervisor) = (has(4), has(5), has(6));
    let precise = flags.checked_shr(15).map_or(0, |rest| rest & 3);
    let (host, guest) = (has(19), has(20));
    let excludes = user || kernel || hypervisor;
    let mut modifiers = String::new();
    let mut add = |letter, excluded: bool| modifiers.extend((!excluded).then_some(letter));
    if excludes {
        add('k', kernel);
        add('u', user);
        add('h', hypervisor);
    }
    for _ in 0..precise {
        add('p', false);
    }
    // An event with other modifiers counts only the host by default.
    if host || guest == (excludes || precise > 0) {
        add('H', host);
        add('G', guest);
    }
    modifiers
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An event with these ids.
    pub(in crate::perfdata) fn event(ids: &[u64]) -> SourceEvent {
        let body = record(0);
        let event = SourceEvent::of_record(&body, 0).unwrap();
        SourceEvent {
            ids: ids.to_vec(),
            ..event
        }
    }

    /// The attribute record of an event with this many ids.
    fn record(ids: usize) -> Vec<u8> {
        let mut body = vec![0; ATTR_SIZE_V0];
        body.resize(ATTR_SIZE_V0 + ids * 8, 7);
        body
    }

    #[test]
    fn modifiers_are_those_that_perf_shows() {
        const USER: u64 = 1 << 4;
        const KERNEL: u64 = 1 << 5;
        const HYPERVISOR: u64 = 1 << 6;
        const HOST: u64 = 1 << 19;
        const GUEST: u64 = 1 << 20;
        for (flags, expected) in [
            (GUEST, ""),
            (0, "HG"),
            (KERNEL | HYPERVISOR, "u"),
            (USER | HYPERVISOR, "k"),
            (KERNEL | HYPERVISOR | GUEST, "uH"),
            (2 << 15, "pp"),
            (3 << 15 | KERNEL | HYPERVISOR | HOST, "upppG"),
        ] {
            assert_eq!(modifiers(flags), expected, "{flags:#x}");
        }
    }

    #[test]
    fn a_pipe_has_no_more_events_and_ids_than_a_file() {
        let mut list = EventList::default();
        for _ in 0..MAX_EVENTS {
            list.add_record(&record(1), 16).unwrap();
        }
        let damage = list.add_record(&record(1), 99).unwrap_err();
        assert_eq!(
            (damage.offset, damage.reason),
            (99, "more than 1,000 events")
        );
        assert_eq!(list.into_events().len(), MAX_EVENTS);
        let mut list = EventList::default();
        let ids = usize::try_from(MAX_IDS).unwrap();
        list.add_record(&record(ids), 16).unwrap();
        assert!(list.add_record(&record(0), 16).is_ok());
        let damage = list.add_record(&record(1), 99).unwrap_err();
        assert!(damage.reason.contains("a million ids"), "{damage:?}");
    }
}
