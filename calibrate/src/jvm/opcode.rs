//! What distinguishes instructions: opcodes, types, ways to call.

use crate::error::Error;
use varid_symbolizer::class::java_mnemonic;

/// An opcode of Java's bytecode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opcode(pub(super) u8);

impl Opcode {
    /// Finds an opcode by its mnemonic.
    pub(super) fn named(name: &'static str) -> Result<Self, Error> {
        (0..=u8::MAX)
            .find(|byte| java_mnemonic(*byte) == Some(name))
            .map(Self)
            .ok_or(Error::Mnemonic(name))
    }

    /// Returns its mnemonic.
    pub(super) fn name(self) -> &'static str {
        java_mnemonic(self.0).unwrap_or("?")
    }
}

/// The type of a value, as far as instructions distinguish types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Long,
    Float,
    Double,
    Reference,
}

impl Kind {
    /// All types, in the order of opcodes.
    pub(super) const ALL: [Self; 5] = [
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
        Self::Reference,
    ];

    /// Returns the number of words that a value takes.
    pub(super) const fn words(self) -> u16 {
        match self {
            Self::Long | Self::Double => 2,
            Self::Int | Self::Float | Self::Reference => 1,
        }
    }

    /// Returns its place in the order of opcodes.
    pub(super) const fn index(self) -> u8 {
        match self {
            Self::Int => 0,
            Self::Long => 1,
            Self::Float => 2,
            Self::Double => 3,
            Self::Reference => 4,
        }
    }

    /// Returns the opcode that pushes 1, or null.
    pub(super) const fn one_opcode(self) -> Opcode {
        Opcode(match self {
            Self::Int => 4,
            Self::Long => 10,
            Self::Float => 12,
            Self::Double => 15,
            Self::Reference => 1,
        })
    }

    /// Returns the opcode that returns a value from a method.
    pub(super) const fn return_opcode(self) -> Opcode {
        Opcode(match self {
            Self::Int => 172,
            Self::Long => 173,
            Self::Float => 174,
            Self::Double => 175,
            Self::Reference => 176,
        })
    }
}

/// How a method of the fixture is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Static,
    Virtual,
    Interface,
    /// The constructor, which calls that of `Object`.
    Constructor,
}
