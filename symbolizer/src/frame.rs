//! The function and source line at an address.

use std::borrow::Cow;

/// A function at an address.
///
/// If functions were inlined, an address has several. The innermost is first. Each is followed by the one that it was inlined into. The
/// last one contains the address itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// Its name as profiles show it, in the notation of its language. Empty if only its location is known.
    pub function: Cow<'a, str>,
    /// Its source location. None if it is not known.
    pub location: Option<Location<'a>>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location<'a> {
    /// The file as the compiler recorded it, possibly with folders.
    pub file: Cow<'a, str>,
    /// Its line, from 1.
    pub line: u32,
}
