//! A dex file is never believed: parsing one, naming its methods and substituting it returns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_symbolizer::dex::{DexFile, MethodIndex};
use varid_symbolizer::substitute::Substitute;

fuzz_target!(|bytes: &[u8]| {
    let Ok(dex) = DexFile::parse(bytes) else {
        return;
    };
    for method in dex.methods() {
        let Ok(method) = method else { continue };
        // Errors are answers, too.
        let _ = (
            method.id.display_name(),
            method.id.signature(),
            method.id.descriptor(),
            method.source_file(),
        );
    }
    if let Ok(index) = MethodIndex::new(&dex) {
        for method in index.methods() {
            assert!(
                method.code.start < method.code.end,
                "a method of no instructions"
            );
            assert_eq!(
                index
                    .lookup(method.code.start)
                    .map(|found| found.code.start),
                Some(method.code.start)
            );
        }
    }
    if let Ok(substitute) = Substitute::of_dex(&dex) {
        let slots = substitute.slots();
        assert!(
            slots.windows(2).all(|pair| pair[0].offset < pair[1].offset),
            "symbols out of order"
        );
    }
});
