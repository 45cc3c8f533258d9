//! Derives the report's first sentence from the numbers.
//!
//! The rules and their thresholds are in `docs/guide-reading-a-report.md`. If no rule applies, there is no sentence.
//!
//! | question | file |
//! |---|---|
//! | what kind of program is it, and which code is its own | `program` |
//! | how much is in each place, and is one of them clearly the largest | `evidence` |
//! | which symbols are one function | `ways` |
//! | which line of a function took most | `hottest_line` |

mod evidence;
mod hottest_line;
mod program;
mod ways;

use std::fmt;

use varid_model::Layer;

use crate::{
    activity::Activity, frames::SymbolId, naming::is_library, scope::Scope, short_name,
    unit::is_wait_event,
};
use evidence::{Evidence, Grain};
use hottest_line::{HottestLine, hottest_line};
use program::Program;
use ways::Ways;

/// The minimum percentage of the place in the sentence.
const MIN_PERCENT: f64 = 25.0;
/// The longest name in the sentence, in columns.
const NAME: usize = 80;

/// The place with most of the time, if it is clear.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding<'p> {
    pub percent: f64,
    pub place: Place<'p>,
    /// The program's own function that called it.
    pub caller: Option<&'p str>,
    /// The line of the function with the largest own share, if known.
    pub line: Option<HottestLine>,
    pub program: Program,
}

/// A group of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place<'p> {
    /// Samples whose leaf is in the kernel.
    Kernel,
    /// Samples whose leaf is in a function of the program itself.
    Own(SymbolId, &'p str),
    /// Samples whose leaf is in a function of another file.
    Function(SymbolId, Layer, &'p str, &'p str),
    /// Samples whose leaf is in this file, with its layer.
    Image(Layer, &'p str),
    /// Samples in a method or its callees.
    With(SymbolId, &'p str),
    /// Samples of other work of a JVM than that of the program.
    Activity(Activity),
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent;
        let short = |name| short_name::fitted(name, NAME);
        match self.place {
            Place::Own(_, name) => {
                write!(f, "{percent:.0} % is in {} itself", short(name))?;
                if let Some(line) = &self.line {
                    write!(f, ", {:.0} % at {line}", line.percent)?;
                }
                return write!(f, ": look at its own code");
            }
            Place::With(_, name) => {
                return write!(
                    f,
                    "{percent:.0} % is in {} and what it calls: look there first",
                    short(name)
                );
            }
            Place::Kernel => write!(f, "{percent:.0} % is in the kernel")?,
            Place::Function(_, _, image, name) => {
                write!(f, "{percent:.0} % is in {} of {image}", short(name))?;
            }
            Place::Image(_, name) => write!(f, "{percent:.0} % is in {name}")?,
            Place::Activity(activity) => {
                let (what, advice) = described(activity);
                return write!(f, "{percent:.0} % is {what}: {advice}");
            }
        }
        if let Some(caller) = self.caller {
            write!(f, " called from {}", short(caller))?;
        }
        let advice = match (self.program, self.place, self.caller) {
            (Program::Dex, Place::Kernel, Some(_)) => {
                "look at what that asks of the kernel, not at the app's dex"
            }
            (Program::Dex, Place::Image(Layer::Vm, _), Some(_)) => {
                "look at what that asks of the VM, not at the app's dex"
            }
            (Program::Dex, Place::Image(Layer::Vm, _), None) => {
                "look at what the app asks of the VM, not at single methods"
            }
            (Program::Dex, ..) => "look there, not at the app's dex",
            (_, Place::Kernel, Some(_)) => "look at what that asks of the kernel",
            (_, _, Some(_)) => "look at that call first",
            (_, _, None) => "look there first",
        };
        write!(f, ": {advice}")
    }
}

/// Returns what a JVM does, and where to look if it takes long.
const fn described(activity: Activity) -> (&'static str, &'static str) {
    match activity {
        Activity::Program => ("the program", "look at its methods"),
        Activity::GarbageCollection => (
            "garbage collection",
            "look at what allocates, and at the size of the heap (-Xmx)",
        ),
        Activity::Compilation => (
            "JIT compilation",
            "the program was still warming up: record it longer, or later",
        ),
        Activity::ClassLoading => (
            "class loading",
            "look at what loads classes; a class-data archive (-XX:SharedArchiveFile) saves most of it",
        ),
        Activity::OtherVm => ("the JVM itself", "look at its functions"),
    }
}

impl<'p> Finding<'p> {
    /// Finds the place for a view. None if nothing is clear or useful, or the view has other measures.
    pub fn of(scope: &Scope<'p>) -> Option<Self> {
        // Every wait has its leaf in the kernel's scheduler, which does not indicate its cause.
        let is_enough = scope.samples.samples() >= evidence::MIN_SAMPLES;
        // Where memory is allocated, or locks are waited for, is no place of work: the leaf is a class, or a function of the VM's.
        let is_work = !is_wait_event(scope.description) && scope.description.unit.is_none();
        if !scope.measures.are_samples() || !is_enough || !is_work {
            return None;
        }
        let program = Program::of(scope);
        let native = Program::Native;
        let grains = match program {
            Program::Dex => &[(program, Grain::Image)][..],
            // Machine code may also generate code at run time.
            Program::Managed => &[
                (program, Grain::Image),
                (program, Grain::Caller),
                (native, Grain::Function),
            ],
            Program::Native => &[(native, Grain::Function), (native, Grain::Image)],
        };
        let mut found = grains
            .iter()
            .filter_map(|(program, grain)| Evidence::of(scope, *program, *grain).decide());
        let mut finding = found.find(|finding| finding.helps(scope))?;
        match finding.place {
            Place::Own(id, _) if finding.program != Program::Dex => {
                finding.line = hottest_line(scope, id);
            }
            // The same value as in its row.
            Place::With(id, _) => {
                let ways = Ways::new(scope);
                let method = |frame| Some(ways.first(scope.symbol_of(frame)?));
                let shares = scope.weights.by_frame(method);
                let share = shares.get(&id).copied().unwrap_or_default();
                finding.percent = scope.percent(share.total);
            }
            _ => {}
        }
        Some(finding)
    }

    /// Returns the function or method of the sentence, ignoring the caller.
    pub const fn symbol(&self) -> Option<SymbolId> {
        match self.place {
            Place::Own(id, _) | Place::Function(id, ..) | Place::With(id, _) => Some(id),
            Place::Kernel | Place::Image(..) | Place::Activity(_) => None,
        }
    }

    /// Returns true if it says more than that a runtime runs its program, or a program its own code.
    fn helps(&self, scope: &Scope) -> bool {
        match (self.program, self.place) {
            (Program::Dex, _)
            | (_, Place::Kernel | Place::Own(..) | Place::With(..) | Place::Activity(_)) => true,
            (_, Place::Function(_, layer, ..)) => layer == Layer::Native,
            (_, Place::Image(layer, name)) => {
                let images = scope.profile.frames.images().iter();
                let mut named = images.filter(|image| image.name == name);
                let is_file = named.any(|image| image.path.is_some());
                layer == Layer::Native && is_file && is_library(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use varid_model::Precision;

    const RASTER: Place = Place::Image(Layer::Native, "libraster.so");
    const DRAW: &str = "org.example.Balls.draw";

    /// A thousand samples: `under_draw` and `under_other` in libraster.so under draw and under another method,
    /// `in_draw` in draw itself, and the rest in places with one sample each.
    fn evidence(under_draw: u64, under_other: u64, in_draw: u64) -> Evidence<'static> {
        const NAMES: &str = "abcdefghijklmnopqrstuvwxyz";
        let mut places = BTreeMap::from([
            (
                RASTER,
                BTreeMap::from([(Some(DRAW), under_draw), (Some("run"), under_other)]),
            ),
            (
                Place::Own(SymbolId(0), DRAW),
                BTreeMap::from([(Some(DRAW), in_draw)]),
            ),
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
            program: Program::Dex,
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
        // For a million samples, the limit of 5 points decides.
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
                evidence
                    .places
                    .insert(Place::Own(SymbolId(0), name), callers);
            }
            sentence(&evidence)
        };
        assert!(with_methods(2).is_some());
        assert_eq!(with_methods(3), None);
        assert_eq!(with_methods(7), None);
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
    fn a_sentence_of_machine_code_names_function_line_and_caller() {
        let finding = |place, caller, line| Finding {
            percent: 62.4,
            place,
            caller,
            line,
            program: Program::Native,
        };
        let own = Place::Own(SymbolId(1), "geo::fill(int)");
        let line = HottestLine {
            file: "geo.cc".into(),
            line: 12,
            precision: Precision::Exact,
            percent: 40.2,
        };
        let near = HottestLine {
            precision: Precision::Approximate,
            ..line.clone()
        };
        let copy = Place::Function(SymbolId(2), Layer::Native, "libc.so.6", "memcpy");
        let method = Place::With(SymbolId(3), "JS:*work /srv/app.js:4:14");
        for (finding, expected) in [
            (
                finding(own, None, Some(line)),
                "62 % is in geo::fill(int) itself, 40 % at geo.cc:12: look at its own code",
            ),
            (
                finding(own, None, Some(near)),
                "62 % is in geo::fill(int) itself, 40 % at geo.cc:~12: look at its own code",
            ),
            (
                finding(own, None, None),
                "62 % is in geo::fill(int) itself: look at its own code",
            ),
            (
                finding(Place::Activity(Activity::GarbageCollection), None, None),
                "62 % is garbage collection: look at what allocates, and at the size of the heap (-Xmx)",
            ),
            (
                finding(copy, Some("geo::fill(int)"), None),
                "62 % is in memcpy of libc.so.6 called from geo::fill(int): look at that call first",
            ),
            (
                finding(copy, None, None),
                "62 % is in memcpy of libc.so.6: look there first",
            ),
            (
                finding(Place::Kernel, Some("geo::fill(int)"), None),
                "62 % is in the kernel called from geo::fill(int): look at what that asks of the kernel",
            ),
            (
                finding(method, None, None),
                "62 % is in JS:*work /srv/app.js:4:14 and what it calls: look there first",
            ),
        ] {
            assert_eq!(finding.to_string(), expected);
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
