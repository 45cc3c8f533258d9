//! The callgrind format of KCachegrind and callgrind_annotate: costs of lines, and of calls from lines.
//!
//! A recording does not have the number of calls: `calls=` is the number of samples in the call, or the value of the
//! measure. Recursive calls are omitted, because readers add the cost of a call to its caller.

use std::{
    collections::{BTreeMap, HashSet},
    io::{self, Write},
};

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    walk::{SourceFiles, UNKNOWN, Walk, plain},
};
use crate::{
    frames::{FrameId, ImageId, SymbolId},
    shares::StackWeights,
    unit::Unit,
    weights::Weight,
};

/// The caller of the outermost frames. Viewers take the cost of the calls of a function as its total cost.
const ALL: &str = "[all]";

/// The costs of a function: those of its lines, and of the calls from them.
#[derive(Default)]
struct Costs {
    own: BTreeMap<u32, u64>,
    calls: BTreeMap<(u32, SymbolId), Weight>,
}

/// Names that have been written, which later lines refer to by number.
struct Written<'w, 'p> {
    walk: &'w Walk<'p>,
    sources: SourceFiles<'p>,
    functions: HashSet<SymbolId>,
    images: HashSet<ImageId>,
    files: HashSet<SymbolId>,
}

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "callgrind",
    aliases: &[],
    about: "KCachegrind, callgrind_annotate",
    endings: &[],
    needs: &[Need::Lines],
    measures: FormatMeasures::One,
    content: Content::Text,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes the functions with their lines and calls.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let profile = walk.profile;
    let weights = walk.weights();
    let event = match walk.unit() {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Events => "events",
        Unit::Samples => "samples",
    };
    let all = walk.all();
    writeln!(out, "# callgrind format\nversion: 1\ncreator: varid")?;
    writeln!(out, "cmd: {}", walk.title())?;
    writeln!(out, "positions: line")?;
    let shown = plain(walk.name()).replace(':', "_");
    writeln!(out, "event: {event} : {shown}")?;
    writeln!(out, "events: {event}\nsummary: {}\n", walk.value(all))?;
    let mut written = Written {
        walk,
        sources: walk.files(),
        functions: HashSet::new(),
        images: HashSet::new(),
        files: HashSet::new(),
    };
    let mut roots: BTreeMap<SymbolId, Weight> = BTreeMap::new();
    for stack in weights.tree().roots() {
        let symbol = profile
            .stacks
            .frame(stack)
            .and_then(|frame| walk.frame(frame));
        if let Some(frame) = symbol {
            let weight = weights.share(stack).total;
            roots.entry(frame.symbol).or_default().add(weight);
        }
    }
    writeln!(out, "ob=(0) ???\nfl=(0) ???\nfn=(0) {ALL}")?;
    for (symbol, weight) in roots {
        written.call(0, symbol, weight, out)?;
    }
    writeln!(out)?;
    for (symbol, costs) in costs(walk, &weights) {
        written.position(&OWN, symbol, out)?;
        for (line, cost) in costs.own.into_iter().filter(|(_, cost)| *cost > 0) {
            writeln!(out, "{line} {cost}")?;
        }
        for ((line, callee), weight) in costs.calls {
            written.call(line, callee, weight, out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn costs(walk: &Walk, weights: &StackWeights) -> BTreeMap<SymbolId, Costs> {
    let mut functions: BTreeMap<SymbolId, Costs> = BTreeMap::new();
    for (frame, share) in weights.by_frame(Some) {
        let Some(frame) = walk.frame(frame) else {
            continue;
        };
        let line = frame.line.as_ref().map_or(0, |line| line.line);
        let own = &mut functions.entry(frame.symbol).or_default().own;
        let cost = own.entry(line).or_default();
        *cost = cost.saturating_add(walk.value(share.own));
    }
    let symbol = |frame: FrameId| walk.frame(frame).map(|frame| frame.symbol);
    for ((caller, callee), weight) in weights.by_call(Some, symbol) {
        let Some(caller) = walk.frame(caller) else {
            continue;
        };
        if caller.symbol == callee {
            continue;
        }
        let line = caller.line.as_ref().map_or(0, |line| line.line);
        let calls = &mut functions.entry(caller.symbol).or_default().calls;
        calls.entry((line, callee)).or_default().add(weight);
    }
    functions
}

/// The keys of a position.
struct PositionKeys {
    object: &'static str,
    file: &'static str,
    function: &'static str,
}

/// The position of the following costs.
const OWN: PositionKeys = PositionKeys {
    object: "ob",
    file: "fl",
    function: "fn",
};

/// The position of a called function.
const CALLED: PositionKeys = PositionKeys {
    object: "cob",
    file: "cfi",
    function: "cfn",
};

impl Written<'_, '_> {
    /// Writes a call from a line of the current function.
    fn call(
        &mut self,
        line: u32,
        callee: SymbolId,
        weight: Weight,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.position(&CALLED, callee, out)?;
        writeln!(out, "calls={} 0", self.walk.measures.count(weight))?;
        writeln!(out, "{line} {}", self.walk.value(weight))
    }

    /// Writes the object, file and function of the following lines.
    fn position(
        &mut self,
        keys: &PositionKeys,
        id: SymbolId,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let PositionKeys {
            object,
            file,
            function,
        } = keys;
        let symbol = self.walk.symbol(id);
        let image = symbol.map_or(ImageId(0), |symbol| symbol.image);
        let name = |is_new: bool, name: &str| {
            if is_new {
                format!(" {}", plain(name))
            } else {
                String::new()
            }
        };
        let image_name = self.walk.profile.frames.image(image);
        let image_name = image_name.map_or(UNKNOWN, |image| &image.name);
        let new = name(self.images.insert(image), image_name);
        writeln!(out, "{object}=({}){new}", number(image.0))?;
        // Each function has one file: that of its first line, or none.
        let file_name = self.sources.of(id);
        let new = name(self.files.insert(id), file_name.unwrap_or("???"));
        writeln!(out, "{file}=({}){new}", number(id.0))?;
        let symbol_name = symbol.map_or(UNKNOWN, |symbol| &symbol.name);
        let new = name(self.functions.insert(id), symbol_name);
        writeln!(out, "{function}=({}){new}", number(id.0))
    }
}

/// 0 is reserved for the root.
fn number(id: u32) -> u64 {
    u64::from(id).saturating_add(1)
}
