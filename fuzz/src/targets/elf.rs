//! An ELF file is not trusted. It is either rejected, or its symbols and functions can be read.

use crate::bounded;
use varid_symbolizer::elf::ElfSymbols;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 64, || {
        let Ok(symbols) = ElfSymbols::from_bytes(bytes, "libfuzz.so") else {
            return;
        };
        for address in (0..0x4000)
            .step_by(16)
            .chain([u64::MAX, u64::MAX / 2, 1 << 32])
        {
            if let Some(symbol) = symbols.lookup(address) {
                assert!(
                    (symbol.start..symbol.end).contains(&address),
                    "a symbol that does not hold its address"
                );
                let _ = symbol.name();
            }
            let _ = (
                symbols.lookup_offset(address),
                symbols.function_bounds(address),
            );
        }
    })
}
