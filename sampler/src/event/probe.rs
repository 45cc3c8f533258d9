//! Resolves the text of a probe to a place in a file's or the kernel's code.

use super::debug_files::installed;
use super::pmu::Pmu;
use super::probe_text::{CodeText, PlaceText, ProbeText};
use crate::SamplerError;
use std::ffi::CString;
use std::path::Path;
use varid_model::perf;
use varid_recording::open_regular;
use varid_symbolizer::elf::{CodePlaces, PlaceError};

/// `config` of a return probe: the kernel's `PERF_PROBE_CONFIG_IS_RETPROBE`.
const AT_RETURN: u64 = 1;

/// The PMU of probes in files.
pub(super) const UPROBE: &str = "uprobe";

/// Returns the type of a PMU of probes. `event`: the event's name.
pub(super) fn pmu_type(event: &str, pmu: &'static str, pmus: &[Pmu]) -> Result<u32, SamplerError> {
    let known = pmus.iter().find(|known| known.name == pmu);
    let known = known.ok_or(SamplerError::NoProbes {
        event: event.to_owned(),
        kind: pmu,
    })?;
    Ok(known.kind)
}

/// A probe in the kernel's encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// `perf_event_attr.type`: the PMU `uprobe` or `kprobe`, or the type of tracepoints.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// The probed place, or None if an event of tracefs defines it.
    pub code: Option<ProbedCode>,
}

/// A place in the code of a file or of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedCode {
    /// The file's path, or the function of the kernel.
    pub of: CString,
    /// Bytes from the start of the file or of the function.
    pub offset: u64,
}

impl ProbeText {
    /// Resolves the text for a machine with these PMUs. `event` is the event's name. Reads the file's symbols.
    pub fn resolve(&self, event: &str, pmus: &[Pmu]) -> Result<Probe, SamplerError> {
        let kind = pmu_type(
            event,
            match self.place {
                PlaceText::File { .. } => UPROBE,
                PlaceText::Kernel { .. } => "kprobe",
            },
            pmus,
        )?;
        let (of, offset) = match &self.place {
            PlaceText::File { path, at } => (path, at.file_offset(event, path)?),
            PlaceText::Kernel { function, offset } => (function, *offset),
        };
        let of = CString::new(of.as_str()).map_err(|_| SamplerError::EventSyntax {
            event: event.to_owned(),
            what: "a NUL in its text".to_owned(),
        })?;
        Ok(Probe {
            kind,
            config: if self.at_return { AT_RETURN } else { 0 },
            code: Some(ProbedCode { of, offset }),
        })
    }
}

impl Probe {
    /// Returns the probe with this number in tracefs.
    pub fn in_tracefs(id: u64) -> Self {
        Self {
            kind: perf::PERF_TYPE_TRACEPOINT,
            config: id,
            code: None,
        }
    }
}

impl CodeText {
    /// Returns the offset from the start of the file, in bytes, which the kernel takes.
    fn file_offset(&self, event: &str, path: &str) -> Result<u64, SamplerError> {
        let unread = |problem: String| SamplerError::ProbedFile {
            event: event.to_owned(),
            problem,
        };
        // Only regular files are read: opening a pipe would block.
        let path = Path::new(path);
        open_regular(path).map_err(|error| unread(format!("{}: {error}", path.display())))?;
        let debug_files = installed();
        let places =
            CodePlaces::open(path, &debug_files).map_err(|error| unread(error.to_string()))?;
        let address = match self {
            Self::Address(address) => Ok(*address),
            Self::Function { name, offset } => {
                let start = places.function(name);
                start.map(|start| start.saturating_add(*offset))
            }
        };
        let found = address.and_then(|address| places.offset(address));
        found.map_err(|source: PlaceError| SamplerError::ProbedPlace {
            event: event.to_owned(),
            file: path.display().to_string(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_is_named() {
        let pmus = super::super::pmu::testing::probes();
        let refused = |text: &str| {
            let probe = ProbeText::parse(text).unwrap().unwrap();
            probe.resolve(text, pmus.pmus()).unwrap_err().to_string()
        };
        let error = refused("uprobe:/no/such/file:main");
        assert!(error.contains("/no/such/file: No such file"), "{error}");
        let error = refused("uprobe:/proc:main");
        assert!(error.contains("no regular file"), "{error}");
        let error = refused("uprobe:/proc/self/exe:0x1");
        assert!(error.contains("no code at address 0x1"), "{error}");
        let text = "kprobe:vfs_read";
        let probe = ProbeText::parse(text).unwrap().unwrap();
        let error = probe.resolve(text, &[]).unwrap_err().to_string();
        assert!(error.contains("CONFIG_KPROBE_EVENTS"), "{error}");
    }
}
