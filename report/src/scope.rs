//! The scope of a view: an event of a profile and its measures.

use std::{borrow::Cow, collections::HashMap, hash::Hash};

use varid_recording::EventDesc;

use crate::{
    error::Result,
    frames::{FrameId, ProfileImage, ProfileSymbol, SymbolId},
    measures::ShownMeasures,
    profile::{EventSummary, Profile},
    shares::{Share, StackWeights},
    stacks::StackId,
    unit::Unit,
    view::{PercentOf, View},
    weights::{ProfileCounter, SampleWeight, Weight},
};

/// A profile with the selection of a view, and values that all its tables need.
#[derive(Debug)]
pub(crate) struct Scope<'p> {
    pub profile: &'p Profile,
    pub view: &'p View,
    pub event: &'p EventSummary,
    /// The name and rate of the event.
    pub description: &'p EventDesc,
    /// The weight of all samples of the event.
    pub samples: SampleWeight,
    /// The measures of the weights.
    pub measures: ShownMeasures,
    /// Which value percentages of samples refer to.
    pub percent_of: PercentOf,
    /// The sum of the weights.
    pub all: Weight,
    pub weights: StackWeights<'p>,
    symbols: ScopeSymbols,
}

/// Which symbols a view selects and merges.
#[derive(Debug)]
struct ScopeSymbols {
    /// By [`SymbolId`]: whether the view selects the symbol. Empty if it selects all.
    selected: Vec<bool>,
    /// By [`SymbolId`]: the symbol that it is merged into. Empty if no symbols are merged.
    merged: Vec<SymbolId>,
}

impl<'p> Scope<'p> {
    /// # Errors
    ///
    /// The profile does not have the view's event or one of its measures.
    pub fn new(profile: &'p Profile, view: &'p View) -> Result<Self> {
        Self::of_event(profile, view, profile.event(view.event)?)
    }

    /// The same view for the given event, ignoring the view's own event.
    ///
    /// # Errors
    ///
    /// The profile does not have one of the view's measures.
    pub fn of_event(profile: &'p Profile, view: &'p View, event: &'p EventSummary) -> Result<Self> {
        let named = match (&view.measures[..], view.table.measures) {
            ([], of_table) => of_table.iter().map(|name| (*name).to_owned()).collect(),
            (named, _) => named.to_vec(),
        };
        let measures = ShownMeasures::of(profile, event, &named, view.percent_of)?;
        Ok(Self::with_measures(profile, view, event, measures))
    }

    /// The same view for an event's samples, ignoring the view's own event and measures.
    pub fn of_samples(profile: &'p Profile, view: &'p View, event: &'p EventSummary) -> Self {
        let measures = ShownMeasures::samples(profile, event, view.percent_of);
        Self::with_measures(profile, view, event, measures)
    }

    /// The same view for these measures, ignoring the view's own event and measures.
    pub fn with_measures(
        profile: &'p Profile,
        view: &'p View,
        event: &'p EventSummary,
        measures: ShownMeasures,
    ) -> Self {
        let (counters, weights) = (measures.counters(), &profile.weights);
        Self {
            profile,
            view,
            event,
            description: profile.description(event.event),
            samples: profile.weight(event.event),
            all: weights.sum(&counters),
            weights: StackWeights::new(&profile.stacks, weights, &counters),
            percent_of: measures.percent_of(view.percent_of),
            measures,
            symbols: ScopeSymbols {
                selected: selected_symbols(profile, view),
                merged: Vec::new(),
            },
        }
    }

    /// Merges symbols with equal keys. A stack that has several of them counts once.
    pub fn merge_symbols<K: Eq + Hash>(
        &mut self,
        key: impl Fn(&'p ProfileSymbol, Option<&'p ProfileImage>) -> K,
    ) {
        let frames = &self.profile.frames;
        let mut first = HashMap::new();
        let ids = (0..).map(SymbolId).zip(frames.symbols());
        self.symbols.merged = ids
            .map(|(id, symbol)| {
                let key = key(symbol, frames.image(symbol.image));
                *first.entry(key).or_insert(id)
            })
            .collect();
    }

    /// Returns true if a stack's leaf is in the view's layer and symbols.
    pub fn selects_leaf(&self, stack: Option<StackId>) -> bool {
        let leaf = stack.and_then(|stack| self.profile.stacks.frame(stack));
        let symbol = leaf.and_then(|leaf| self.symbol_of(leaf));
        let selected = symbol.and_then(|symbol| self.symbols.selected.get(symbol.index()));
        self.symbols.selected.is_empty() || selected.is_some_and(|selected| *selected)
    }

    /// Returns the weight of the samples whose leaf is outside the view's layer and symbols. None if the view selects all.
    pub fn elsewhere(&self) -> Option<SampleWeight> {
        if self.symbols.selected.is_empty() {
            return None;
        }
        let mut elsewhere = SampleWeight::default();
        for row in self.profile.weights.sample_rows(self.event.event) {
            if !self.selects_leaf(row.stack) {
                elsewhere.add(row.weight);
            }
        }
        Some(elsewhere)
    }

    /// Returns the own and total share of the view's layer and symbols together, or of everything if the view selects all.
    pub fn selected_share(&self) -> Share {
        if self.symbols.selected.is_empty() {
            let (own, total) = (self.all, self.all);
            return Share { own, total };
        }
        let is_selected = |frame| {
            let symbol = self.symbol_of(frame)?;
            self.symbols.selected.get(symbol.index())?.then_some(())
        };
        let shares = self.weights.by_frame(is_selected);
        shares.get(&()).copied().unwrap_or_default()
    }

    /// Returns the weights of the stacks whose leaf is in the view's layer and symbols.
    pub fn selected_weights(&self) -> StackWeights<'p> {
        let counters = self.measures.counters();
        let (stacks, weights) = (&self.profile.stacks, &self.profile.weights);
        StackWeights::of_leaves(stacks, weights, &counters, |stack| {
            self.selects_leaf(Some(stack))
        })
    }

    /// The symbol of a frame.
    pub fn symbol_of(&self, frame: FrameId) -> Option<SymbolId> {
        let symbol = self.profile.frames.frame(frame)?.symbol;
        let merged = self.symbols.merged.get(symbol.index());
        Some(merged.copied().unwrap_or(symbol))
    }

    /// The image of a symbol.
    pub fn image_of(&self, symbol: SymbolId) -> Option<&'p ProfileImage> {
        let frames = &self.profile.frames;
        frames.image(frames.symbol(symbol)?.image)
    }

    /// Returns the value of a weight that percentages refer to.
    pub fn value(&self, weight: Weight) -> u64 {
        self.measures.value(weight)
    }

    /// Returns the value of a weight that is shown beside a percentage.
    pub fn count(&self, weight: Weight) -> u64 {
        self.measures.count(weight)
    }

    /// Returns the percentage of a weight in the whole.
    pub fn percent(&self, weight: Weight) -> f64 {
        percent(self.value(weight), self.value(self.all))
    }

    /// Returns the value of a sample weight that percentages refer to.
    pub const fn sample_value(&self, weight: SampleWeight) -> u64 {
        self.percent_of.value(weight)
    }

    /// Returns the percentage of a sample weight in the event's samples.
    pub fn sample_percent(&self, weight: SampleWeight) -> f64 {
        percent(self.sample_value(weight), self.sample_value(self.samples))
    }

    /// The weights of the event's samples, by stack.
    pub fn sample_weights(&self) -> Cow<'_, StackWeights<'p>> {
        if self.measures.are_samples() {
            return Cow::Borrowed(&self.weights);
        }
        let counters = ProfileCounter::of_samples(self.event.event);
        let (stacks, weights) = (&self.profile.stacks, &self.profile.weights);
        Cow::Owned(StackWeights::new(stacks, weights, &counters))
    }

    /// Returns the unit of a period.
    pub fn unit(&self) -> &'static str {
        Unit::of(self.description).name()
    }
}

/// By [`SymbolId`]: whether a view selects the symbol. Empty if it selects all.
fn selected_symbols(profile: &Profile, view: &View) -> Vec<bool> {
    if view.code.is_empty() {
        return Vec::new();
    }
    let symbols = profile.frames.symbols().iter();
    symbols.map(|symbol| view.code.selects(symbol)).collect()
}

/// Returns the percentage of `part` in `all`, or 0 if `all` is 0.
#[allow(clippy::cast_precision_loss)] // six decimals are shown at most
pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}
