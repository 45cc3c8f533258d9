//! What ART's compiler notes down of its code, in a JIT's code cache or an oat file, is never believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::bounded;

fuzz_target!(|bytes: &[u8]| {
    bounded(bytes, 16, || varid_vm::fuzzing::code_info(bytes));
});
