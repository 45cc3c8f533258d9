//! An oat file's header, its tables of compiled methods and the headers of their code are never believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::bounded;

fuzz_target!(|bytes: &[u8]| {
    bounded(bytes, 128, || varid_vm::fuzzing::oat_file(bytes));
});
