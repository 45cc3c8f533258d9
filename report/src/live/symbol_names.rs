//! Merges symbols with the same name.
//!
//! An image may have several functions with the same name: instances of a generic function, or a method that was
//! compiled several times. They share one row, and a stack that has several of them counts once.

use std::collections::HashMap;

use crate::{
    frames::{ImageId, SymbolId},
    naming::Resolver,
};

/// Symbols grouped by name.
#[derive(Debug, Default)]
pub struct SymbolNames {
    first: HashMap<NameKey, SymbolId>,
    /// By [`SymbolId`]: the first symbol with the same name, once known.
    known: Vec<Option<SymbolId>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NameKey {
    image: ImageId,
    name: String,
    inlined: bool,
}

impl SymbolNames {
    /// Returns the first symbol of the image with this symbol's name.
    pub fn first(&mut self, id: SymbolId, resolver: &Resolver) -> SymbolId {
        let place = id.index();
        if let Some(Some(known)) = self.known.get(place) {
            return *known;
        }
        let Some(symbol) = resolver.symbol_by_id(id) else {
            return id;
        };
        let name = NameKey {
            image: symbol.image,
            name: symbol.name.clone(),
            inlined: symbol.inlined,
        };
        let first = *self.first.entry(name).or_insert(id);
        if self.known.len() <= place {
            self.known.resize(place.saturating_add(1), None);
        }
        if let Some(known) = self.known.get_mut(place) {
            *known = Some(first);
        }
        first
    }
}
