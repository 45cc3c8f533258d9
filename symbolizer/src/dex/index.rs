//! Finds the method whose instructions contain an offset.

use super::file::DexFile;
use super::method::DexMethod;
use super::read::bad;
use crate::bytecode::{MethodCode, method_at};
use crate::{Error, Result};

/// The methods of a dex file that have code, sorted by its position. Takes 24 bytes for each method.
#[derive(Debug)]
pub struct MethodIndex {
    methods: Vec<MethodCode>,
    problem: Option<Error>,
}

impl MethodIndex {
    /// Reads all classes once.
    ///
    /// Broken classes are left out, and a method that overlaps the next one ends where that begins: see [`MethodIndex::problem`]. A broken
    /// class does not affect the names of others.
    ///
    /// # Errors
    /// The first problem, if nothing could be read.
    pub fn new(dex: &DexFile<'_>) -> Result<Self> {
        let code = |method: Result<DexMethod<'_>>| method.map(|method| method.method_code());
        Self::of(dex.methods().filter_map(|method| code(method).transpose())).or_problem()
    }

    /// Sorts the methods. The first error is the [`MethodIndex::problem`].
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
        // If instructions overlap those of another method, the bytes belong to the method that begins there.
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

    /// Returns the first problem as an error if nothing could be read.
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

    /// The first problem among the parts that were left out.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }

    /// All methods by ascending offset, one for each code_item.
    #[must_use]
    pub fn methods(&self) -> &[MethodCode] {
        &self.methods
    }
}
