//! Who called a method, and what did it call?

use std::collections::HashMap;

use crate::{
    place::SymbolId,
    profile::Profile,
    rows::{self, Row},
    tree::Weight,
    view::{By, View},
};

/// A method with those around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The method; its total is what the shares of the others are of.
    pub row: Row,
    /// Its callers, those with the largest share first.
    pub callers: Vec<Call>,
    /// What it called, as above. The method itself is among both if it recurs.
    pub callees: Vec<Call>,
}

/// The samples in which a method and a neighbour stood in the stack as caller and callee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The neighbour; without a share of its own.
    pub row: Row,
    /// The samples, each once however often it has the pair.
    pub weight: Weight,
}

/// The entries that a view shows, in the order of its table by symbol, and how many it hides.
pub fn entries(profile: &Profile, view: &View) -> (Vec<Entry>, usize) {
    let rows = rows::rows(profile, By::Symbol, view);
    let symbol = |place| profile.place(place).map(|place| place.symbol);
    let (mut callers, mut callees): (Calls, Calls) = Default::default();
    for ((caller, callee), weight) in profile.tree.calls(symbol) {
        callers.entry(callee).or_default().push((caller, weight));
        callees.entry(caller).or_default().push((callee, weight));
    }
    let calls = |of: &mut Calls, row: &Row| {
        let found = row.id.and_then(|id| of.remove(&id)).unwrap_or_default();
        sorted(profile, view, found, row.share.total)
    };
    let entry = |row: Row| Entry {
        callers: calls(&mut callers, &row),
        callees: calls(&mut callees, &row),
        row,
    };
    (rows.shown.into_iter().map(entry).collect(), rows.hidden)
}

type Calls = HashMap<SymbolId, Vec<(SymbolId, Weight)>>;

fn sorted(
    profile: &Profile,
    view: &View,
    found: Vec<(SymbolId, Weight)>,
    all: Weight,
) -> Vec<Call> {
    let value = |call: &Call| view.percent_of.value(call.weight);
    let all = view.percent_of.value(all);
    let mut calls: Vec<Call> = found
        .into_iter()
        .map(|(id, weight)| Call {
            row: rows::symbol_row(profile, id),
            weight,
        })
        .filter(|call| rows::percent(value(call), all) >= view.min_percent)
        .collect();
    calls.sort_by(|one, other| {
        let by_value = value(other).cmp(&value(one));
        by_value.then_with(|| {
            let name = |call: &Call| (call.row.symbol.clone(), call.row.inlined);
            name(one).cmp(&name(other))
        })
    });
    calls
}
