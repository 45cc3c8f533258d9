//! Which images, symbols and frames does a profile have?

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use varid_model::{Layer, Marker, Precision};

/// An image of a [`FrameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(pub u32);

/// A symbol of a [`FrameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// A frame of a [`FrameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// A file that code came from, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileImage {
    /// The name to show: of dex files the location, of others the path without its folder.
    pub name: String,
    /// Where it was when it was recorded; none for the kernel and for markers.
    pub path: Option<PathBuf>,
    /// What its samples count for.
    pub layer: Layer,
}

/// A method or function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSymbol {
    /// The name to show: `org.example.Balls.draw`, `memcpy`, `libfoo.so+0x1234`.
    pub name: String,
    /// The name in the recording, if a mapping file gives it another one.
    pub recorded: Option<String>,
    /// Where it is.
    pub image: ImageId,
    /// Its first address, as an offset in the image; of kernel functions the address; of inlined ones, of code made at run time and of what has no
    /// name 0.
    pub start: u64,
    /// What its samples count for.
    pub layer: Layer,
    /// Set if it stands for frames that are missing.
    pub marker: Option<Marker>,
    /// Whether it is the copies of the function that were compiled into its callers.
    pub inlined: bool,
    /// Whether it has a name of its own: `libfoo.so+0x1234` has none.
    pub named: bool,
    /// Whether its code was made at run time. Its name tells it then: a method may be compiled more than once, and in each process elsewhere.
    pub run_time: bool,
}

/// What stacks are made of: a symbol or, if lines are read, a line of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileFrame {
    /// The symbol.
    pub symbol: SymbolId,
    /// The line; none if lines are not read or it is not known.
    pub line: Option<SourceLine>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file as the compiler recorded it: with folders if it did.
    pub file: Arc<str>,
    /// Its line, from 1.
    pub line: u32,
    /// Whether the frame was at this line, or at one near it.
    pub precision: Precision,
}

impl SourceLine {
    /// The file's name without its folder, as perf shows it.
    pub(crate) fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

/// The frames of a profile with their symbols and images, each once.
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
        self.images.get(usize::try_from(id.0).ok()?)
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&ProfileSymbol> {
        self.symbols.get(usize::try_from(id.0).ok()?)
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Option<&ProfileFrame> {
        self.frames.get(usize::try_from(id.0).ok()?)
    }

    /// Whether a frame was not exactly where it says.
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

/// The frames at one address, innermost first: more than one where functions were inlined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InlinedFrames {
    first: u32,
    len: u32,
}

/// A frame table that grows.
#[derive(Debug, Default)]
pub(crate) struct FrameTableBuilder {
    /// Without images.
    table: FrameTable,
    symbol_ids: HashMap<SymbolKey, SymbolId>,
    frame_ids: HashMap<ProfileFrame, FrameId>,
    files: HashSet<Arc<str>>,
    /// The frames of all [`InlinedFrames`], one list behind the other.
    lists: Vec<FrameId>,
    list_ids: HashMap<Box<[FrameId]>, InlinedFrames>,
}

/// Symbols are different if any of these is: the image, the first address, the name, and whether
/// it is inlined: an inlined symbol has no address of its own, and neither has code that was made at run time.
type SymbolKey = (ImageId, u64, String, bool);

impl FrameTableBuilder {
    /// The id of a symbol that starts at this address of its image.
    pub fn intern_symbol(&mut self, start: u64, symbol: ProfileSymbol) -> SymbolId {
        let start = match symbol.inlined || symbol.run_time {
            true => 0,
            false => start,
        };
        let symbol = ProfileSymbol { start, ..symbol };
        let key = (symbol.image, start, symbol.name.clone(), symbol.inlined);
        let next = SymbolId(number(self.table.symbols.len()));
        *self.symbol_ids.entry(key).or_insert_with(|| {
            self.table.symbols.push(symbol);
            next
        })
    }

    /// The id of a symbol's line, or of the symbol as a whole.
    pub fn intern_frame(&mut self, symbol: SymbolId, line: Option<(&str, u32)>) -> FrameId {
        let line = line.map(|(file, line)| SourceLine {
            file: self.intern_file(file),
            line,
            precision: Precision::Exact,
        });
        self.intern(ProfileFrame { symbol, line })
    }

    /// The id of the frame that is like another one, but is near its line only; the same id if that has no line.
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
        let next = FrameId(number(self.table.frames.len()));
        *self.frame_ids.entry(frame).or_insert_with_key(|frame| {
            self.table.frames.push(frame.clone());
            next
        })
    }

    /// Stores the frames at an address, innermost first, if that list is new.
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

    /// The table, with these images by [`ImageId`].
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

/// There are fewer of anything than bytes in the recording.
fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
