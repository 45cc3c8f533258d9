//! What a view is of: an event of a profile and its measures.

use std::{borrow::Cow, collections::HashMap, hash::Hash};

use varid_recording::EventDesc;

use crate::{
    error::Result,
    frames::{FrameId, ProfileImage, ProfileSymbol, SymbolId},
    measures::ShownMeasures,
    profile::{EventSummary, Profile},
    shares::{Share, StackWeights},
    stack_filter::has_name,
    stacks::StackId,
    unit::Unit,
    view::{PercentOf, View},
    weights::{ProfileCounter, SampleWeight, Weight},
};

/// A profile with what a view shows of it, and what all its tables need.
#[derive(Debug)]
pub(crate) struct Scope<'p> {
    pub profile: &'p Profile,
    pub view: &'p View,
    pub event: &'p EventSummary,
    /// What the event is called and how often it was sampled.
    pub description: &'p EventDesc,
    /// What all samples of the event weigh.
    pub samples: SampleWeight,
    /// What weights have the values of.
    pub measures: ShownMeasures,
    /// What percentages of samples are of.
    pub percent_of: PercentOf,
    /// The sum of the weights.
    pub all: Weight,
    pub weights: StackWeights<'p>,
    /// By [`SymbolId`]: whether the view is of it. Empty: it is of all.
    selected: Vec<bool>,
    /// By [`SymbolId`]: the symbol that it counts as. Empty: each is one of its own.
    merged: Vec<SymbolId>,
}

impl<'p> Scope<'p> {
    /// # Errors
    ///
    /// The view is of an event or a measure that the profile does not have.
    pub fn new(profile: &'p Profile, view: &'p View) -> Result<Self> {
        Self::of_event(profile, view, profile.event(view.event)?)
    }

    /// The same view of an event, whichever it names.
    ///
    /// # Errors
    ///
    /// The view is of a measure that the profile does not have.
    pub fn of_event(profile: &'p Profile, view: &'p View, event: &'p EventSummary) -> Result<Self> {
        let named = match (&view.measures[..], view.table.measures) {
            ([], of_table) => of_table.iter().map(|name| (*name).to_owned()).collect(),
            (named, _) => named.to_vec(),
        };
        let measures = ShownMeasures::of(profile, event, &named, view.percent_of)?;
        Ok(Self::of(profile, view, event, measures))
    }

    /// The same view of an event's samples, whichever event and measures it names.
    pub fn of_samples(profile: &'p Profile, view: &'p View, event: &'p EventSummary) -> Self {
        let measures = ShownMeasures::samples(profile, event, view.percent_of);
        Self::of(profile, view, event, measures)
    }

    fn of(
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
            selected: selected_symbols(profile, view),
            merged: Vec::new(),
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
        self.merged = ids
            .map(|(id, symbol)| {
                let key = key(symbol, frames.image(symbol.image));
                *first.entry(key).or_insert(id)
            })
            .collect();
    }

    /// Whether the view's layer and symbols are those of a stack's leaf.
    pub fn selects_leaf(&self, stack: Option<StackId>) -> bool {
        let leaf = stack.and_then(|stack| self.profile.stacks.frame(stack));
        let symbol = leaf.and_then(|leaf| self.symbol_of(leaf));
        let place = symbol.and_then(|symbol| usize::try_from(symbol.0).ok());
        let selected = place.and_then(|place| self.selected.get(place));
        self.selected.is_empty() || selected.is_some_and(|selected| *selected)
    }

    /// What the samples weigh whose leaf is not of the view's layer and symbols; none: the view is of all.
    pub fn elsewhere(&self) -> Option<SampleWeight> {
        if self.selected.is_empty() {
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

    /// What the view's layer and symbols took together, by themselves and with what they called; all of it, if the view is of all.
    pub fn selected_share(&self) -> Share {
        if self.selected.is_empty() {
            let (own, total) = (self.all, self.all);
            return Share { own, total };
        }
        let is_selected = |frame| {
            let place = usize::try_from(self.symbol_of(frame)?.0).ok()?;
            self.selected.get(place)?.then_some(())
        };
        let shares = self.weights.by_frame(is_selected);
        shares.get(&()).copied().unwrap_or_default()
    }

    /// The weights of the stacks whose leaf is of the view's layer and symbols.
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
        let merged = self.merged.get(usize::try_from(symbol.0).ok()?);
        Some(merged.copied().unwrap_or(symbol))
    }

    /// The image of a symbol.
    pub fn image_of(&self, symbol: SymbolId) -> Option<&'p ProfileImage> {
        let frames = &self.profile.frames;
        frames.image(frames.symbol(symbol)?.image)
    }

    /// The number that percentages are of, of a weight.
    pub fn value(&self, weight: Weight) -> u64 {
        self.measures.value(weight)
    }

    /// The number that is shown beside a percentage, of a weight.
    pub fn count(&self, weight: Weight) -> u64 {
        self.measures.count(weight)
    }

    /// How many percent of the whole a weight is.
    pub fn percent(&self, weight: Weight) -> f64 {
        percent(self.value(weight), self.value(self.all))
    }

    /// The number that percentages of samples are of.
    pub const fn sample_value(&self, weight: SampleWeight) -> u64 {
        self.percent_of.value(weight)
    }

    /// How many percent of the event's samples some are.
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

    /// What a period counts.
    pub fn unit(&self) -> &'static str {
        Unit::of(self.description).name()
    }
}

/// By [`SymbolId`]: whether a view is of it. Empty if it is of all.
fn selected_symbols(profile: &Profile, view: &View) -> Vec<bool> {
    if view.layer.is_none() && view.symbol.is_none() {
        return Vec::new();
    }
    let selected = |symbol: &ProfileSymbol| {
        let layer = view.layer.is_none_or(|layer| layer == symbol.layer);
        let pattern = view.symbol.as_ref();
        layer && pattern.is_none_or(|pattern| has_name(symbol, pattern))
    };
    profile.frames.symbols().iter().map(selected).collect()
}

/// How many percent of `all` a part is; 0 of nothing.
#[allow(clippy::cast_precision_loss)] // six decimals are shown at most
pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}
