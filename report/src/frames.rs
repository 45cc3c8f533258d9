//! The images, symbols and frames of a profile.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use varid_model::{Layer, Marker, Precision};

use crate::name_options::ShownSignatures;

varid_model::index_types! {
    /// Index of an image in a [`FrameTable`].
    ImageId;
    /// Index of a symbol in a [`FrameTable`].
    SymbolId;
    /// Index of a frame in a [`FrameTable`].
    FrameId;
}

/// A place in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ImageOffset {
    pub image: ImageId,
    pub offset: u64,
}

/// A file that contains code, or a pseudo file such as the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileImage {
    /// The displayed name: the location of a dex file, the file name otherwise.
    pub name: String,
    /// The recorded path. None for the kernel and for markers.
    pub path: Option<PathBuf>,
    /// The layer of its samples.
    pub layer: Layer,
}

/// A method or function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSymbol {
    /// The displayed name: `org.example.Balls.draw`, `memcpy`, `libfoo.so+0x1234`. It ends with the signature if the
    /// profile has another method with the same name, or if signatures are requested.
    pub name: String,
    /// The name in the recording, if a mapping file renames it.
    pub recorded: Option<String>,
    /// The parameters of a method on HotSpot: `(int, java.lang.String)`. None for other functions: parameters are a part
    /// of their names, if they are known.
    pub signature: Option<String>,
    /// Its image.
    pub image: ImageId,
    /// The start as an offset in the image. For kernel functions it is the address. It is 0 for inlined functions, for
    /// run-time code and for code without a symbol.
    pub start: u64,
    /// The layer of its samples.
    pub layer: Layer,
    /// Set if the symbol stands for missing frames.
    pub marker: Option<Marker>,
    /// Whether it stands for the inlined copies of the function in its callers.
    pub inlined: bool,
    /// Whether the function's name is known. It is false for `libfoo.so+0x1234`.
    pub named: bool,
    /// Whether its code was generated at run time. Such a symbol is identified by its name, because a method may be
    /// compiled several times and has another address in each process.
    pub run_time: bool,
}

impl ProfileSymbol {
    /// Returns the name without its signature.
    pub(crate) fn plain_name(&self) -> &str {
        let signature = self.signature.as_deref().unwrap_or_default();
        self.name.strip_suffix(signature).unwrap_or(&self.name)
    }

    /// Returns the name with its signature.
    pub(crate) fn full_name(&self) -> Cow<'_, str> {
        match &self.signature {
            Some(signature) => format!("{}{signature}", self.plain_name()).into(),
            None => self.name.as_str().into(),
        }
    }
}

/// An element of a stack: a symbol or, if lines are read, a line of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileFrame {
    /// The symbol.
    pub symbol: SymbolId,
    /// None if lines are not read or the line is not known.
    pub line: Option<SourceLine>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file as recorded by the compiler, possibly with folders.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: u32,
    /// Whether the line is exact or approximate.
    pub precision: Precision,
}

impl SourceLine {
    /// The file name without folders, as perf shows it.
    pub(crate) fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

/// The distinct frames of a profile with their symbols and images.
#[derive(Debug, Clone, Default)]
pub struct FrameTable {
    images: Vec<ProfileImage>,
    symbols: Vec<ProfileSymbol>,
    frames: Vec<ProfileFrame>,
}

impl FrameTable {
    /// All images, by [`ImageId`].
    #[must_use]
    pub fn images(&self) -> &[ProfileImage] {
        &self.images
    }

    /// All symbols, by [`SymbolId`].
    #[must_use]
    pub fn symbols(&self) -> &[ProfileSymbol] {
        &self.symbols
    }

    /// All frames, by [`FrameId`].
    #[must_use]
    pub fn frames(&self) -> &[ProfileFrame] {
        &self.frames
    }

    /// An image.
    #[must_use]
    pub fn image(&self, id: ImageId) -> Option<&ProfileImage> {
        self.images.get(id.index())
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&ProfileSymbol> {
        self.symbols.get(id.index())
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Option<&ProfileFrame> {
        self.frames.get(id.index())
    }

    /// Returns true if the line or instruction of a frame is approximate.
    pub(crate) fn is_approximate(&self, id: FrameId) -> bool {
        let line = self.frame(id).and_then(|frame| frame.line.as_ref());
        line.is_some_and(|line| line.precision.is_approximate())
    }

    /// The symbol of a frame.
    #[must_use]
    pub fn symbol_of(&self, id: FrameId) -> Option<&ProfileSymbol> {
        self.symbol(self.frame(id)?.symbol)
    }
}

/// The frames at one address, innermost first. There are several if functions were inlined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InlinedFrames {
    first: u32,
    len: u32,
}

/// Builds a frame table.
#[derive(Debug, Default)]
pub(crate) struct FrameTableBuilder {
    /// The images are added at the end.
    table: FrameTable,
    symbol_ids: HashMap<SymbolKey, SymbolId>,
    signatures: ShownSignatures,
    /// The methods with signatures, by their names without them.
    methods: HashMap<(ImageId, String), SameName>,
    frame_ids: HashMap<ProfileFrame, FrameId>,
    files: HashSet<Arc<str>>,
    /// The concatenated lists of all [`InlinedFrames`].
    lists: Vec<FrameId>,
    list_ids: HashMap<Box<[FrameId]>, InlinedFrames>,
}

/// Identifies a symbol.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SymbolKey {
    image: ImageId,
    /// 0 for inlined symbols and run-time code.
    start: u64,
    name: String,
    inlined: bool,
}

/// Methods with the same name.
#[derive(Debug, Default)]
struct SameName {
    methods: Vec<SymbolId>,
    /// Whether their names end with their signatures.
    shows_signatures: bool,
}

impl FrameTableBuilder {
    pub fn new(signatures: ShownSignatures) -> Self {
        Self {
            signatures,
            ..Self::default()
        }
    }

    /// Returns the id of the symbol with this start in its image.
    pub fn intern_symbol(&mut self, start: u64, symbol: ProfileSymbol) -> SymbolId {
        let start = match symbol.inlined || symbol.run_time {
            true => 0,
            false => start,
        };
        let symbol = ProfileSymbol { start, ..symbol };
        let key = SymbolKey {
            image: symbol.image,
            start,
            name: symbol.name.clone(),
            inlined: symbol.inlined,
        };
        if let Some(known) = self.symbol_ids.get(&key) {
            return *known;
        }
        let next = SymbolId::at(self.table.symbols.len());
        self.symbol_ids.insert(key, next);
        self.table.symbols.push(symbol);
        self.add_signatures(next);
        next
    }

    /// Adds the signature to the name of a new method, and to those of the methods that it overloads.
    fn add_signatures(&mut self, id: SymbolId) {
        let symbols = &mut self.table.symbols;
        let Some(new) = symbols.get(id.index()) else {
            return;
        };
        if new.signature.is_none() {
            return;
        }
        let key = (new.image, new.name.clone());
        let same = self.methods.entry(key).or_default();
        same.methods.push(id);
        let first = same.methods.first();
        let first = first.and_then(|first| symbols.get(first.index()));
        let overloads = first.is_some_and(|first| first.signature != new.signature);
        let renamed = match self.signatures {
            _ if same.shows_signatures => vec![id],
            ShownSignatures::OfAll => vec![id],
            ShownSignatures::OfOverloads if overloads => same.methods.clone(),
            ShownSignatures::OfOverloads => Vec::new(),
        };
        same.shows_signatures |= overloads;
        for id in renamed {
            if let Some(symbol) = symbols.get_mut(id.index()) {
                symbol.name = symbol.full_name().into_owned();
            }
        }
    }

    /// Returns the id of a line of a symbol, or of the symbol as a whole.
    pub fn intern_frame(&mut self, symbol: SymbolId, line: Option<(&str, u32)>) -> FrameId {
        let line = line.map(|(file, line)| SourceLine {
            file: self.intern_file(file),
            line,
            precision: Precision::Exact,
        });
        self.intern(ProfileFrame { symbol, line })
    }

    /// Returns the id of the same frame with an approximate line, or the same id if the frame has no line.
    pub fn intern_approximate(&mut self, id: FrameId) -> FrameId {
        let Some(mut frame) = self.table.frame(id).cloned() else {
            return id;
        };
        if let Some(line) = &mut frame.line {
            line.precision = Precision::Approximate;
        }
        self.intern(frame)
    }

    fn intern(&mut self, frame: ProfileFrame) -> FrameId {
        let next = FrameId::at(self.table.frames.len());
        *self.frame_ids.entry(frame).or_insert_with_key(|frame| {
            self.table.frames.push(frame.clone());
            next
        })
    }

    /// Stores the frames at an address, innermost first, unless the list is already known.
    pub fn intern_list(&mut self, frames: &[FrameId]) -> InlinedFrames {
        if let Some(list) = self.list_ids.get(frames) {
            return *list;
        }
        let list = InlinedFrames {
            first: number(self.lists.len()),
            len: number(frames.len()),
        };
        self.lists.extend_from_slice(frames);
        self.list_ids.insert(frames.into(), list);
        list
    }

    /// The frames of a list.
    pub fn list(&self, list: InlinedFrames) -> &[FrameId] {
        let range = |InlinedFrames { first, len }| {
            let first = usize::try_from(first).ok()?;
            let end = first.checked_add(usize::try_from(len).ok()?)?;
            self.lists.get(first..end)
        };
        range(list).unwrap_or_default()
    }

    /// A frame and its symbol.
    pub fn get(&self, id: FrameId) -> Option<(&ProfileSymbol, &ProfileFrame)> {
        let frame = self.table.frame(id)?;
        Some((self.table.symbol(frame.symbol)?, frame))
    }

    /// A symbol.
    pub fn symbol(&self, id: SymbolId) -> Option<&ProfileSymbol> {
        self.table.symbol(id)
    }

    /// Returns the table with these images, indexed by [`ImageId`].
    pub fn finish(self, images: Vec<ProfileImage>) -> FrameTable {
        FrameTable {
            images,
            ..self.table
        }
    }

    fn intern_file(&mut self, name: &str) -> Arc<str> {
        if let Some(file) = self.files.get(name) {
            return Arc::clone(file);
        }
        let file: Arc<str> = name.into();
        self.files.insert(Arc::clone(&file));
        file
    }
}

/// Cannot overflow in practice: each table has fewer entries than the recording has bytes.
fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
