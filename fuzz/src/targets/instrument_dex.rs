//! A dex file of a program is not trusted: it is rewritten, or refused, and what was written is a dex file.

use crate::bounded;
use varid_instrument::{Counted, MethodNumber};
use varid_instrument_dex::{Entries, Plan, RuntimeClass, rewrite};
use varid_symbolizer::dex::DexFile;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    for counted in [Counted::Calls, Counted::Blocks] {
        for entries in [Entries::Called, Entries::Inline] {
            bounded(bytes, 1024, || rewritten(bytes, Plan { counted, entries }));
        }
    }
}

fn rewritten(bytes: &[u8], plan: Plan) {
    let Ok(new) = rewrite(bytes, plan, MethodNumber::FIRST, RuntimeClass::Added) else {
        return;
    };
    let dex = DexFile::parse(&new.bytes).expect("a file that cannot be read");
    for method in dex.methods() {
        let method = method.expect("a method that cannot be read");
        if let Some(code) = method.method_code() {
            for instruction in dex.disassemble(&code) {
                instruction.expect("an instruction that cannot be read");
            }
            for range in dex.tries(&code).expect("ranges") {
                range.expect("handlers that cannot be read");
            }
        }
    }
}
