//! A class file of Java is not trusted: constants, methods, tables of lines, instructions and descriptors.

use crate::bounded;
use varid_symbolizer::class::{ClassFile, parameters};

/// The number of methods to check: many may have the same long instructions.
const LOOKED_INTO: usize = 256;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 64, || {
        let _ = parameters(&String::from_utf8_lossy(bytes));
        let Ok(class) = ClassFile::parse(bytes) else {
            return;
        };
        let _ = class.method("branches", "(ILjava/lang/Object;)I");
        let codes = class
            .methods
            .iter()
            .filter_map(|method| method.code.as_ref());
        for code in codes.take(LOOKED_INTO) {
            let mut at = 0;
            for instruction in class.instructions(code) {
                assert_eq!(
                    instruction.bci, at,
                    "instructions that do not follow each other"
                );
                at += instruction.len;
                assert!(
                    at as usize <= code.bytecode.len(),
                    "an instruction that leaves its method"
                );
                let _ = instruction.to_string();
            }
        }
    });
}
