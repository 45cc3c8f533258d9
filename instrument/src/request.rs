//! What is the rewriter of one method given, and what does it return?

use crate::{Block, Counted, MethodNumber, NotRewritten, Plain, Site};

/// What is done with a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'m> {
    /// The method's number.
    pub(crate) number: MethodNumber,
    /// What is counted in it. None: it is a leaf.
    pub(crate) counted: Option<Counted>,
    /// Recording begins at its first call.
    pub(crate) starts: bool,
    /// Its calls are recorded wherever it is called: recording is restricted to its dynamic extent.
    pub(crate) is_extent: bool,
    /// Its frames are checked by the type checker: the class has version 50 or above.
    pub(crate) has_frames: bool,
    /// The bytes that its code and frames may take.
    pub(crate) budget: usize,
    /// What its frames start from.
    pub(crate) access: u16,
    pub(crate) name: &'m [u8],
    pub(crate) descriptor: &'m [u8],
    pub(crate) class: &'m [u8],
}

/// A method's new code.
#[derive(Debug)]
pub(crate) struct NewCode {
    /// The contents of the attribute `Code`.
    pub(crate) attribute: Vec<u8>,
    /// Its call sites. Empty for a leaf.
    pub(crate) sites: Vec<Site>,
    /// Its blocks. Empty without block counters.
    pub(crate) blocks: Vec<Block>,
}

/// Why a method has no new code.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It stays as it is.
    Method(Plain),
    /// The whole class does.
    Class(NotRewritten),
}

impl From<Plain> for Failed {
    fn from(plain: Plain) -> Self {
        Self::Method(plain)
    }
}

impl From<NotRewritten> for Failed {
    fn from(error: NotRewritten) -> Self {
        Self::Class(error)
    }
}
