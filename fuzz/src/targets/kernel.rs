//! Kernel symbols, from /proc/kallsyms or a session's kernel.sym, can be written and read again.

use crate::bounded;
use varid_symbolizer::kernel::KernelSymbols;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 64, || {
        for table in [
            KernelSymbols::parse_kallsyms(bytes),
            KernelSymbols::parse(bytes),
        ] {
            let Ok(table) = table else { continue };
            let mut text = Vec::new();
            table
                .write(None, &mut text)
                .expect("a vector takes everything");
            let again = KernelSymbols::parse(&text).expect("what was written can be read");
            assert_eq!(again.len(), table.len());
            for address in [0, 1, 0xffff_ffff_8100_0000, u64::MAX] {
                if let Some(symbol) = table.lookup(address) {
                    assert!(
                        (symbol.start..symbol.end).contains(&address),
                        "a symbol that does not hold its address"
                    );
                }
            }
        }
    })
}
