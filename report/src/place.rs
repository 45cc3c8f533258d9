//! Which symbols, and which lines of them, does a profile have?

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use varid_model::{Layer, Marker};

use crate::tables::ImageId;

/// A symbol of a [`Profile`](crate::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// A place of a [`Profile`](crate::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(pub u32);

/// A method or function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name to show: `org.example.Balls.draw`, `memcpy`, `libfoo.so+0x1234`.
    pub name: String,
    /// The name in the recording, if a mapping file knows it by the other one.
    pub recorded: Option<String>,
    /// Where it is.
    pub image: ImageId,
    /// Its first address, as an offset in the image; of kernel functions the address, of inlined ones 0.
    pub start: u64,
    /// What its samples count for.
    pub layer: Layer,
    /// Set if it stands for frames that are missing.
    pub marker: Option<Marker>,
    /// Whether it is the copies of the function that were compiled into its callers.
    pub inlined: bool,
    /// Whether it has a name of its own: `libfoo.so+0x1234` has none.
    pub named: bool,
}

/// What a call tree is made of: a symbol, or if lines were asked for a line of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The symbol.
    pub symbol: SymbolId,
    /// The line; none if none was asked for or it is not known.
    pub location: Option<Location>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file as the compiler recorded it: with folders if it did.
    pub file: Arc<str>,
    /// Its line, from 1.
    pub line: u32,
}

/// The places at one address, innermost first: more than one where functions were inlined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stack {
    first: u32,
    len: u32,
}

/// Symbols and places, each once, by number.
#[derive(Debug, Default)]
pub struct Places {
    symbols: Vec<Symbol>,
    symbol_ids: HashMap<SymbolKey, SymbolId>,
    places: Vec<Place>,
    place_ids: HashMap<Place, PlaceId>,
    files: HashSet<Arc<str>>,
    /// Of all stacks, one behind the other.
    stacks: Vec<PlaceId>,
    stack_ids: HashMap<Box<[PlaceId]>, Stack>,
}

/// What makes a symbol another one: where it is, its first address, its name, and whether
/// it is inlined: then it has no address of its own.
type SymbolKey = (ImageId, u64, String, bool);

impl Places {
    /// The number of a symbol that starts at this address of its image.
    pub fn symbol(&mut self, start: u64, symbol: Symbol) -> SymbolId {
        let start = if symbol.inlined { 0 } else { start };
        let symbol = Symbol { start, ..symbol };
        let key = (symbol.image, start, symbol.name.clone(), symbol.inlined);
        let next = SymbolId(number(self.symbols.len()));
        *self.symbol_ids.entry(key).or_insert_with(|| {
            self.symbols.push(symbol);
            next
        })
    }

    /// The number of a symbol's line, or of the symbol as a whole.
    pub fn place(&mut self, symbol: SymbolId, line: Option<(&str, u32)>) -> PlaceId {
        let location = line.map(|(file, line)| Location {
            file: self.file(file),
            line,
        });
        let next = PlaceId(number(self.places.len()));
        let place = Place { symbol, location };
        *self.place_ids.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            next
        })
    }

    /// Keeps a stack, innermost first, if it is new.
    pub fn keep(&mut self, places: &[PlaceId]) -> Stack {
        if let Some(stack) = self.stack_ids.get(places) {
            return *stack;
        }
        let stack = Stack {
            first: number(self.stacks.len()),
            len: number(places.len()),
        };
        self.stacks.extend_from_slice(places);
        self.stack_ids.insert(places.into(), stack);
        stack
    }

    /// The places of a stack.
    pub fn of(&self, stack: Stack) -> &[PlaceId] {
        let range = |Stack { first, len }| {
            let first = usize::try_from(first).ok()?;
            let end = first.checked_add(usize::try_from(len).ok()?)?;
            self.stacks.get(first..end)
        };
        range(stack).unwrap_or_default()
    }

    /// A place and its symbol.
    pub fn get(&self, id: PlaceId) -> Option<(&Symbol, &Place)> {
        let place = self.places.get(usize::try_from(id.0).ok()?)?;
        let symbol = self.symbols.get(usize::try_from(place.symbol.0).ok()?)?;
        Some((symbol, place))
    }

    /// By [`SymbolId`] and by [`PlaceId`].
    pub fn into_parts(self) -> (Vec<Symbol>, Vec<Place>) {
        (self.symbols, self.places)
    }

    fn file(&mut self, name: &str) -> Arc<str> {
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
