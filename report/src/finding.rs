//! Which one sentence do the numbers bear?
//!
//! The rules and their thresholds are in `docs/guide-reading-a-report.md`. Where no rule holds there is no sentence.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use varid_model::{Layer, Marker};

use crate::{
    frames::{ImageId, SymbolId},
    naming::{MARKERS, UNNAMED_JIT},
    profile::Profile,
    scope::{Scope, is_wait_event, percent},
    weights::ProfileCounter,
};

/// With fewer samples a share has an error of some points.
const MIN_SAMPLES: u64 = 200;
/// More unattributed or lost samples could change the order of the shares.
const MAX_UNKNOWN_PERCENT: f64 = 10.0;
/// What is looked at first has at least this share of the whole,
const MIN_PERCENT: f64 = 25.0;
/// so many points more than the next, which for code that is not the app's may be all methods of the app together,
const MIN_LEAD: f64 = 5.0;
/// and so many standard errors of the difference.
const STANDARD_ERRORS: f64 = 3.0;
/// A caller is named if it has this share of what is looked at.
const MIN_CALLER_PERCENT: f64 = 60.0;

/// What most of the time goes to, if that is clear.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding<'p> {
    pub percent: f64,
    pub place: Place<'p>,
    /// The app's method under which it is.
    pub caller: Option<&'p str>,
    /// Whether the profile has methods of the app.
    pub has_app: bool,
}

/// Where samples have their leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place<'p> {
    Kernel,
    /// A method of the app.
    Method(&'p str),
    /// A file, with what it counts for.
    Image(Layer, &'p str),
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent;
        match self.place {
            Place::Method(name) => {
                return write!(
                    f,
                    "{percent:.0} % is in {name} itself: look at its own code"
                );
            }
            Place::Kernel => write!(f, "{percent:.0} % is in the kernel")?,
            Place::Image(_, name) => write!(f, "{percent:.0} % is in {name}")?,
        }
        if let Some(caller) = self.caller {
            write!(f, " called from {caller}")?;
        }
        let advice = match (self.place, self.caller, self.has_app) {
            (_, _, false) => "look there first",
            (Place::Kernel, Some(_), _) => {
                "look at what that asks of the kernel, not at the app's dex"
            }
            (Place::Image(Layer::Vm, _), Some(_), _) => {
                "look at what that asks of the VM, not at the app's dex"
            }
            (Place::Image(Layer::Vm, _), None, _) => {
                "look at what the app asks of the VM, not at single methods"
            }
            _ => "look there, not at the app's dex",
        };
        write!(f, ": {advice}")
    }
}

/// What a decision rests on.
#[derive(Debug, Clone, Default)]
struct Evidence<'p> {
    /// Samples in all, and those of them that say too little.
    samples: u64,
    unattributed: u64,
    lost: u64,
    /// What percentages are of.
    all: u64,
    /// By place, with the app's innermost method on the stack.
    places: BTreeMap<Place<'p>, BTreeMap<Option<&'p str>, u64>>,
    /// Places that are no answer: markers, code without a name.
    unnamed: u64,
    has_app: bool,
}

impl<'p> Evidence<'p> {
    fn of(scope: &Scope<'p>) -> Self {
        let profile = scope.profile;
        let callers = app_callers(profile);
        let mut evidence = Self {
            samples: scope.all.samples(),
            unattributed: scope.event.unattributed_samples(),
            lost: profile.recording.lost,
            all: scope.value(scope.all),
            has_app: callers.iter().any(Option::is_some),
            ..Self::default()
        };
        // First by id, which is cheaper than by name.
        let mut sums: HashMap<(SymbolId, Option<SymbolId>), u64> = HashMap::new();
        for row in profile
            .weights
            .rows(ProfileCounter::of_samples(scope.event.event))
        {
            let value = scope.value(row.weight);
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
        let name = |id: SymbolId| Some(profile.frames.symbol(id)?.name.as_str());
        for ((leaf, caller), value) in sums {
            let Some(place) = place(profile, leaf) else {
                evidence.unnamed = evidence.unnamed.saturating_add(value);
                continue;
            };
            let callers = evidence.places.entry(place).or_default();
            let sum = callers.entry(caller.and_then(name)).or_default();
            *sum = sum.saturating_add(value);
        }
        evidence
    }

    /// The place with a share that is large enough, and clearly larger than any other.
    fn decide(&self) -> Option<Finding<'p>> {
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
        let methods = methods.filter(|(place, _)| matches!(place, Place::Method(_)));
        let methods = methods.map(|(_, callers)| sum(callers));
        let app = match place {
            Place::Method(_) => 0,
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
            has_app: self.has_app,
        })
    }
}

/// Whether a share leads another one by enough points and standard errors. Shares of one multinomial have a difference with the variance
/// (p + q - (p - q)²) / n.
#[allow(clippy::cast_precision_loss)] // the square root has less
fn is_clear(share: f64, next: f64, samples: u64) -> bool {
    let (p, q) = (share / 100.0, next / 100.0);
    let variance = (p + q - (p - q).powi(2)) / samples as f64;
    let error = variance.max(0.0).sqrt() * 100.0;
    share - next >= MIN_LEAD && share - next >= STANDARD_ERRORS * error
}

/// Where a sample with this leaf is; none: that is not known.
fn place(profile: &Profile, leaf: SymbolId) -> Option<Place<'_>> {
    let symbol = profile.frames.symbol(leaf)?;
    let image = profile.frames.image(symbol.image)?;
    match symbol.layer {
        _ if image.name == MARKERS || image.name == UNNAMED_JIT || image.name == "[unknown]" => {
            None
        }
        // Frames of an imported recording that says of no code what it is.
        Layer::Native if image.name == Marker::Native.symbol() => None,
        Layer::Kernel => Some(Place::Kernel),
        Layer::App if is_hotspot_internal(&symbol.name) => None,
        Layer::App => Some(Place::Method(&symbol.name)),
        layer => Some(Place::Image(layer, &image.name)),
    }
}

/// Whether HotSpot's perf map calls code so that is its own, and no method's.
fn is_hotspot_internal(name: &str) -> bool {
    let is_own = name == "Interpreter"
        || name.starts_with("StubRoutines (")
        || name.starts_with("RuntimeStub - ")
        || ["Blob", " stub", " adapters"]
            .iter()
            .any(|end| name.ends_with(end));
    // Methods have their class before a dot.
    is_own && !name.contains('.')
}

/// By stack: the innermost method of the app.
fn app_callers(profile: &Profile) -> Vec<Option<SymbolId>> {
    let markers: Vec<ImageId> = (0_u32..)
        .zip(profile.frames.images())
        .filter(|(_, image)| image.name == MARKERS || image.name == UNNAMED_JIT)
        .map(|(id, _)| ImageId(id))
        .collect();
    let mut callers: Vec<Option<SymbolId>> = Vec::with_capacity(profile.stacks.len());
    // Parents come first.
    for stack in profile.stacks.ids() {
        let frame = profile.stacks.frame(stack);
        let id = frame.and_then(|frame| Some(profile.frames.frame(frame)?.symbol));
        let own = id.filter(|id| {
            let symbol = profile.frames.symbol(*id);
            symbol.is_some_and(|symbol| {
                symbol.layer == Layer::App
                    && !markers.contains(&symbol.image)
                    && !is_hotspot_internal(&symbol.name)
            })
        });
        let parent = profile.stacks.parent(stack);
        let above = parent.and_then(|parent| callers.get(parent.index()).copied().flatten());
        callers.push(own.or(above));
    }
    callers
}

impl<'p> Finding<'p> {
    /// What a view's samples show; none: nothing is clear.
    pub fn of(scope: &Scope<'p>) -> Option<Self> {
        // Every wait has its leaf in the kernel's scheduler, which says nothing of its cause.
        if scope.all.samples() < MIN_SAMPLES || is_wait_event(scope.description) {
            return None;
        }
        Evidence::of(scope).decide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RASTER: Place = Place::Image(Layer::Native, "libraster.so");
    const DRAW: &str = "org.example.Balls.draw";

    /// A thousand samples: so many in libraster.so under draw, so many under another method, so many in draw itself, the rest in places
    /// with one sample each.
    fn evidence(under_draw: u64, under_other: u64, in_draw: u64) -> Evidence<'static> {
        const NAMES: &str = "abcdefghijklmnopqrstuvwxyz";
        let mut places = BTreeMap::from([
            (
                RASTER,
                BTreeMap::from([(Some(DRAW), under_draw), (Some("run"), under_other)]),
            ),
            (Place::Method(DRAW), BTreeMap::from([(Some(DRAW), in_draw)])),
        ]);
        let rest = 1_000 - under_draw - under_other - in_draw;
        for letter in 0..NAMES.len() {
            let name = &NAMES[letter..=letter];
            let value = rest / 26 + u64::from((letter as u64) < rest % 26);
            let place = Place::Image(Layer::Native, name);
            places.insert(place, BTreeMap::from([(Some(name), value)]));
        }
        Evidence {
            samples: 1_000,
            all: 1_000,
            places,
            has_app: true,
            ..Evidence::default()
        }
    }

    fn sentence(evidence: &Evidence) -> Option<String> {
        evidence.decide().map(|finding| finding.to_string())
    }

    #[test]
    fn a_library_under_one_method_is_named_with_it() {
        let expected = "44 % is in libraster.so called from org.example.Balls.draw: look there, not at the app's dex";
        assert_eq!(sentence(&evidence(430, 10, 100)).as_deref(), Some(expected));
    }

    #[test]
    fn a_caller_is_named_from_three_fifths_on() {
        let with = |under_draw| sentence(&evidence(under_draw, 400 - under_draw, 0)).unwrap();
        assert_eq!(
            with(240),
            "40 % is in libraster.so called from org.example.Balls.draw: look there, not at the app's dex"
        );
        assert_eq!(
            with(239),
            "40 % is in libraster.so: look there, not at the app's dex"
        );
    }

    #[test]
    fn a_method_s_own_code_is_named_as_that() {
        assert_eq!(
            sentence(&evidence(50, 0, 400)).as_deref(),
            Some("40 % is in org.example.Balls.draw itself: look at its own code")
        );
    }

    #[test]
    fn a_share_below_a_quarter_says_nothing() {
        assert!(sentence(&evidence(250, 0, 0)).is_some());
        assert_eq!(sentence(&evidence(249, 0, 0)), None);
    }

    #[test]
    fn two_shares_that_are_near_each_other_say_nothing() {
        // 3 standard errors of 40 % and 31 % of 1,000 samples are 7.96 points: sqrt((0.71 - 0.09²) / 1000) * 3.
        assert!(sentence(&evidence(400, 0, 310)).is_some());
        assert_eq!(sentence(&evidence(400, 0, 330)), None);
        // Of a million samples 5 points decide.
        let many = |in_draw| Evidence {
            samples: 1_000_000,
            ..evidence(400, 0, in_draw)
        };
        assert!(sentence(&many(350)).is_some());
        assert_eq!(sentence(&many(351)), None);
    }

    #[test]
    fn a_library_that_takes_less_than_all_methods_of_the_app_is_not_it() {
        let with_methods = |count| {
            let mut evidence = evidence(300, 0, 0);
            evidence.places.retain(|place, _| *place == RASTER);
            let names = ["a", "b", "c", "d", "e", "f", "g"];
            for name in names.into_iter().take(count) {
                let callers = BTreeMap::from([(Some(name), 100)]);
                evidence.places.insert(Place::Method(name), callers);
            }
            sentence(&evidence)
        };
        assert!(with_methods(2).is_some());
        assert_eq!(with_methods(3), None);
        assert_eq!(with_methods(7), None);
    }

    #[test]
    fn hotspot_internal_code_is_no_method() {
        for name in [
            "Interpreter",
            "StubRoutines (1)",
            "UncommonTrapBlob",
            "RuntimeStub - _new_array_Java",
            "vtable stub",
            "I2C/C2I adapters",
        ] {
            assert!(is_hotspot_internal(name), "{name}");
        }
        for name in [
            "double H.f(int)",
            "org.example.Db.readBlob",
            "org.example.Interpreter",
        ] {
            assert!(!is_hotspot_internal(name), "{name}");
        }
    }

    #[test]
    fn few_samples_say_nothing() {
        let few = |samples| Evidence {
            samples,
            ..evidence(900, 0, 0)
        };
        assert!(sentence(&few(200)).is_some());
        assert_eq!(sentence(&few(199)), None);
    }

    #[test]
    fn a_recording_with_holes_says_nothing() {
        let holes = |unattributed, lost| Evidence {
            unattributed,
            lost,
            ..evidence(900, 0, 0)
        };
        assert!(sentence(&holes(100, 0)).is_some());
        assert_eq!(sentence(&holes(101, 0)), None);
        assert!(sentence(&holes(0, 111)).is_some());
        assert_eq!(sentence(&holes(0, 112)), None);
    }

    #[test]
    fn code_without_a_name_is_no_answer() {
        let with = |unnamed| Evidence {
            unnamed,
            ..evidence(400, 0, 0)
        };
        assert!(sentence(&with(310)).is_some());
        assert_eq!(sentence(&with(390)), None);
    }

    #[test]
    fn a_share_of_the_vm_or_the_kernel_names_the_method_that_calls_it() {
        let of = |place, caller| {
            let places = BTreeMap::from([(place, BTreeMap::from([(caller, 1_000)]))]);
            let evidence = Evidence {
                places,
                ..evidence(0, 0, 0)
            };
            sentence(&evidence).unwrap()
        };
        let art = Place::Image(Layer::Vm, "libart.so");
        for (place, caller, expected) in [
            (
                art,
                Some("run"),
                "100 % is in libart.so called from run: look at what that asks of the VM, not at the app's dex",
            ),
            (
                art,
                None,
                "100 % is in libart.so: look at what the app asks of the VM, not at single methods",
            ),
            (
                Place::Kernel,
                Some("run"),
                "100 % is in the kernel called from run: look at what that asks of the kernel, not at the app's dex",
            ),
            (
                Place::Kernel,
                None,
                "100 % is in the kernel: look there, not at the app's dex",
            ),
        ] {
            assert_eq!(of(place, caller), expected);
        }
    }

    #[test]
    fn a_program_without_a_vm_has_no_dex() {
        let places = BTreeMap::from([
            (Place::Kernel, BTreeMap::from([(None, 700)])),
            (RASTER, BTreeMap::from([(None, 300)])),
        ]);
        let program = Evidence {
            samples: 1_000,
            all: 1_000,
            places,
            ..Evidence::default()
        };
        assert_eq!(
            sentence(&program).as_deref(),
            Some("70 % is in the kernel: look there first")
        );
        assert_eq!(sentence(&Evidence::default()), None);
    }
}
