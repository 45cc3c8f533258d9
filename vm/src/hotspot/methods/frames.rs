//! What does a frame execute: a method, and an instruction of it?

use super::error::MethodError;
use super::ids::{Bci, MethodPointer};
use super::java_method::JavaMethod;
use std::rc::Rc;

/// A method that compiled code executes, as its debug information has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledScope {
    /// The method.
    pub method: MethodPointer,
    /// The instruction. None before the first one: the method is being entered.
    pub bci: Option<Bci>,
}

/// How well the methods and instructions of a code address are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// There is debug information of this return address.
    Exact,
    /// Debug information of the next return address or safepoint. Calls of leaf routines, such as array copies and barriers of the
    /// collector, have none of their own.
    Following,
    /// An instruction: debug information of the next return address or safepoint, which may be that of other methods.
    Approximate,
    /// There is no debug information from here on. The method is that of the compilation, and its instruction is not known.
    MethodOnly,
}

/// What a code address executes, as the debug information of its compiled method has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledScopes {
    /// How well they are known.
    pub precision: Precision,
    /// Innermost first. The last one is the method that was compiled.
    pub scopes: Vec<CompiledScope>,
}

/// A method that a frame executes.
#[derive(Debug, Clone)]
pub struct JavaFrame {
    /// The method, or why it is not known.
    pub method: Result<Rc<JavaMethod>, MethodError>,
    /// The instruction. None: the method is being entered, is native, or the instruction is not known.
    pub bci: Option<Bci>,
}

impl JavaFrame {
    /// Returns the line of the instruction. None if it is not known.
    pub fn line(&self) -> Option<u16> {
        let method = self.method.as_ref().ok()?;
        method.lines.line(self.bci?)
    }
}

/// The methods that a native frame of compiled code executes.
#[derive(Debug, Clone)]
pub struct JavaFrames {
    /// How well they are known.
    pub precision: Precision,
    /// Innermost first. The last one is the method that was compiled.
    pub frames: Vec<JavaFrame>,
}
