//! The PMUs that the kernel describes in sysfs: their types, CPUs, events and formats.
//!
//! Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-*.

use super::syntax::{self, Term};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The folder of the PMUs, relative to the root.
const DEVICES: &str = "sys/bus/event_source/devices";
/// The maximum number of events, and of formats, read per PMU.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of bytes read from a file.
const MAX_BYTES: u64 = 4_096;

/// A PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// The kernel's name for it.
    pub name: String,
    /// `perf_event_attr.type` of its events.
    pub kind: u32,
    /// The CPUs that it counts on, or None for all.
    pub cpus: Option<Vec<u32>>,
    /// True for a PMU of CPUs, false for one of a bus or a memory controller.
    pub core: bool,
    /// The largest `precise_ip` (caps/max_precise), or 0 without precise sampling.
    pub max_precise: u8,
    /// The terms of its named events.
    pub events: BTreeMap<String, Vec<Term>>,
    formats: BTreeMap<String, Format>,
}

/// The bits of a field: which of config, config1 and config2, and the first and last bit of each range, lowest first.
type Format = (usize, Vec<(u32, u32)>);

/// config, config1 and config2 of an event.
pub type Config = [u64; 3];

impl Pmu {
    /// Reads all PMUs, by name. The root is `/` except in tests.
    pub fn all(root: &Path) -> Vec<Self> {
        let devices = root.join(DEVICES);
        let mut pmus: Vec<_> = entries(&devices)
            .into_iter()
            .filter_map(|name| Self::read(&devices.join(&name), name))
            .collect();
        pmus.sort_by(|a, b| a.name.cmp(&b.name));
        pmus
    }

    fn read(device: &Path, name: String) -> Option<Self> {
        let kind = text(&device.join("type"))?.trim().parse().ok()?;
        let core_cpus = list_in(&device.join("cpus"));
        let core = name == "cpu" || name.starts_with("armv") || core_cpus.is_some();
        let mut events = BTreeMap::new();
        for event in entries(&device.join("events")) {
            // EVENT.unit, EVENT.scale and similar files are not events.
            let alias = text(&device.join("events").join(&event));
            if let Some(terms) = alias.filter(|_| !event.contains('.')) {
                events.extend(syntax::alias(&terms).map(|terms| (event, terms)));
            }
        }
        let mut formats = BTreeMap::new();
        for field in entries(&device.join("format")) {
            let format = text(&device.join("format").join(&field));
            formats.extend(
                format
                    .and_then(|text| parse_format(&text))
                    .map(|format| (field, format)),
            );
        }
        let max_precise = text(&device.join("caps/max_precise"));
        Some(Self {
            name,
            kind,
            cpus: core_cpus.or_else(|| list_in(&device.join("cpumask"))),
            core,
            max_precise: max_precise
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0),
            events,
            formats,
        })
    }

    /// Returns true if `name` is the PMU's name, with or without the instance number.
    pub fn is_called(&self, name: &str) -> bool {
        let number = self.name.strip_prefix(name);
        let number = number.and_then(|rest| rest.strip_prefix('_'));
        self.name == name
            || number
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    }

    /// Returns true if it counts on this CPU.
    pub fn serves(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Returns the PMU's spelling of an event's name. Case is ignored.
    pub fn event(&self, name: &str) -> Option<&str> {
        let exact = self.events.get_key_value(name);
        let similar = || {
            self.events
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        exact.or_else(similar).map(|(name, _)| name.as_str())
    }

    /// Encodes the terms of an event. An error names the term and what is wrong with it.
    pub fn encode(&self, terms: &[Term]) -> Result<Config, String> {
        let mut config = Config::default();
        for term in terms {
            self.term(&mut config, term, true)?;
        }
        Ok(config)
    }

    fn term(&self, config: &mut Config, term: &Term, aliases: bool) -> Result<(), String> {
        let name = term.name.as_str();
        let value = term.value.as_deref().map_or(Some(1), number);
        let value = || value.ok_or_else(|| format!("'{name}' is to be a number"));
        let words = ["config", "config1", "config2"];
        if let Some((_, word)) = words
            .iter()
            .zip(&mut *config)
            .find(|(known, _)| **known == name)
        {
            *word |= value()?;
            return Ok(());
        }
        if let Some((word, bits)) = self.formats.get(name) {
            let placed = place(value()?, bits)
                .ok_or_else(|| format!("the value of '{name}' has more bits than its field"))?;
            if let Some(word) = config.get_mut(*word) {
                // A later term overrides the value that an alias has set.
                *word = *word & !mask(bits) | placed;
            }
            return Ok(());
        }
        let alias = self.event(name).and_then(|event| self.events.get(event));
        match alias.filter(|_| aliases && term.value.is_none()) {
            // The terms of an alias are fields, not aliases.
            Some(terms) => terms
                .iter()
                .try_for_each(|term| self.term(config, term, false)),
            None => Err(format!("it has no event or field '{name}'")),
        }
    }

    /// Returns the names of the fields of its events.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.formats.keys().map(String::as_str)
    }
}

/// Parses a number in perf's syntax: decimal, or hexadecimal after 0x.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses a format such as `config:0-7,32-35` or `config1:5`.
fn parse_format(text: &str) -> Option<Format> {
    let (word, ranges) = text.trim().split_once(':')?;
    let word = ["config", "config1", "config2"]
        .iter()
        .position(|known| *known == word)?;
    let ranges = ranges.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < 64).then_some((first, last))
    });
    Some((word, ranges.collect::<Option<_>>()?))
}

/// Distributes the bits of a value over ranges of bits. Returns None if the value has too many bits.
fn place(mut value: u64, ranges: &[(u32, u32)]) -> Option<u64> {
    let mut placed = 0;
    for (first, last) in ranges {
        for bit in *first..=*last {
            placed |= (value & 1).checked_shl(bit)?;
            value >>= 1;
        }
    }
    (value == 0).then_some(placed)
}

fn mask(ranges: &[(u32, u32)]) -> u64 {
    let bits = ranges.iter().flat_map(|(first, last)| *first..=*last);
    bits.fold(0, |mask, bit| mask | 1u64.checked_shl(bit).unwrap_or(0))
}

/// Parses the kernel's lists of CPUs (`0-3,5`). Returns None for other text, and for a CPU above 65535.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= 65_536 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn list_in(file: &Path) -> Option<Vec<u32>> {
    cpu_list(&text(file)?).filter(|cpus| !cpus.is_empty())
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.take(MAX_ENTRIES).collect()
}

fn text(file: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = fs::File::open(file).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
