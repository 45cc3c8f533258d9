//! Which symbols are one function that a runtime has compiled in several ways?
//!
//! V8 names the same function `JS:~work …`, `JS:^work …` and `JS:*work …`, as it is interpreted, compiled and optimised. Each has a row; in the sentence
//! they are no rivals.

use std::collections::{HashMap, HashSet};

use crate::{
    frames::{ImageId, SymbolId},
    profile::Profile,
    short_name,
};

/// The symbols of a profile, by function.
#[derive(Debug)]
pub struct Ways {
    /// By symbol: the first one of its function, where that is another one.
    first: HashMap<SymbolId, SymbolId>,
    /// First symbols of functions with several.
    several: HashSet<SymbolId>,
}

impl Ways {
    pub fn new(profile: &Profile) -> Self {
        let mut functions: HashMap<(ImageId, &str), SymbolId> = HashMap::new();
        let mut ways = Self {
            first: HashMap::new(),
            several: HashSet::new(),
        };
        for (symbol, number) in profile.frames.symbols().iter().zip(0u32..) {
            let any = short_name::any_way(&symbol.name);
            if any == symbol.name {
                continue;
            }
            let id = SymbolId(number);
            let first = *functions.entry((symbol.image, any)).or_insert(id);
            if first != id {
                ways.first.insert(id, first);
                ways.several.insert(first);
            }
        }
        ways
    }

    /// The symbol that stands for a symbol's function.
    pub fn first(&self, id: SymbolId) -> SymbolId {
        self.first.get(&id).copied().unwrap_or(id)
    }

    /// The function's name: that of the symbol, without how it was compiled if it was in several ways.
    pub fn name<'p>(&self, profile: &'p Profile, id: SymbolId) -> Option<&'p str> {
        let name = profile.frames.symbol(id)?.name.as_str();
        Some(match self.several.contains(&self.first(id)) {
            true => short_name::any_way(name),
            false => name,
        })
    }
}
