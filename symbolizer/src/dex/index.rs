//! Which method's instructions is this offset in?

use super::file::DexFile;
use super::method_code::MethodCode;
use super::read::bad;
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
        let mut methods = Vec::new();
        let mut problem = None;
        for method in dex.methods() {
            match method {
                Ok(method) => {
                    methods.extend(
                        method
                            .method_code()
                            .filter(|method| !method.code.is_empty()),
                    );
                }
                Err(error) => {
                    problem.get_or_insert(error);
                }
            }
        }
        if methods.is_empty()
            && let Some(error) = problem
        {
            return Err(error);
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
        Ok(Self { methods, problem })
    }

    /// The method whose instructions hold the byte at `offset`.
    #[must_use]
    pub fn lookup(&self, offset: u32) -> Option<&MethodCode> {
        let after = self
            .methods
            .partition_point(|method| method.code.start <= offset);
        let method = self.methods.get(after.checked_sub(1)?)?;
        method.code.contains(&offset).then_some(method)
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
