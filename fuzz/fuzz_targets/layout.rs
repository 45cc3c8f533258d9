//! What a library says of ART's layout in its code is never believed, and reading it ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::bounded;

fuzz_target!(|bytes: &[u8]| {
    // Of each instruction there are registers' values, which a branch copies.
    bounded(bytes, 4096, || varid_vm::fuzzing::layout(bytes));
});
