//! A target: what its bytecodes cost, as data.

use std::collections::BTreeMap;

use crate::{
    code::Bytecode,
    method_cache::{Geometry, Words},
    price::Price,
};

/// A machine whose costs are known. `docs/formats/target.md` describes its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name: `jop-2011`.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// The unit of its costs: `cycles` or `ns`.
    pub unit: String,
    /// What it executes.
    pub bytecode: Bytecode,
    /// What its estimates were compared with. None: they were not.
    pub truth: Option<String>,
    /// The costs of instructions, by their key: the name of the opcode, or of a form of it.
    pub costs: BTreeMap<String, Price>,
    /// The instructions that its runtime implements by methods, by the same keys. They have no other cost.
    pub runtime: BTreeMap<String, RuntimeMethod>,
    /// Its method cache. None: calls and returns cost what the table says.
    pub method_cache: Option<MethodCacheParameters>,
    /// What the target's build makes of class files.
    pub build: Build,
}

/// A bytecode that is a method of the target's runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeMethod {
    /// Its cost, with invocation and return, if all code is in the method cache.
    pub price: Price,
    /// The lengths of the method's code, and of what it calls, each called by the one before.
    pub words: Vec<Words>,
    /// How it returns.
    pub result: ResultKind,
}

/// What a method returns, which decides how many cycles of a load the return hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResultKind {
    /// `ireturn`.
    Int,
    /// `lreturn`.
    Long,
    /// `freturn`.
    Float,
    /// `dreturn`.
    Double,
    /// `areturn`.
    Reference,
    /// `return`.
    Void,
}

impl ResultKind {
    /// All kinds, by ascending opcode.
    pub const ALL: [Self; 6] = [
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
        Self::Reference,
        Self::Void,
    ];

    /// The opcode of `ireturn`, the first of them.
    const FIRST: u8 = 172;

    /// Returns the kind of a return instruction. None: it is another one.
    #[must_use]
    pub fn of_opcode(opcode: u8) -> Option<Self> {
        let index = opcode.checked_sub(Self::FIRST)?;
        Self::ALL.get(usize::from(index)).copied()
    }

    /// Returns the kind of a method with this descriptor.
    #[must_use]
    pub fn of_descriptor(descriptor: &str) -> Self {
        let result = descriptor.rsplit(')').next().unwrap_or_default();
        match result.as_bytes().first() {
            Some(b'V') | None => Self::Void,
            Some(b'J') => Self::Long,
            Some(b'D') => Self::Double,
            Some(b'F') => Self::Float,
            Some(b'L' | b'[') => Self::Reference,
            Some(_) => Self::Int,
        }
    }

    /// Returns its instruction.
    #[must_use]
    pub const fn instruction(self) -> &'static str {
        match self {
            Self::Int => "ireturn",
            Self::Long => "lreturn",
            Self::Float => "freturn",
            Self::Double => "dreturn",
            Self::Reference => "areturn",
            Self::Void => "return",
        }
    }

    /// Returns its name in targets' files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Reference => "reference",
            Self::Void => "void",
        }
    }
}

/// A method cache and what its accesses take.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodCacheParameters {
    /// Its size and blocks.
    pub geometry: Geometry,
    /// What an access takes.
    pub load: LoadTimes,
}

/// The time of an access of the method cache, in the target's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadTimes {
    /// Of a method that is in the cache.
    pub hit: f64,
    /// Of a method that is not: this much,
    pub miss_base: f64,
    /// and this much for each of its words
    pub miss_word: f64,
    /// and of so many more.
    pub miss_more_words: f64,
    /// How much of it an invocation hides.
    pub invoke_hides: f64,
    /// How much of it each kind of return hides.
    pub return_hides: BTreeMap<ResultKind, f64>,
}

impl LoadTimes {
    /// Returns what is left of an access that takes place while `hides` are hidden.
    #[must_use]
    pub fn visible(&self, is_hit: bool, words: Words, hides: f64) -> f64 {
        let load = match is_hit {
            true => self.hit,
            false => {
                let words = f64::from(words.0) + self.miss_more_words;
                self.miss_base + words * self.miss_word
            }
        };
        (load - hides).max(0.0)
    }

    /// Returns how much of an access a return hides.
    #[must_use]
    pub fn hidden_by(&self, result: ResultKind) -> f64 {
        self.return_hides.get(&result).copied().unwrap_or_default()
    }
}

/// What the target's build makes of class files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Build {
    /// The code of `iinc`.
    pub increment: IncrementCode,
    /// The code of synchronized methods.
    pub synchronized: Synchronized,
    /// When classes are loaded and initialised.
    pub vm_calls: VmCalls,
}

/// The code of `iinc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncrementCode {
    /// `iinc`.
    #[default]
    Keep,
    /// A load, a constant, `iadd` and a store.
    LoadAddStore,
}

/// The code of synchronized methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronized {
    /// That of the class file.
    #[default]
    Keep,
    /// `aload_0` and `monitorenter` before it, `aload_0` and `monitorexit` before each return.
    MonitorInstructions,
}

/// What calls by the VM itself are, such as those that load and initialise classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VmCalls {
    /// A part of the program.
    #[default]
    Priced,
    /// The target does before the program starts what they do. They are not priced.
    BeforeStart,
}
