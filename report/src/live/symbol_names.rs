//! Which symbols have the same name?
//!
//! An image may have several functions of one name: instances of a generic function, a method that was compiled more than once. They are one row,
//! and a stack that has several of them counts once.

use std::collections::HashMap;

use crate::{
    frames::{ImageId, SymbolId},
    naming::Resolver,
};

/// Symbols by name.
#[derive(Debug, Default)]
pub struct SymbolNames {
    first: HashMap<(ImageId, String, bool), SymbolId>,
    /// By [`SymbolId`], once it is known: the first symbol of that name.
    known: Vec<Option<SymbolId>>,
}

impl SymbolNames {
    /// The first symbol of the image that has this one's name.
    pub fn first(&mut self, id: SymbolId, resolver: &Resolver) -> SymbolId {
        let Ok(place) = usize::try_from(id.0) else {
            return id;
        };
        if let Some(Some(known)) = self.known.get(place) {
            return *known;
        }
        let Some(symbol) = resolver.symbol_by_id(id) else {
            return id;
        };
        let name = (symbol.image, symbol.name.clone(), symbol.inlined);
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
