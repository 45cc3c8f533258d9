//! What is executed on the VM, whatever format its code has?
//!
//! A writer of class files makes a [`Program`], and so can one of dex files: what follows knows neither.

use crate::clock::Clock;
use crate::tally::{CostKey, Tally};

/// The number by which the program's main class calls one of its methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodNumber(pub u32);

impl MethodNumber {
    /// The number of the method that follows so many others.
    pub(crate) fn after(methods: usize) -> Self {
        Self(u32::try_from(methods).unwrap_or(u32::MAX))
    }
}

/// A method that returns how long it took, in ticks of its clock, and its number of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The method.
    pub method: MethodNumber,
    /// How often it executes the unit. A method whose code is repeated has a fixed number; of one with a loop it is the argument.
    pub repetitions: u32,
}

/// Whether a unit is repeated by a loop or by copies of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Copies in a straight line.
    Straight,
    /// A loop, whose number of iterations is the method's argument.
    Loop,
}

/// Which instructions are beside those of a unit?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// Copies of a single one, with what these need.
    Single,
    /// Many others, as in programs.
    Mixed,
}

/// A unit of code, timed by one clock at two numbers of repetitions. The difference is free of what reading the clock takes.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The unit's name.
    pub unit: String,
    /// The clock.
    pub clock: Clock,
    /// What it is made of.
    pub kind: UnitKind,
    /// How it is repeated.
    pub shape: Shape,
    /// What one repetition executes.
    pub tally: Tally,
    /// The run with few repetitions.
    pub short: Run,
    /// The run with many.
    pub long: Run,
}

/// A key that no unit can measure by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseparated {
    /// Its cost is contained in that of others. The text says in which.
    Contained(CostKey, &'static str),
    /// It always occurs together with another key, which has half of the cost of both.
    Half(CostKey, CostKey),
}

/// A file of the program.
#[derive(Debug, Clone)]
pub struct ProgramFile {
    /// Its path below the class path.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// A program with its timers.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of its main class.
    pub main_class: String,
    /// Its files.
    pub files: Vec<ProgramFile>,
    /// Its timers.
    pub timers: Vec<Timer>,
    /// A method for each clock that returns its value.
    pub clocks: Vec<(Clock, MethodNumber)>,
    /// Keys that get their costs from others'.
    pub unseparated: Vec<Unseparated>,
    /// The keys that the correlation of two clocks is computed over: the imperative instructions, without objects and calls.
    pub imperative: Vec<CostKey>,
}
