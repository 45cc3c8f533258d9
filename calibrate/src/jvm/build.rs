//! How do units become a program?

use super::fixture::{classes, file};
use super::main_class::{Called, MAIN, main_class};
use super::timed_method::{add, iteration_tally};
use super::unit::Unit;
use super::{catalogue, mixed, objects};
use crate::clock::Clock;
use crate::error::Error;
use crate::program::{MethodNumber, Program, ProgramFile, Shape, Timer, Unseparated};
use crate::repetition::Repetition;
use crate::selection::Selection;
use crate::tally::CostKey;
use std::collections::BTreeSet;
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{ClassBuilder, ClassKind};

/// Makes the program that measures units of Java's bytecode by these clocks. A coarse clock times loops only.
///
/// # Errors
///
/// A unit has an unknown instruction or too much code, which is a mistake in the catalogue, or nothing is selected.
pub fn java_program(selection: &Selection, clocks: &[Clock]) -> Result<Program, Error> {
    let imperative = catalogue::imperative()?;
    let names: BTreeSet<_> = imperative.iter().map(|unit| unit.name.clone()).collect();
    let mixed = mixed::units(&imperative);
    let mut units = imperative;
    units.extend(objects::units()?);
    units.extend(mixed);
    let units = selection.choose(
        units,
        |unit| &unit.name,
        |unit| match unit.shape {
            Shape::Straight => unit.tally(),
            Shape::Loop => iteration_tally(unit, 1),
        },
    )?;
    let assembly = |unit: &str| {
        let unit = unit.to_owned();
        move |reason| Error::Assembly { unit, reason }
    };
    let mut parts = Parts::default();
    for (number, unit) in units.iter().enumerate() {
        parts
            .add(number, unit, clocks)
            .map_err(assembly(&unit.name))?;
    }
    let mut program = Program {
        main_class: MAIN.replace('/', "."),
        files: parts.files,
        timers: parts.timers,
        clocks: Vec::new(),
        unseparated: unseparated(),
        imperative: names.into_iter().map(CostKey::new).collect(),
    };
    for clock in clocks {
        program
            .clocks
            .push((*clock, MethodNumber::after(parts.methods.len())));
        parts.methods.push(Called::Clock(*clock));
    }
    program
        .files
        .extend(classes().map_err(assembly("fixture"))?);
    program
        .files
        .push(main_class(&parts.methods).map_err(assembly("main"))?);
    Ok(program)
}

/// Returns the keys whose costs no unit can tell apart. Each call returns once: what the ways to return differ by is less than what a prediction of
/// the processor makes of a call.
fn unseparated() -> Vec<Unseparated> {
    let returns = [
        "return", "ireturn", "lreturn", "freturn", "dreturn", "areturn",
    ];
    let mut keys: Vec<_> = returns
        .map(|key| Unseparated::Contained(CostKey::new(key), "the invokes"))
        .into();
    let monitor = ["monitorexit", "monitorenter"].map(CostKey::new);
    let [exit, enter] = monitor;
    keys.push(Unseparated::Half(exit, enter));
    keys
}

/// What a program is made of.
#[derive(Default)]
struct Parts {
    files: Vec<ProgramFile>,
    methods: Vec<Called>,
    timers: Vec<Timer>,
}

impl Parts {
    /// Adds the class with the timed methods of a unit.
    fn add(&mut self, index: usize, unit: &Unit, clocks: &[Clock]) -> Result<(), NotRewritten> {
        let name = format!("varid/calibrate/Unit{index}");
        let mut class = ClassBuilder::new(&name);
        for clock in clocks {
            let method = |copies| {
                let called = format!("{clock}{}", self.methods.len());
                add(&mut class, &called, unit, copies, *clock)?;
                let method = MethodNumber::after(self.methods.len());
                self.methods.push(Called::Timed(name.clone(), called));
                Ok::<_, NotRewritten>(method)
            };
            let repetition = Repetition::new(unit.shape, unit.body.len(), *clock);
            let runs = repetition.runs(method)?;
            let (shape, tally) = match repetition {
                Repetition::Straight(_) => (Shape::Straight, unit.tally()),
                Repetition::Loop(copies, _) => (Shape::Loop, iteration_tally(unit, copies)),
            };
            let [short, long] = runs;
            self.timers.push(Timer {
                unit: unit.name.clone(),
                clock: *clock,
                kind: unit.kind,
                shape,
                tally,
                short,
                long,
            });
        }
        self.files.push(file(&name, class, ClassKind::Final(&[]))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::CostKey;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_has_a_unit_and_each_class_its_file() {
        let clocks = [Clock::Nano, Clock::Counter];
        let program = java_program(&Selection::All, &clocks).unwrap();
        let of_unit = |timer: &Timer| {
            timer
                .tally
                .iter()
                .map(|(key, _)| key.clone())
                .collect::<Vec<_>>()
        };
        let keys: BTreeSet<CostKey> = program.timers.iter().flat_map(of_unit).collect();
        assert!(keys.len() > 220, "{}", keys.len());
        for key in [
            "iload_wide",
            "ifeq_taken",
            "ifeq_not",
            "getfield_ref",
            "putstatic_long",
            "invokeinterface",
            "lreturn",
            "new",
            "monitorexit",
            "tableswitch",
            "goto_w",
            "ldc2_w",
            "multianewarray",
            "aastore",
        ] {
            assert!(keys.contains(&CostKey::new(key)), "{key}");
        }
        // Each unit by each clock, and the classes that it needs.
        let units = program.timers.len() / clocks.len();
        assert_eq!(program.files.len(), units + 4);
        assert!(
            program
                .files
                .iter()
                .all(|file| file.bytes.starts_with(&[0xca, 0xfe, 0xba, 0xbe]))
        );
    }

    #[test]
    fn a_selection_has_the_units_that_it_needs() {
        let only = |name: &str| Selection::Only(vec![name.to_owned()]);
        let program = java_program(&only("ladd"), &[Clock::Nano]).unwrap();
        let units: Vec<_> = program
            .timers
            .iter()
            .map(|timer| timer.unit.as_str())
            .collect();
        assert_eq!(units, ["ladd"]);
        let program = java_program(&only("new"), &[Clock::Nano]).unwrap();
        let units: BTreeSet<_> = program
            .timers
            .iter()
            .map(|timer| timer.unit.as_str())
            .collect();
        assert!(
            ["new", "pop", "iload", "iinc", "ifgt_taken"]
                .iter()
                .all(|name| units.contains(name))
        );
        assert!(java_program(&only("no such opcode"), &[Clock::Nano]).is_err());
    }

    #[test]
    fn a_coarse_clock_times_loops_only() {
        let program = java_program(&Selection::All, &[Clock::Millis]).unwrap();
        assert!(
            program
                .timers
                .iter()
                .all(|timer| timer.shape == Shape::Loop)
        );
    }
}
