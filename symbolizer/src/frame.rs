//! What is at an address?

use std::borrow::Cow;

/// A function at an address.
///
/// Where functions have been inlined an address has several: the innermost is first, each
/// is followed by the one that it was inlined into, the last has the address as its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// Its name as profiles show it, in its own language's notation; empty where only its location is known.
    pub function: Cow<'a, str>,
    /// Where in its source; none if that is not known.
    pub location: Option<Location<'a>>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location<'a> {
    /// The file as the compiler recorded it: with folders if it did.
    pub file: Cow<'a, str>,
    /// Its line, from 1.
    pub line: u32,
}
