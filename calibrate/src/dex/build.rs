//! How do units become a program?

use super::fixture::add_classes;
use super::main_class::{Called, MAIN_CLASS, add_main};
use super::timed_method::add;
use super::unit::Unit;
use super::{catalogue, mixed, objects};
use crate::clock::Clock;
use crate::error::Error;
use crate::program::{MethodNumber, Program, ProgramFile, Shape, Timer, Unseparated};
use crate::repetition::Repetition;
use crate::selection::Selection;
use crate::tally::CostKey;
use crate::vm_command::DEX_FILE;
use std::collections::BTreeSet;
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Class, DexBuilder};

/// Makes the program that measures units of dex code by these clocks. A coarse clock times loops only.
///
/// # Errors
///
/// The units have too much code, or nothing is selected.
pub fn dex_program(selection: &Selection, clocks: &[Clock]) -> Result<Program, Error> {
    let imperative = catalogue::imperative();
    let names: BTreeSet<_> = imperative.iter().map(|unit| unit.name.clone()).collect();
    let mut units = imperative;
    units.extend(objects::accesses());
    let mixed = mixed::units(&units);
    units.extend(objects::calls());
    units.extend(objects::others());
    units.extend(mixed);
    let units = selection.choose(
        units,
        |unit| &unit.name,
        |unit| match unit.shape {
            Shape::Straight => unit.tally(1),
            Shape::Loop => unit.iteration_tally(1),
        },
    )?;
    let mut program = Program {
        main_class: MAIN_CLASS.to_owned(),
        files: Vec::new(),
        timers: Vec::new(),
        clocks: Vec::new(),
        unseparated: unseparated(),
        imperative: names.into_iter().map(CostKey::new).collect(),
    };
    let mut parts = Parts::default();
    add_classes(&mut parts.dex)?;
    for (index, unit) in units.iter().enumerate() {
        parts.add(index, unit, clocks, &mut program.timers)?;
    }
    for clock in clocks {
        program
            .clocks
            .push((*clock, MethodNumber::after(parts.methods.len())));
        parts.methods.push(Called::Clock(*clock));
    }
    add_main(&parts.methods, &mut parts.dex)?;
    program.files.push(ProgramFile {
        path: DEX_FILE.to_owned(),
        bytes: parts.dex.finish()?,
    });
    Ok(program)
}

/// Returns the keys whose costs no unit can tell apart.
fn unseparated() -> Vec<Unseparated> {
    let returns = ["return-void", "return", "return-wide", "return-object"];
    let mut keys: Vec<_> = returns
        .map(|key| Unseparated::Contained(CostKey::new(key), "the invokes"))
        .into();
    let [exit, enter] = ["monitor-exit", "monitor-enter"].map(CostKey::new);
    keys.push(Unseparated::Half(exit, enter));
    keys
}

/// What a program is made of.
#[derive(Default)]
struct Parts {
    dex: DexBuilder,
    methods: Vec<Called>,
}

impl Parts {
    /// Adds the class with the timed methods of a unit.
    fn add(
        &mut self,
        index: usize,
        unit: &Unit,
        clocks: &[Clock],
        timers: &mut Vec<Timer>,
    ) -> Result<(), NotRewritten> {
        let descriptor = format!("Lvarid/calibrate/Unit{index};");
        let mut class = Class::new(&descriptor);
        for clock in clocks {
            let repetition = Repetition::new(unit.shape, unit.body.len(), *clock);
            let [short, long] = repetition.runs(|copies| {
                let called = format!("{clock}{}", self.methods.len());
                add(&mut class, &mut self.dex, &called, unit, copies, *clock)?;
                let method = MethodNumber::after(self.methods.len());
                self.methods.push(Called::Timed(descriptor.clone(), called));
                Ok::<_, NotRewritten>(method)
            })?;
            let (shape, tally) = match repetition {
                Repetition::Straight(_) => (Shape::Straight, unit.tally(1)),
                Repetition::Loop(copies, _) => (Shape::Loop, unit.iteration_tally(copies)),
            };
            timers.push(Timer {
                unit: unit.name.clone(),
                clock: *clock,
                kind: unit.kind,
                shape,
                tally,
                short,
                long,
            });
        }
        self.dex.class(class);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_symbolizer::dex::DexFile;

    #[test]
    fn each_opcode_of_the_dex_format_has_a_unit() {
        let program = dex_program(&Selection::All, &[Clock::Nano]).unwrap();
        let keys = program.timers.iter().flat_map(|timer| {
            let keys = timer.tally.iter();
            keys.map(|(key, _)| key.as_str()).collect::<Vec<_>>()
        });
        let keys: BTreeSet<&str> = keys.collect();
        // Those that are not measured: exceptions, and the instructions of lambdas.
        let without = ["move-exception", "throw"];
        for code in 0..=0xe2 {
            let name = varid_symbolizer::dex::Dialect::Art.opcode(code).name;
            let is_measured = match name {
                name if name.starts_with("if-") => ["_taken", "_not"]
                    .iter()
                    .all(|form| keys.contains(format!("{name}{form}").as_str())),
                name => keys.contains(name),
            };
            let is_left_out = name.starts_with("unused")
                || name == "return-void-no-barrier"
                || without.contains(&name);
            assert_ne!(is_measured, is_left_out, "{name}");
        }
        assert!(
            program.imperative.len() > 120,
            "{}",
            program.imperative.len()
        );
    }

    #[test]
    fn the_program_is_a_dex_file_whose_instructions_are_valid() {
        let clocks = [Clock::Nano, Clock::Counter];
        let program = dex_program(&Selection::Only(vec!["invoke-super".to_owned()]), &clocks);
        let program = program.unwrap();
        let [file] = &program.files[..] else {
            panic!("one file");
        };
        let dex = DexFile::parse(&file.bytes).unwrap();
        let mut instructions = 0;
        for method in dex.methods() {
            let method = method.unwrap();
            let Some(code) = method.method_code() else {
                continue;
            };
            for instruction in dex.disassemble(&code) {
                let text = instruction.unwrap().to_string();
                assert!(!text.contains('?'), "{text}");
                instructions += 1;
            }
        }
        assert!(instructions > 1000, "{instructions}");
    }

    #[test]
    fn a_coarse_clock_times_loops_only() {
        let program = dex_program(&Selection::All, &[Clock::Millis]).unwrap();
        let mut timers = program.timers.iter();
        assert!(timers.all(|timer| timer.shape == Shape::Loop));
        assert!(dex_program(&Selection::Only(vec!["iadd".to_owned()]), &[Clock::Nano]).is_err());
    }
}
