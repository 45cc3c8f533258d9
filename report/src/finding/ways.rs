//! Merges symbols of one function that a runtime compiled several times.
//!
//! V8 names a function `JS:~work …`, `JS:^work …` and `JS:*work …` when it is interpreted, compiled and optimised. Each
//! variant has a row. For the sentence, they are one function.

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

/// The symbols of a profile, grouped by function.
#[derive(Debug, Default)]
pub struct Ways {
    /// By symbol: the variant of its function with the largest own share, if that is another symbol.
    first: HashMap<SymbolId, SymbolId>,
    /// The symbols of functions with several variants.
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

    /// Returns the symbol that represents a symbol's function.
    pub fn first(&self, id: SymbolId) -> SymbolId {
        self.first.get(&id).copied().unwrap_or(id)
    }

    /// Returns the name of the function. If there are several variants, it is the name without the variant.
    pub fn name<'p>(&self, profile: &'p Profile, id: SymbolId) -> Option<&'p str> {
        let name = profile.frames.symbol(id)?.name.as_str();
        Some(match self.several.contains(&self.first(id)) {
            true => short_name::any_way(name),
            false => name,
        })
    }
}
