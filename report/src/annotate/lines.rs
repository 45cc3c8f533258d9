//! What did each line and instruction of a method take?

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
};

use varid_model::Layer;

use super::{
    annotation::{AnnotatedFile, AnnotatedInstruction, AnnotatedLine, InlinedLine},
    code::Code,
    source_text::SourceText,
    sources::{NameKind, Source, Sources},
};
use crate::{
    frames::{ImageId, SymbolId},
    naming::{NamedFunction, OpenImage},
    sampled_addresses::SampledAddress,
    scope::Scope,
    shares::SampleShare,
    weights::SampleWeight,
};

/// Where instructions are not known, lines are looked up at so many addresses at most.
const MOST_ADDRESSES: u64 = 1 << 17;

/// A line of a file; none: it has none.
type LineKey = Option<(Arc<str>, u32)>;

/// The lines of a method.
#[derive(Debug)]
pub struct Lines<'s, 'p> {
    scope: &'s Scope<'p>,
    symbol: SymbolId,
    /// The files in the order in which they are shown.
    files: Vec<Arc<str>>,
    lines: HashMap<LineKey, AnnotatedLine>,
    approximate: SampleWeight,
    /// Functions that were compiled into it, by the line they are in.
    inlined: HashMap<(LineKey, String, LineKey), SampleWeight>,
}

impl<'s, 'p> Lines<'s, 'p> {
    /// The lines of a symbol that have samples.
    pub fn new(scope: &'s Scope<'p>, symbol: SymbolId) -> Self {
        let mut lines = Self {
            scope,
            symbol,
            files: Vec::new(),
            lines: HashMap::new(),
            approximate: SampleWeight::default(),
            inlined: HashMap::new(),
        };
        let frames = &scope.profile.frames;
        // A line is one, however sure its frames are.
        let mut keys: HashMap<LineKey, usize> = HashMap::new();
        let mut key_of = vec![None; frames.frames().len()];
        for (frame, key_of) in frames.frames().iter().zip(&mut key_of) {
            if frame.symbol == symbol {
                let line = frame.line.as_ref();
                let key = line.map(|line| (Arc::clone(&line.file), line.line));
                let next = keys.len();
                *key_of = Some(*keys.entry(key).or_insert(next));
            }
        }
        let shares = scope.weights.by_frame(|frame| {
            let index = usize::try_from(frame.0).ok()?;
            key_of.get(index).copied().flatten()
        });
        let mut keys: Vec<(LineKey, usize)> = keys.into_iter().collect();
        keys.sort();
        for (key, number) in keys {
            let share = shares.get(&number).copied().unwrap_or_default();
            if !share.total.is_zero() {
                lines.line(key).share = share.into();
            }
        }
        lines
    }

    /// The part of the method's samples that are approximate.
    pub const fn approximate(&self) -> SampleWeight {
        self.approximate
    }

    /// Adds the instructions at these addresses, and the lines that have no samples. What a line took by itself is from now on what its
    /// instructions took, those of functions that were compiled into it among them.
    pub fn add_code(&mut self, image: &OpenImage<'_>, range: Range<u64>, code: &Code) {
        // That of the method's begin is shown first.
        self.files.clear();
        for line in self.lines.values_mut() {
            line.share.own = SampleWeight::default();
        }
        for found in code.instructions() {
            let Some(functions) = self.own_functions(image, found.address) else {
                continue;
            };
            let key = outermost_line(&functions);
            let place = code.place(range.start, found.address);
            self.line(key).instructions.push(AnnotatedInstruction {
                address: found.address,
                place,
                len: found.len,
                text: found.text.clone(),
                share: SampleShare::default(),
                approximate: SampleWeight::default(),
            });
        }
        if code.instructions().is_empty() {
            let end = range.end.min(range.start.saturating_add(MOST_ADDRESSES));
            for address in range.start..end {
                if let Some(functions) = self.own_functions(image, address) {
                    self.line(outermost_line(&functions));
                }
            }
        }
        for sampled in self.sampled(image, &range) {
            self.add_samples(image, sampled);
        }
    }

    /// The functions at an address, innermost first; none if the outermost is another method, which a mapping file may tell by its lines.
    fn own_functions(&self, image: &OpenImage<'_>, address: u64) -> Option<Vec<NamedFunction>> {
        let functions = image.functions(address);
        let symbol = self.scope.profile.frames.symbol(self.symbol)?;
        let outermost = functions.last()?;
        (outermost.name == symbol.name).then_some(functions)
    }

    /// The sampled addresses in a range.
    fn sampled(&self, image: &OpenImage<'_>, range: &Range<u64>) -> Vec<(u64, SampledAddress)> {
        let symbol = self.scope.profile.frames.symbol(self.symbol);
        let id = symbol.map_or(ImageId(u32::MAX), |symbol| symbol.image);
        let of_image = |sampled: &&SampledAddress| sampled.image == id;
        let addresses = self.scope.event.addresses.iter().filter(of_image);
        addresses
            .filter_map(|sampled| Some((image.address(sampled.offset)?, *sampled)))
            .filter(|(address, _)| range.contains(address))
            .collect()
    }

    /// Adds what an address took.
    fn add_samples(&mut self, image: &OpenImage<'_>, (address, sampled): (u64, SampledAddress)) {
        let Some(functions) = self.own_functions(image, address) else {
            return;
        };
        let key = outermost_line(&functions);
        let SampledAddress {
            share, approximate, ..
        } = sampled;
        if let [innermost, _, ..] = &functions[..]
            && !share.own.is_zero()
        {
            let key = (key.clone(), innermost.name.clone(), line_of(innermost));
            self.inlined.entry(key).or_default().add(share.own);
        }
        self.approximate.add(approximate);
        let line = self.line(key);
        line.share.own.add(share.own);
        line.approximate.add(approximate);
        // A caller's address is within its call.
        let after = line
            .instructions
            .partition_point(|found| found.address <= address);
        let found = line.instructions.get_mut(after.saturating_sub(1));
        let holds = |found: &&mut AnnotatedInstruction| {
            let within = address.checked_sub(found.address);
            within.is_some_and(|within| within < found.len.into())
        };
        if let Some(found) = found.filter(holds) {
            found.share.own.add(share.own);
            found.share.total.add(share.total);
            found.approximate.add(approximate);
        }
    }

    fn line(&mut self, key: LineKey) -> &mut AnnotatedLine {
        if let Some((file, _)) = &key
            && !self.files.contains(file)
        {
            self.files.push(Arc::clone(file));
        }
        let number = key.as_ref().map(|(_, line)| *line);
        self.lines.entry(key).or_insert_with(|| AnnotatedLine {
            number,
            is_of_method: true,
            ..AnnotatedLine::default()
        })
    }

    /// All lines by file, with their text.
    pub fn finish(
        mut self,
        (sources, is_managed): (&Sources, bool),
        notes: &mut Vec<String>,
    ) -> Vec<AnnotatedFile> {
        let mut texts = Texts {
            sources,
            kind: match is_managed {
                true => NameKind::Package,
                false => NameKind::Path,
            },
            found: HashMap::new(),
        };
        let mut inlined: Vec<_> = std::mem::take(&mut self.inlined).into_iter().collect();
        inlined.sort_by(
            |((_, one, one_line), weight), ((_, other, other_line), other_weight)| {
                let most = other_weight.samples().cmp(&weight.samples());
                most.then_with(|| (one, one_line).cmp(&(other, other_line)))
            },
        );
        for ((key, function, line), own) in inlined {
            let source = line
                .as_ref()
                .and_then(|(file, line)| texts.of(file)?.text.line(*line));
            self.line(key).inlined.push(InlinedLine {
                function,
                line,
                source,
                own,
            });
        }
        // Files of which only sampled lines are known.
        let mut others: Vec<_> = self.lines.keys().flatten().map(|(file, _)| file).collect();
        others.sort();
        for file in others {
            if !self.files.contains(file) {
                self.files.push(Arc::clone(file));
            }
        }
        let mut by_file: HashMap<Option<Arc<str>>, BTreeMap<Option<u32>, AnnotatedLine>> =
            HashMap::new();
        for (key, line) in self.lines {
            let file = key.map(|(file, _)| file);
            by_file.entry(file).or_default().insert(line.number, line);
        }
        let mut files = Vec::new();
        for name in self.files.into_iter().map(Some).chain([None]) {
            let Some(lines) = by_file.remove(&name) else {
                continue;
            };
            let found = name.as_ref().and_then(|name| texts.of(name));
            let text = found.map(|found| &found.text);
            files.push(AnnotatedFile {
                found: found.map(|found| found.place.clone()),
                lines: with_text(lines, text),
                name,
            });
        }
        let symbol = self.scope.profile.frames.symbol(self.symbol);
        // Of the kernel more is said elsewhere.
        let is_kernel = symbol.is_some_and(|symbol| symbol.layer == Layer::Kernel);
        if files.iter().all(|file| file.name.is_none()) && !is_kernel {
            notes.push(
                "no lines: there is no line table of it; compile it with debug information (-g; for R8 -keepattributes SourceFile,LineNumberTable), or give the file with it by --symbols DIR"
                    .to_owned(),
            );
        }
        texts.notes(notes);
        files
    }
}

/// The lines with their text, and those between and around them.
fn with_text(
    mut lines: BTreeMap<Option<u32>, AnnotatedLine>,
    text: Option<&SourceText>,
) -> Vec<AnnotatedLine> {
    let Some(text) = text else {
        return lines.into_values().collect();
    };
    /// Lines between two of a method that are part of it.
    const BETWEEN: u32 = 12;
    /// Lines before the first instruction's, and behind the last one's.
    const AROUND: u32 = 20;
    let numbers: Vec<u32> = lines.keys().copied().flatten().collect();
    let mut add = |range: Range<u32>| {
        for number in range {
            if number >= 1 && number <= text.len() {
                lines.entry(Some(number)).or_insert_with(|| AnnotatedLine {
                    number: Some(number),
                    ..AnnotatedLine::default()
                });
            }
        }
    };
    for pair in numbers.windows(2) {
        let [one, other] = *pair else { continue };
        match other.saturating_sub(one) <= BETWEEN {
            true => add(one..other),
            false => {
                add(one..one.saturating_add(AROUND));
                add(other.saturating_sub(AROUND)..other);
            }
        }
    }
    if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
        add(first.saturating_sub(AROUND)..*first);
        add(*last..last.saturating_add(AROUND));
    }
    let with_text = |line: AnnotatedLine| AnnotatedLine {
        source: line.number.and_then(|number| text.line(number)),
        ..line
    };
    lines.into_values().map(with_text).collect()
}

/// The line of a function at an address.
fn line_of(function: &NamedFunction) -> LineKey {
    let (file, line) = function.line.as_ref()?;
    Some((Arc::from(file.as_str()), *line))
}

/// The line of the function that others were compiled into.
fn outermost_line(functions: &[NamedFunction]) -> LineKey {
    line_of(functions.last()?)
}

/// The texts of source files, each looked for once.
struct Texts<'s> {
    sources: &'s Sources,
    kind: NameKind,
    found: HashMap<Arc<str>, Result<Source, String>>,
}

impl Texts<'_> {
    fn of(&mut self, file: &Arc<str>) -> Option<&Source> {
        let found = self
            .found
            .entry(Arc::clone(file))
            .or_insert_with(|| self.sources.find(file, self.kind));
        found.as_ref().ok()
    }

    /// Says which were not found, and why.
    fn notes(self, notes: &mut Vec<String>) {
        /// So many names are enough.
        const NAMED: usize = 4;
        let mut by_reason: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
        for (file, found) in self.found {
            if let Err(why) = found {
                by_reason.entry(why).or_default().push(file);
            }
        }
        for (why, mut files) in by_reason {
            files.sort();
            let named: Vec<&str> = files.iter().take(NAMED).map(AsRef::as_ref).collect();
            let more = match files.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} others"),
            };
            notes.push(format!("no source of {}{more}: {why}", named.join(", ")));
        }
    }
}
