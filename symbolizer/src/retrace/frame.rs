//! The description of an obfuscated frame.

use crate::dex::split_shared_name;

/// The position of a frame in its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// A line, by the dex file's debug information.
    Line(u32),
    /// A dex pc, in code units from the method's first instruction. R8 uses it in ranges where it omits line numbers.
    Pc(u32),
}

impl Position {
    /// The number that the mapping's ranges refer to.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Line(number) | Self::Pc(number) => number,
        }
    }

    /// The line. `None` for a dex pc.
    pub(super) fn line(self) -> Option<u32> {
        match self {
            Self::Line(line) => Some(line),
            Self::Pc(_) => None,
        }
    }
}

/// A frame with the names that R8 or ProGuard gave, in Java notation.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObfuscatedFrame<'f> {
    /// The class.
    pub class: &'f str,
    /// The method, without its parameters.
    pub method: &'f str,
    /// The line, or the dex pc if the dex file has no lines and R8 wrote the mapping.
    pub position: Option<Position>,
    /// The parameter types, separated by commas, if they are known.
    pub params: Option<&'f str>,
    /// The source file that the dex file has, if any. Most builds rename it to `SourceFile`.
    pub file: Option<&'f str>,
}

impl<'f> ObfuscatedFrame<'f> {
    /// Makes the frame of a dex method from its name as profiles show it: `a.b.c`, `a.b.c(int,d)` or `a.b.c and 41 more`. Also returns the
    /// part of the name about other methods that share the code: empty, or ` and 41 more`. None if the name has no class.
    #[must_use]
    pub fn of_method(name: &'f str) -> Option<(Self, &'f str)> {
        let (own, more) = split_shared_name(name);
        let (path, params) = match own.strip_suffix(')') {
            Some(call) => call
                .split_once('(')
                .map_or((call, None), |(path, params)| (path, Some(params))),
            None => (own, None),
        };
        let (class, method) = path.rsplit_once('.')?;
        let frame = Self {
            class,
            method,
            params,
            ..Self::default()
        };
        Some((frame, more))
    }
}
