//! Writes perf's features: what a complete perf.data says after its records.
//!
//! The features are a table of sections directly after the data, one for each set bit of the header, lowest bit first. Reading the samples
//! needs none of them.

use varid_model::{MonotonicNs, Pid, perf::file::feature as bit};

use crate::{
    compression, encode,
    event::SessionEvents,
    format::{self, FEATURE_BYTES, misc},
    host,
    manifest::Manifest,
};

/// What the features need and the manifest does not hold.
#[derive(Debug, Default)]
pub struct Facts {
    /// The description of the tracepoints' raw data; empty if there are no tracepoints.
    pub tracing_data: Vec<u8>,
    /// The kernel's build-id; empty if unknown.
    pub kernel_build_id: Vec<u8>,
    /// Times of the first and the last sample, if there is one.
    pub sample_times: Option<(MonotonicNs, MonotonicNs)>,
}

/// Returns the features of a complete recording. `compressed` is set if records may be compressed.
pub fn sections(manifest: &Manifest, facts: &Facts, compressed: bool) -> Vec<Section> {
    let mut sections = contents(manifest, facts);
    sections.extend(compressed.then(compression));
    sections
}

/// Returns the feature that perf needs to read compressed records.
pub fn compression() -> Section {
    (bit::COMPRESSED, compression::feature())
}

/// A feature: its bit and its content.
pub type Section = (u32, Vec<u8>);

/// Lays the sections out at a file offset. Returns their bytes and the header's feature bits.
pub fn laid_out(sections: Vec<Section>, at: u64) -> (Vec<u8>, [u8; FEATURE_BYTES]) {
    let mut bits = [0u64; 4];
    let mut table = Vec::new();
    let mut bodies = Vec::new();
    let table_len = (sections.len() as u64).saturating_mul(16);
    for (bit, body) in sections {
        if let Some(bits) = bits.first_mut() {
            *bits |= 1u64.checked_shl(bit).unwrap_or(0);
        }
        let offset = at
            .saturating_add(table_len)
            .saturating_add(bodies.len() as u64);
        table.extend(offset.to_le_bytes());
        table.extend((body.len() as u64).to_le_bytes());
        bodies.extend(body);
    }
    table.extend(bodies);
    let mut flags = [0; FEATURE_BYTES];
    for (to, from) in flags
        .iter_mut()
        .zip(bits.iter().flat_map(|bits| bits.to_le_bytes()))
    {
        *to = from;
    }
    (table, flags)
}

/// Returns the sections by their bit, lowest first.
fn contents(manifest: &Manifest, facts: &Facts) -> Vec<Section> {
    let host = &manifest.host;
    let mut sections = Vec::new();
    if !facts.tracing_data.is_empty() {
        sections.push((bit::TRACING_DATA, facts.tracing_data.clone()));
    }
    if !facts.kernel_build_id.is_empty() {
        let mut body = Vec::new();
        let path = b"[kernel.kallsyms]";
        encode::build_id(
            &mut body,
            misc::KERNEL,
            Pid::KERNEL,
            &facts.kernel_build_id,
            path,
        );
        sections.push((bit::BUILD_ID, body));
    }
    sections.extend([
        (bit::HOSTNAME, string(&host::hostname())),
        (bit::OSRELEASE, string(&host.kernel)),
        (
            bit::VERSION,
            string(&format!("varid {}", env!("CARGO_PKG_VERSION"))),
        ),
        (bit::ARCH, string(&host.arch)),
        (
            bit::NRCPUS,
            [host.cpus, host.cpus]
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect(),
        ),
        (bit::CMDLINE, command_line()),
        (bit::EVENT_DESC, event_desc(&manifest.events)),
    ]);
    let groups = manifest.events.groups();
    if !groups.is_empty() {
        sections.push((bit::GROUP_DESC, group_desc(&groups)));
    }
    if let Some((first, last)) = facts.sample_times {
        let body = [first, last]
            .iter()
            .flat_map(|time| time.get().to_le_bytes())
            .collect();
        sections.push((bit::SAMPLE_TIME, body));
    }
    sections
}

/// Encodes a `struct perf_header_string`: the length with its padding, then the NUL-ended text.
fn string(text: &str) -> Vec<u8> {
    let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    let padded = text.len().saturating_add(1).next_multiple_of(64);
    let mut bytes = u32::try_from(padded).unwrap_or(0).to_le_bytes().to_vec();
    bytes.extend(&text);
    bytes.extend(std::iter::repeat_n(0, padded.saturating_sub(text.len())));
    bytes
}

/// Encodes this process's arguments as a `struct perf_header_string_list`.
fn command_line() -> Vec<u8> {
    let args: Vec<Vec<u8>> = std::env::args_os()
        .map(|arg| string(&arg.to_string_lossy()))
        .collect();
    let mut bytes = u32::try_from(args.len())
        .unwrap_or(0)
        .to_le_bytes()
        .to_vec();
    bytes.extend(args.into_iter().flatten());
    bytes
}

/// Encodes the attributes with their names and ids.
fn event_desc(events: &SessionEvents) -> Vec<u8> {
    let mut bytes = Vec::new();
    for count in [events.len() as u64, format::ATTR_SIZE] {
        bytes.extend(half(count));
    }
    for (place, event) in events.iter().enumerate() {
        bytes.extend(format::attr(event, place == 0).to_bytes());
        bytes.extend(half(1));
        bytes.extend(string(&event.name));
        bytes.extend(format::id(place).to_le_bytes());
    }
    bytes
}

/// Encodes which events form groups: the leader's place and the number of events, the leader included.
fn group_desc(groups: &[(usize, usize)]) -> Vec<u8> {
    let mut bytes = half(groups.len() as u64).to_vec();
    for (leader, members) in groups {
        bytes.extend(string("{anon_group}"));
        bytes.extend(half(*leader as u64));
        bytes.extend(half(*members as u64));
    }
    bytes
}

fn half(value: u64) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes()
}
