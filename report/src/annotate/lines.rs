//! Computes the samples of each line and instruction of a method.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
};

use varid_model::Layer;

use super::{
    annotation::{
        AnnotatedFile, AnnotatedInstruction, AnnotatedLine, CompiledInstruction, InlinedLine,
    },
    code::Code,
    source_text::SourceText,
    sources::{NameKind, Source, Sources},
};
use crate::{
    frames::SymbolId,
    naming::{NamedFunction, OpenImage},
    scope::Scope,
    shares::Share,
    weights::{ProfileCounter, Weight},
};

/// The most addresses at which lines are looked up if the instructions are unknown.
const MOST_ADDRESSES: u64 = 1 << 17;

/// A line of a file. None if there is no line.
type LineKey = Option<(Arc<str>, u32)>;

/// The weight of an address in the method's file.
#[derive(Debug, Clone, Copy)]
struct AddressShare {
    address: u64,
    share: Share,
    approximate: Weight,
}

/// Identifies a line of a function that was inlined into the method.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InlinedKey {
    /// The line of the method.
    at: LineKey,
    function: String,
    /// The line of the function.
    line: LineKey,
}

/// The lines of a method.
#[derive(Debug)]
pub struct Lines<'s, 'p> {
    scope: &'s Scope<'p>,
    symbol: SymbolId,
    /// The files in display order.
    files: Vec<Arc<str>>,
    lines: HashMap<LineKey, AnnotatedLine>,
    approximate: Weight,
    /// Samples of inlined functions.
    inlined: HashMap<InlinedKey, Weight>,
}

impl<'s, 'p> Lines<'s, 'p> {
    /// Collects the lines of a symbol that have samples.
    pub fn new(scope: &'s Scope<'p>, symbol: SymbolId) -> Self {
        let mut lines = Self {
            scope,
            symbol,
            files: Vec::new(),
            lines: HashMap::new(),
            approximate: Weight::default(),
            inlined: HashMap::new(),
        };
        let frames = &scope.profile.frames;
        // Exact and approximate frames of a line are merged.
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
        let shares = scope
            .weights
            .by_frame(|frame| key_of.get(frame.index()).copied().flatten());
        let mut keys: Vec<(LineKey, usize)> = keys.into_iter().collect();
        keys.sort();
        for (key, number) in keys {
            let share = shares.get(&number).copied().unwrap_or_default();
            if !share.total.is_zero() {
                lines.line(key).share = share;
            }
        }
        lines
    }

    /// The approximate part of the method's samples.
    pub const fn approximate(&self) -> Weight {
        self.approximate
    }

    /// Adds the instructions in this range, and lines without samples. From then on, the own samples of a line are the
    /// sum of its instructions, including those of inlined functions.
    pub fn add_code(&mut self, image: &OpenImage<'_>, range: Range<u64>, code: &Code) {
        // The file of the method's first instruction comes first.
        self.files.clear();
        for line in self.lines.values_mut() {
            line.share.own = Weight::default();
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
                share: Share::default(),
                approximate: Weight::default(),
                compiled: Vec::new(),
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
        for found in self.addresses(image, &range) {
            self.add_address(image, found);
        }
    }

    /// Returns the functions at an address, innermost first. None if the outermost one is another method, which a
    /// mapping file may derive from lines.
    fn own_functions(&self, image: &OpenImage<'_>, address: u64) -> Option<Vec<NamedFunction>> {
        let functions = image.functions(address);
        let symbol = self.scope.profile.frames.symbol(self.symbol)?;
        let outermost = functions.last()?;
        (outermost.name == symbol.plain_name()).then_some(functions)
    }

    /// Returns the addresses in a range that have samples, or values of the measure.
    fn addresses(&self, image: &OpenImage<'_>, range: &Range<u64>) -> Vec<AddressShare> {
        let symbol = self.scope.profile.frames.symbol(self.symbol);
        let Some(id) = symbol.map(|symbol| symbol.image) else {
            return Vec::new();
        };
        let at = |offset, share, approximate| {
            let address = image.address(offset).filter(|at| range.contains(at))?;
            Some(AddressShare {
                address,
                share,
                approximate,
            })
        };
        let counter = self.scope.measures.lead().map(|measure| measure.counter);
        if let Some(ProfileCounter::Context(counter)) = counter {
            let counted = self.scope.profile.counted_addresses.iter();
            let counted = counted.filter(|found| found.image == id && found.counter == counter);
            let weight = |value| Weight::new([value]);
            let found = counted.filter_map(|found| {
                let (own, total) = (weight(found.share.own), weight(found.share.total));
                at(found.offset, Share { own, total }, Weight::default())
            });
            return found.collect();
        }
        let sampled = self.scope.event.addresses.iter();
        let sampled = sampled.filter(|sampled| sampled.image == id);
        let weight = |weight| self.scope.measures.of_samples(weight);
        let found = sampled.filter_map(|found| {
            let (own, total) = (weight(found.share.own), weight(found.share.total));
            at(
                found.offset,
                Share { own, total },
                weight(found.approximate),
            )
        });
        found.collect()
    }

    /// Adds the weight of an address.
    fn add_address(&mut self, image: &OpenImage<'_>, found: AddressShare) {
        let AddressShare {
            address,
            share,
            approximate,
        } = found;
        let Some(functions) = self.own_functions(image, address) else {
            return;
        };
        let key = outermost_line(&functions);
        if let [innermost, _, ..] = &functions[..]
            && !share.own.is_zero()
        {
            let key = InlinedKey {
                at: key.clone(),
                function: innermost.name.clone(),
                line: line_of(innermost),
            };
            self.inlined.entry(key).or_default().add(share.own);
        }
        self.approximate.add(approximate);
        let line = self.line(key);
        line.share.own.add(share.own);
        line.approximate.add(approximate);
        if let Some(found) = instruction_at(line, address) {
            found.share.own.add(share.own);
            found.share.total.add(share.total);
            found.approximate.add(approximate);
        }
    }

    /// Adds instructions of compiled code, by the address of the bytecode at which their samples are recorded.
    pub fn add_compiled(
        &mut self,
        image: &OpenImage<'_>,
        compiled: BTreeMap<u64, Vec<CompiledInstruction>>,
    ) {
        for (address, instructions) in compiled {
            let Some(functions) = self.own_functions(image, address) else {
                continue;
            };
            let line = self.line(outermost_line(&functions));
            match instruction_at(line, address) {
                Some(found) => found.compiled.extend(instructions),
                None => line.compiled.extend(instructions),
            }
        }
    }

    /// Adds the own samples of the method that no line has to those without a line. The method may have no address in a
    /// file, as one without bytecode has none, or a function may be inlined into it whose file cannot be read.
    pub fn add_without_line(&mut self, own: Weight) {
        let mut listed = Weight::default();
        for line in self.lines.values() {
            listed.add(line.share.own);
        }
        let left = own.without(listed);
        if left.is_zero() {
            return;
        }
        let share = &mut self.line(None).share;
        share.own.add(left);
        share.total.add(share.own.without(share.total));
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

    /// Returns all lines by file, with their text.
    pub fn finish(
        mut self,
        sources: &Sources,
        kind: NameKind,
        notes: &mut Vec<String>,
    ) -> Vec<AnnotatedFile> {
        let mut texts = Texts {
            sources,
            kind,
            found: HashMap::new(),
        };
        self.add_inlined(&mut texts);
        self.add_sampled_files();
        let symbol = self.scope.profile.frames.symbol(self.symbol);
        // The note on the kernel is elsewhere.
        let is_kernel = symbol.is_some_and(|symbol| symbol.layer == Layer::Kernel);
        let files = self.into_files(&mut texts);
        if files.iter().all(|file| file.name.is_none()) && !is_kernel {
            notes.push(
                "no lines: there is no line table of it; compile it with debug information (-g; for R8 -keepattributes SourceFile,LineNumberTable), or give the file with it by --symbols DIR"
                    .to_owned(),
            );
        }
        texts.notes(notes);
        files
    }

    /// Adds the lines of inlined functions to the lines of the method, those with the most samples first.
    fn add_inlined(&mut self, texts: &mut Texts<'_>) {
        let mut inlined: Vec<_> = std::mem::take(&mut self.inlined).into_iter().collect();
        inlined.sort_by(|(one, weight), (other, other_weight)| {
            let most = other_weight.get(0).cmp(&weight.get(0));
            most.then_with(|| one.function.cmp(&other.function))
                .then_with(|| one.line.cmp(&other.line))
        });
        for (key, own) in inlined {
            let line = key.line.as_ref();
            let source = line.and_then(|(file, line)| texts.of(file)?.text.line(*line));
            self.line(key.at).inlined.push(InlinedLine {
                function: key.function,
                line: key.line,
                source,
                own,
            });
        }
    }

    /// Adds files of which only sampled lines are known.
    fn add_sampled_files(&mut self) {
        let mut others: Vec<_> = self.lines.keys().flatten().map(|(file, _)| file).collect();
        others.sort();
        for file in others {
            if !self.files.contains(file) {
                self.files.push(Arc::clone(file));
            }
        }
    }

    /// Returns the files in display order. The instructions without a line are in the last one.
    fn into_files(self, texts: &mut Texts<'_>) -> Vec<AnnotatedFile> {
        let mut by_file: HashMap<Option<Arc<str>>, BTreeMap<Option<u32>, AnnotatedLine>> =
            HashMap::new();
        for (key, line) in self.lines {
            let file = key.map(|(file, _)| file);
            by_file.entry(file).or_default().insert(line.number, line);
        }
        let names = self.files.into_iter().map(Some).chain([None]);
        let file = |name: Option<Arc<str>>| {
            let lines = by_file.remove(&name)?;
            let found = name.as_ref().and_then(|name| texts.of(name));
            let text = found.map(|found| &found.text);
            Some(AnnotatedFile {
                found: found.map(|found| found.place.clone()),
                lines: with_text(lines, text),
                name,
            })
        };
        names.filter_map(file).collect()
    }
}

/// Returns the instruction of a line that has an address. A caller's address is inside its call instruction.
fn instruction_at(line: &mut AnnotatedLine, address: u64) -> Option<&mut AnnotatedInstruction> {
    let instructions = &mut line.instructions;
    let after = instructions.partition_point(|found| found.address <= address);
    let found = instructions.get_mut(after.checked_sub(1)?)?;
    let within = address.checked_sub(found.address)?;
    (within < found.len.into()).then_some(found)
}

/// Adds the text of the lines, and the lines between and around them.
fn with_text(
    mut lines: BTreeMap<Option<u32>, AnnotatedLine>,
    text: Option<&SourceText>,
) -> Vec<AnnotatedLine> {
    let Some(text) = text else {
        return lines.into_values().collect();
    };
    /// The largest gap between two lines of a method that is filled.
    const BETWEEN: u32 = 12;
    /// The most lines added before the first instruction's line and after the last one's.
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

/// The line of the outermost function.
fn outermost_line(functions: &[NamedFunction]) -> LineKey {
    line_of(functions.last()?)
}

/// Reads the texts of source files and caches them.
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

    /// Adds notes on sources that were not found, with the reason.
    fn notes(self, notes: &mut Vec<String>) {
        /// The most names in a note.
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
