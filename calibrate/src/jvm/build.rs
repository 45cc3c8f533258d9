//! How do units become a program?

use super::fixture::{classes, file};
use super::main_class::{Called, MAIN, main_class};
use super::timed_method::{Copies, add, iteration_tally};
use super::unit::Unit;
use super::{catalogue, mixed, objects};
use crate::clock::Clock;
use crate::error::Error;
use crate::program::{MethodNumber, Program, ProgramFile, Run, Shape, Timer, Unseparated};
use crate::tally::CostKey;
use std::collections::BTreeSet;
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{ClassBuilder, ClassKind};

/// The numbers of copies in a straight line.
const COPIES: [u16; 2] = [150, 600];
/// Copies in a loop, of a unit that is otherwise in a straight line, and of others.
const LOOPED_COPIES: u16 = 100;
const SITES: u16 = 8;
/// The numbers of iterations for a fine clock, of a unit that is short and of one that is long. The processor learns within the first hundred what
/// follows what, as it does in the loops of programs.
const ITERATIONS: [u32; 2] = [8, 48];
const ITERATIONS_OF_LONG: [u32; 2] = [16, 144];
/// From so many instructions on a unit is long: it has one copy.
const LONG: usize = 16;

/// Which units are measured?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// These, by the opcodes that they are named after, and those that they need.
    Only(Vec<String>),
}

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
    if let Selection::Only(names) = selection {
        units = with_needed(units, names);
    }
    if units.is_empty() {
        return Err(Error::Unsolved("no unit has one of these names"));
    }
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
        program.clocks.push((*clock, number(parts.methods.len())));
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

fn number(index: usize) -> MethodNumber {
    MethodNumber(u32::try_from(index).unwrap_or(u32::MAX))
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

/// Returns the units of these names, and those of the other instructions in them.
fn with_needed(units: Vec<Unit>, names: &[String]) -> Vec<Unit> {
    let mut wanted: BTreeSet<String> = names.iter().cloned().collect();
    loop {
        let before = wanted.len();
        for unit in units
            .iter()
            .filter(|unit| wanted.contains(&unit.name))
            .cloned()
            .collect::<Vec<_>>()
        {
            let tally = match unit.shape {
                Shape::Straight => unit.tally(),
                Shape::Loop => iteration_tally(&unit, 1),
            };
            wanted.extend(tally.iter().map(|(key, _)| key.as_str().to_owned()));
        }
        if wanted.len() == before {
            break;
        }
    }
    units
        .into_iter()
        .filter(|unit| wanted.contains(&unit.name))
        .collect()
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
            let mut method = |copies| {
                let called = format!("{clock}{}", self.methods.len());
                add(&mut class, &called, unit, copies, *clock)?;
                let method = number(self.methods.len());
                self.methods.push(Called::Timed(name.clone(), called));
                Ok::<_, NotRewritten>(method)
            };
            let is_straight = unit.shape == Shape::Straight;
            let is_long = unit.body.len() >= LONG;
            let (shape, tally, runs) = if is_straight && *clock != Clock::Millis {
                let [short, long] = COPIES;
                let run = |method, copies: u16| Run {
                    method,
                    repetitions: copies.into(),
                };
                let runs = [
                    run(method(Copies::Once(short))?, short),
                    run(method(Copies::Once(long))?, long),
                ];
                (Shape::Straight, unit.tally(), runs)
            } else {
                let copies = match (is_straight, is_long) {
                    (true, _) => LOOPED_COPIES,
                    (false, false) => SITES,
                    (false, true) => 1,
                };
                let method = method(Copies::Loop(copies))?;
                let iterations = if is_long {
                    ITERATIONS_OF_LONG
                } else {
                    ITERATIONS
                };
                let runs = iterations.map(|repetitions| Run {
                    method,
                    repetitions,
                });
                (Shape::Loop, iteration_tally(unit, copies), runs)
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
