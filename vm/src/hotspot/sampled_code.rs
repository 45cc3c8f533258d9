//! The compiled code in which leaves were sampled, until the session takes it.

use super::known_blob::KnownBlob;
use super::methods::{CompiledCode, CompiledEntry};
use crate::seam::ExecutedCode;
use std::cell::RefCell;
use varid_model::MonotonicNs;

/// Sampled code that the session has not taken.
#[derive(Debug, Default)]
pub(super) struct SampledBlobs {
    waiting: RefCell<Vec<ExecutedCode>>,
}

impl SampledBlobs {
    /// Notes that a leaf was in a compiled method. `compiled` is the one that the blob had when its instructions were read.
    pub(super) fn note(&self, blob: &KnownBlob, compiled: &CompiledCode, time: MonotonicNs) {
        if blob.was_sampled.replace(true) {
            return;
        }
        self.waiting.borrow_mut().push(ExecutedCode {
            since: time,
            start: blob.blob.code.start,
            machine: blob.machine,
            name: name_of(compiled),
            bytes: blob.code().to_vec(),
        });
    }

    /// Takes what was noted since the last call.
    pub(super) fn take(&self) -> Vec<ExecutedCode> {
        self.waiting.take()
    }
}

/// Names a compilation by its number and its tier, as `-XX:+PrintCompilation` shows them, and by its method.
fn name_of(code: &CompiledCode) -> String {
    let compiled = &code.compiled;
    let entered = match compiled.entry {
        CompiledEntry::Invocation => String::new(),
        CompiledEntry::Loop(bci) => format!(", entered at {bci}"),
    };
    let method = code.compiled_method();
    let method = method.map_or_else(|_| "an unknown method".to_owned(), |it| it.symbol());
    format!(
        "compilation {} (tier {}{entered}) of {method}",
        compiled.compile_id, compiled.level
    )
}
