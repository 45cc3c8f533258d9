//! Finds the line of a function with the largest own share.

use std::{collections::HashMap, sync::Arc};

use varid_recording::ImageKind;

use crate::{frames::SymbolId, naming::OpenImage, scope::Scope};

/// The most addresses of a function whose lines are looked up, hottest first.
const MOST_ADDRESSES: usize = 4096;

/// A line and its own percentage of all samples.
#[derive(Debug, Clone, PartialEq)]
pub struct HottestLine {
    /// The file name without its folder.
    pub file: Arc<str>,
    pub line: u32,
    pub percent: f64,
}

/// Returns the line of a function with the largest own share. None if this machine has no debug information for it.
pub fn hottest_line(scope: &Scope, id: SymbolId) -> Option<HottestLine> {
    let profile = scope.profile;
    let symbol = profile.frames.symbol(id)?;
    let image = profile.frames.image(symbol.image)?;
    let state = profile.files.get(symbol.image.index())?.as_ref()?;
    if state.file.kind != ImageKind::Elf || state.problem.is_some() {
        return None;
    }
    let (names, manifest) = (&profile.options.names, &profile.recording.manifest);
    let opened = OpenImage::of_this_machine(names, manifest, image, &state.file)
        .ok()?
        .ok()?;
    let addresses = scope.event.addresses.iter();
    let mut sampled: Vec<(u64, u64)> = addresses
        .filter(|sampled| sampled.image == symbol.image)
        .filter_map(|sampled| {
            let address = opened.address(sampled.offset)?;
            Some((scope.sample_value(sampled.share.own), address))
        })
        .filter(|(value, _)| *value > 0)
        .collect();
    let bounds = opened.bounds(symbol.start)?;
    sampled.retain(|(_, address)| bounds.contains(address));
    sampled.sort_unstable_by_key(|(value, address)| (std::cmp::Reverse(*value), *address));
    let mut lines: HashMap<(String, u32), u64> = HashMap::new();
    for (value, address) in sampled.into_iter().take(MOST_ADDRESSES) {
        let functions = opened.functions(address);
        if let Some(line) = functions
            .first()
            .and_then(|innermost| innermost.line.clone())
        {
            let sum = lines.entry(line).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    let hottest = lines.into_iter();
    let ((file, line), value) = hottest
        .max_by_key(|((file, line), value)| (*value, std::cmp::Reverse((file.clone(), *line))))?;
    let name = file.rsplit('/').next().unwrap_or(&file);
    Some(HottestLine {
        file: name.into(),
        line,
        percent: crate::scope::percent(value, scope.sample_value(scope.samples)),
    })
}
