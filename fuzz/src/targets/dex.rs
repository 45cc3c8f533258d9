//! A dex file, standard or compact, is not trusted: methods, code items, lines, try ranges, instructions and names.

use crate::bounded;
use varid_symbolizer::dex::{DexFile, MethodCode, MethodIndex};

/// The number of methods to check. In a hostile file each of them can span the whole file.
const LOOKED_INTO: usize = 256;

fn look_into(dex: &DexFile<'_>, index: &MethodIndex, method: &MethodCode) {
    let code = &method.code;
    assert!(code.start < code.end, "a method of no instructions");
    assert_eq!(index.lookup(code.start), Some(method));
    // Errors are valid results.
    let _ = dex.source_file(method);
    if let Ok(lines) = dex.lines(method) {
        let rows = lines.rows();
        assert!(
            rows.iter().all(|row| code.contains(&row.offset)),
            "a line outside of its method"
        );
        assert!(
            rows.is_sorted_by_key(|row| row.offset),
            "lines out of order"
        );
        let frame = dex
            .frame(index, code.start)
            .and_then(|frame| frame.location);
        if let Some(location) = frame {
            let row = lines.lookup(code.start).expect("a location without a row");
            assert_eq!(location.line, row.line);
        }
    }
    // The method itself may end before the next method's instructions.
    let whole = dex.code_item(method).map(|item| item.insns);
    for range in dex.tries(method).into_iter().flatten().flatten() {
        let whole = whole.as_ref().expect("try ranges of a broken code item");
        assert!(
            whole.start <= range.code.start && range.code.end <= whole.end,
            "a try range outside of its method"
        );
    }
    let mut at = code.start;
    for instruction in dex.disassemble(method) {
        let Ok(instruction) = instruction else { break };
        assert_eq!(
            instruction.offset, at,
            "instructions that do not follow each other"
        );
        at += instruction.units * 2;
        assert!(at <= code.end, "an instruction that leaves its method");
        let _ = instruction.to_string();
    }
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 64, || {
        let Ok(dex) = DexFile::parse(bytes) else {
            return;
        };
        for method in dex.methods().flatten() {
            let _ = (
                method.id.display_name(),
                method.id.signature(),
                method.id.descriptor(),
                method.source_file(),
            );
        }
        let listed: usize = dex.class_methods().map(|class| class.len()).sum();
        assert!(
            listed <= dex.method_count() as usize,
            "more methods than there are names"
        );
        let Ok(index) = MethodIndex::new(&dex) else {
            return;
        };
        for method in index.methods().iter().take(LOOKED_INTO) {
            look_into(&dex, &index, method);
        }
    });
}
