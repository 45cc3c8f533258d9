//! Which method's instructions is this offset in?

use super::file::DexFile;
use super::method::DexMethod;
use super::read::bad;
use crate::bytecode::{MethodCode, method_at};
use crate::{Error, Result};

/// The methods of a dex file that have code, by where it lies. 24 bytes a method.
#[derive(Debug)]
pub struct MethodIndex {
    methods: Vec<MethodCode>,
    problem: Option<Error>,
}

impl MethodIndex {
    /// Reads all classes once.
    ///
    /// Classes that are broken are left out, and methods that overlap end where the next begins:
    /// see [`MethodIndex::problem`]. One bad class does not take away the names of the others.
    ///
    /// # Errors
    /// The first thing that is wrong, if nothing at all could be read.
    pub fn new(dex: &DexFile<'_>) -> Result<Self> {
        let code = |method: Result<DexMethod<'_>>| method.map(|method| method.method_code());
        Self::of(dex.methods().filter_map(|method| code(method).transpose())).or_problem()
    }

    /// Sorts the methods that were found; the first error is the [`MethodIndex::problem`].
    pub(super) fn of(found: impl IntoIterator<Item = Result<MethodCode>>) -> Self {
        let mut methods = Vec::new();
        let mut problem = None;
        for method in found {
            match method {
                Ok(method) => methods.extend(Some(method).filter(|method| !method.code.is_empty())),
                Err(error) => {
                    problem.get_or_insert(error);
                }
            }
        }
        methods.sort_unstable_by_key(|method| (method.code.start, method.index));
        methods.dedup_by(|next, method| method.absorb(next));
        // Instructions that reach into another method's are not both's: what begins there owns them.
        let mut next = u32::MAX;
        for method in methods.iter_mut().rev() {
            if method.code.end > next {
                method.code.end = next;
                let start = method.code.start as usize;
                let error = bad(
                    "insns_size",
                    start,
                    "the instructions reach into another method's",
                );
                problem.get_or_insert(error);
            }
            next = method.code.start;
        }
        methods.shrink_to_fit();
        Self { methods, problem }
    }

    /// The first thing that is wrong, if nothing at all could be read.
    pub(super) fn or_problem(mut self) -> Result<Self> {
        match self.problem.take_if(|_| self.methods.is_empty()) {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// The method whose instructions hold the byte at `offset`.
    #[must_use]
    pub fn lookup(&self, offset: u32) -> Option<&MethodCode> {
        method_at(&self.methods, offset)
    }

    /// The first thing that was wrong with what was left out.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }

    /// All of them, by ascending offset; one per code_item.
    #[must_use]
    pub fn methods(&self) -> &[MethodCode] {
        &self.methods
    }
}
