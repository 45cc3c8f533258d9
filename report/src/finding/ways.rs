//! Which symbols are one function that a runtime has compiled in several ways?
//!
//! V8 names the same function `JS:~work …`, `JS:^work …` and `JS:*work …`, as it is interpreted, compiled and optimised. Each has a row; in the sentence
//! they are no rivals.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use crate::{
    frames::{ImageId, SymbolId},
    profile::Profile,
    scope::Scope,
    short_name,
};

/// The symbols of a profile, by function.
#[derive(Debug, Default)]
pub struct Ways {
    /// By symbol: the one of its function that took most by itself, where that is another one.
    first: HashMap<SymbolId, SymbolId>,
    /// Those of functions with several.
    several: HashSet<SymbolId>,
}

impl Ways {
    pub fn new(scope: &Scope) -> Self {
        let mut functions: HashMap<(ImageId, &str), Vec<SymbolId>> = HashMap::new();
        for (symbol, number) in scope.profile.frames.symbols().iter().zip(0u32..) {
            let any = short_name::any_way(&symbol.name);
            if any != symbol.name {
                let ids = functions.entry((symbol.image, any)).or_default();
                ids.push(SymbolId(number));
            }
        }
        functions.retain(|_, ids| ids.len() > 1);
        let mut ways = Self::default();
        if functions.is_empty() {
            return ways;
        }
        let shares = scope.weights.by_frame(|frame| scope.symbol_of(frame));
        let own = |id: SymbolId| shares.get(&id).map_or(0, |share| scope.value(share.own));
        for ids in functions.values() {
            let most = ids
                .iter()
                .copied()
                .max_by_key(|id| (own(*id), Reverse(*id)));
            let Some(most) = most else { continue };
            ways.several.insert(most);
            let others = ids.iter().filter(|id| **id != most);
            ways.first.extend(others.map(|id| (*id, most)));
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
