//! The methods that addresses of compiled code execute. They depend on the compilation only, so each address is decoded once.

use super::methods::bounded::BoundedMap;
use super::methods::{CodeKey, Precision};
use std::rc::Rc;
use varid_model::{Address, FrameAddress};

/// The most bytes that are kept.
const MAX_BYTES: usize = 1 << 22;

/// What addresses of compiled code execute.
#[derive(Debug)]
pub(super) struct KnownScopes {
    known: BoundedMap<(CodeKey, FrameAddress), Rc<Scopes>>,
}

/// What an address of compiled code executes.
#[derive(Debug)]
pub(super) struct Scopes {
    /// How well that is known.
    pub(super) precision: Precision,
    /// Innermost first.
    pub(super) methods: Box<[ExecutedMethod]>,
}

/// A method, and its instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExecutedMethod {
    /// The pointer that [`super::named_methods::NamedMethods`] has given to it.
    pub(super) method: Address,
    /// The index of its instruction, in bytes. 0 if that is not known.
    pub(super) bci: u32,
}

impl Default for KnownScopes {
    fn default() -> Self {
        let known = BoundedMap::new(MAX_BYTES);
        Self { known }
    }
}

impl KnownScopes {
    /// Returns what an address executes.
    pub(super) fn get(&mut self, code: CodeKey, address: FrameAddress) -> Option<Rc<Scopes>> {
        self.known.get(&(code, address))
    }

    /// Keeps what an address executes.
    pub(super) fn insert(
        &mut self,
        code: CodeKey,
        address: FrameAddress,
        scopes: Scopes,
    ) -> Rc<Scopes> {
        let size = size_of::<Scopes>().saturating_add(size_of_val(&*scopes.methods));
        let scopes = Rc::new(scopes);
        self.known.insert((code, address), Rc::clone(&scopes), size);
        scopes
    }
}
