//! Sums samples by place, and decides whether one place is clearly the largest.

use std::collections::BTreeMap;

use varid_model::Layer;

use super::{
    Finding, MIN_PERCENT, Place,
    program::{Program, is_code},
    ways::Ways,
};
use crate::{
    activity::{Activities, Activity},
    fast_hash::FastMap,
    frames::SymbolId,
    profile::Profile,
    scope::{Scope, percent},
};

/// With fewer samples, the error of a share is several percentage points.
pub const MIN_SAMPLES: u64 = 200;
/// If more samples are unattributed or lost, they could change the order of the shares.
const MAX_UNKNOWN_PERCENT: f64 = 10.0;
/// The minimum lead over the next share in percentage points. For code that is not the app's, the next share may be
/// that of all app methods together.
const MIN_LEAD: f64 = 5.0;
/// The minimum lead in standard errors of the difference.
const STANDARD_ERRORS: f64 = 3.0;
/// The minimum share of a caller in the place, for it to be named.
const MIN_CALLER_PERCENT: f64 = 60.0;

/// The granularity of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// The program's own functions, and the files of other code.
    Image,
    /// Every function. The kernel is one place.
    Function,
    /// The program's own innermost function, including its callees.
    Caller,
}

/// The data for a decision.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'p> {
    /// Number of samples, and how many are unattributed or lost.
    pub samples: u64,
    pub unattributed: u64,
    pub lost: u64,
    /// The sum that percentages refer to.
    pub all: u64,
    /// Weights by place and by the program's own innermost function on the stack.
    pub places: BTreeMap<Place<'p>, BTreeMap<Option<&'p str>, u64>>,
    /// Weight of places that cannot be named: markers, code without a name.
    pub unnamed: u64,
    pub program: Program,
}

impl<'p> Evidence<'p> {
    pub fn of(scope: &Scope<'p>, program: Program, grain: Grain) -> Self {
        let profile = scope.profile;
        let callers = program.own_callers(profile);
        let ways = Ways::new(scope);
        let activities = match (program, grain) {
            (Program::Managed, Grain::Image) => Some(Activities::new(profile)),
            _ => None,
        };
        let mut evidence = Self {
            samples: scope.samples.samples(),
            unattributed: scope.event.unattributed_samples(),
            lost: profile.recording.lost,
            all: scope.value(scope.all),
            program,
            ..Self::default()
        };
        // Sum by id first, which is cheaper than by name.
        let mut sums: FastMap<(SymbolId, Option<SymbolId>), u64> = FastMap::default();
        for row in profile.weights.rows(&scope.measures.counters()) {
            let value = scope.value(row.weight);
            let activity = activities.as_ref();
            let activity = activity.map(|activities| activities.of(row.task, row.stack));
            if let Some(activity) = activity.filter(|activity| *activity != Activity::Program) {
                evidence.add(Place::Activity(activity), None, value);
                continue;
            }
            let leaf = row.stack.and_then(|stack| profile.stacks.frame(stack));
            let caller = row.stack.and_then(|stack| callers.get(stack.index()));
            let caller = caller.copied().flatten();
            match leaf.and_then(|leaf| scope.symbol_of(leaf)) {
                Some(leaf) => {
                    let sum = sums.entry((leaf, caller)).or_default();
                    *sum = sum.saturating_add(value);
                }
                None => evidence.unnamed = evidence.unnamed.saturating_add(value),
            }
        }
        let name = |id: SymbolId| ways.name(profile, id);
        let places = Places {
            profile,
            ways: &ways,
            program,
            grain,
        };
        for ((leaf, caller), value) in sums {
            let place = match grain {
                Grain::Caller => caller.and_then(|id| Some(Place::With(ways.first(id), name(id)?))),
                Grain::Image | Grain::Function => places.of(leaf),
            };
            let Some(place) = place else {
                evidence.unnamed = evidence.unnamed.saturating_add(value);
                continue;
            };
            // The place is its own caller.
            let caller = caller.filter(|_| grain != Grain::Caller);
            evidence.add(place, caller.and_then(name), value);
        }
        evidence
    }

    fn add(&mut self, place: Place<'p>, caller: Option<&'p str>, value: u64) {
        let callers = self.places.entry(place).or_default();
        let sum = callers.entry(caller).or_default();
        *sum = sum.saturating_add(value);
    }

    /// Returns the place whose share is large enough and clearly the largest.
    pub fn decide(&self) -> Option<Finding<'p>> {
        let unknown = [
            percent(self.unattributed, self.samples),
            percent(self.lost, self.samples.saturating_add(self.lost)),
        ];
        if self.samples < MIN_SAMPLES || unknown.into_iter().any(|part| part > MAX_UNKNOWN_PERCENT)
        {
            return None;
        }
        let sum = |callers: &BTreeMap<_, u64>| {
            callers
                .values()
                .fold(0_u64, |sum, value| sum.saturating_add(*value))
        };
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_by_key(|(_, callers)| std::cmp::Reverse(sum(callers)));
        let (place, callers) = *places.first()?;
        let next = places.get(1).map_or(0, |(_, callers)| sum(callers));
        let first = sum(callers);
        let share = percent(first, self.all);
        let methods = places.iter();
        let methods = methods.filter(|(place, _)| matches!(place, Place::Own(..)));
        let methods = methods.map(|(_, callers)| sum(callers));
        let app = match place {
            Place::Own(..) | Place::With(..) | Place::Function(..) => 0,
            _ => methods.fold(0_u64, u64::saturating_add),
        };
        let rest = percent(next.max(app).max(self.unnamed), self.all);
        if share < MIN_PERCENT || !is_clear(share, rest, self.samples) {
            return None;
        }
        let caller = callers
            .iter()
            .filter_map(|(name, value)| Some(((*name)?, *value)));
        let caller = caller.max_by_key(|(_, value)| *value);
        let caller = caller.filter(|(_, value)| percent(*value, first) >= MIN_CALLER_PERCENT);
        Some(Finding {
            percent: share,
            place: *place,
            caller: caller.map(|(name, _)| name),
            line: None,
            program: self.program,
        })
    }
}

/// Finds the places of samples.
struct Places<'w, 'p> {
    profile: &'p Profile,
    ways: &'w Ways,
    program: Program,
    grain: Grain,
}

impl<'p> Places<'_, 'p> {
    /// Returns the place of a sample with this leaf. None if unknown.
    fn of(&self, leaf: SymbolId) -> Option<Place<'p>> {
        let profile = self.profile;
        let symbol = profile.frames.symbol(leaf)?;
        let image = profile.frames.image(symbol.image)?;
        if !is_code(image) {
            return None;
        }
        Some(match symbol.layer {
            Layer::Kernel => Place::Kernel,
            _ if self.program.owns(profile, symbol) && symbol.named => {
                Place::Own(self.ways.first(leaf), self.ways.name(profile, leaf)?)
            }
            layer if self.grain == Grain::Function && symbol.named => {
                Place::Function(leaf, layer, &image.name, &symbol.name)
            }
            layer => Place::Image(layer, &image.name),
        })
    }
}

/// Returns true if a share leads another one by enough points and standard errors. The difference of two shares of one
/// multinomial distribution has the variance (p + q - (p - q)²) / n.
#[allow(clippy::cast_precision_loss)] // the square root has less
fn is_clear(share: f64, next: f64, samples: u64) -> bool {
    let (p, q) = (share / 100.0, next / 100.0);
    let variance = (p + q - (p - q).powi(2)) / samples as f64;
    let error = variance.max(0.0).sqrt() * 100.0;
    share - next >= MIN_LEAD && share - next >= STANDARD_ERRORS * error
}
