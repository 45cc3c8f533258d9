//! Finds the line of a function with the largest own share.

use std::{collections::HashMap, fmt, sync::Arc};

use varid_model::Precision;
use varid_recording::ImageKind;

use crate::{frames::SymbolId, naming::OpenImage, scope::Scope, weights::SampleWeight};

/// The most addresses of a function whose lines are looked up, hottest first.
const MOST_ADDRESSES: usize = 4096;

/// A line and its own percentage of all samples.
#[derive(Debug, Clone, PartialEq)]
pub struct HottestLine {
    /// The file name without its folder.
    pub file: Arc<str>,
    pub line: u32,
    /// Approximate if most of its samples are.
    pub precision: Precision,
    pub percent: f64,
}

impl fmt::Display for HottestLine {
    /// Writes `geo.cc:12`, or `App.java:~12` if it is approximate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.precision {
            Precision::Exact => "",
            Precision::Approximate => "~",
        };
        write!(f, "{}:{mark}{}", self.file, self.line)
    }
}

/// The samples of an address or a line that are in the function itself.
#[derive(Debug, Clone, Copy, Default)]
struct OwnSamples {
    all: SampleWeight,
    approximate: SampleWeight,
}

/// Returns the line of a function with the largest own share. None if this machine has no debug information for it.
pub fn hottest_line(scope: &Scope, id: SymbolId) -> Option<HottestLine> {
    let profile = scope.profile;
    let symbol = profile.frames.symbol(id)?;
    let image = profile.frames.image(symbol.image)?;
    let state = profile.files.get(symbol.image.index())?.as_ref()?;
    if state.file.kind == ImageKind::Dex || symbol.run_time || state.problem.is_some() {
        return None;
    }
    let (names, manifest) = (&profile.options.names, &profile.recording.manifest);
    let opened = OpenImage::of_this_machine(names, manifest, image, &state.file)
        .ok()?
        .ok()?;
    let addresses = scope.event.addresses.iter();
    let value = |weight| scope.sample_value(weight);
    let mut sampled: Vec<(OwnSamples, u64)> = addresses
        .filter(|sampled| sampled.image == symbol.image)
        .filter_map(|sampled| {
            let samples = OwnSamples {
                all: sampled.share.own,
                approximate: sampled.approximate,
            };
            Some((samples, opened.address(sampled.offset)?))
        })
        .filter(|(samples, _)| value(samples.all) > 0)
        .collect();
    let bounds = opened.bounds(symbol.start)?;
    sampled.retain(|(_, address)| bounds.contains(address));
    sampled.sort_unstable_by_key(|(samples, address)| {
        (std::cmp::Reverse(value(samples.all)), *address)
    });
    let mut lines: HashMap<(String, u32), OwnSamples> = HashMap::new();
    for (samples, address) in sampled.into_iter().take(MOST_ADDRESSES) {
        let functions = opened.functions(address);
        if let Some(line) = functions
            .first()
            .and_then(|innermost| innermost.line.clone())
        {
            let sum = lines.entry(line).or_default();
            sum.all.add(samples.all);
            sum.approximate.add(samples.approximate);
        }
    }
    let hottest = lines.into_iter();
    let ((file, line), samples) = hottest.max_by_key(|((file, line), samples)| {
        (value(samples.all), std::cmp::Reverse((file.clone(), *line)))
    })?;
    let is_approximate = samples.approximate.samples() > samples.all.samples() / 2;
    let name = file.rsplit('/').next().unwrap_or(&file);
    Some(HottestLine {
        file: name.into(),
        line,
        precision: match is_approximate {
            true => Precision::Approximate,
            false => Precision::Exact,
        },
        percent: scope.sample_percent(samples.all),
    })
}
