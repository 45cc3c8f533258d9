//! How does a fuzz target reach the decoders that are private to this crate? Each takes an input, and panics where an answer is wrong.

use crate::art::code_format::CodeFormat;
use crate::art::code_info::CodeInfo;
use crate::art::layout::{LibraryLayout, follow};
use crate::art::oat_file::OatFile;
use crate::hotspot::{Jvm, LoadedLibrary};
use std::collections::HashSet;
use std::ops::Range;
use varid_model::{Address, Machine, Tid};
use varid_tunnel::ByteMemory;

/// Stack maps that are looked into: each can have as many inlined methods as there are bytes.
const LOOKED_INTO: usize = 256;

/// Reads a CodeInfo of ART.
///
/// Input: a number of 32 bits, of which two say for which machine, the others where in the rest the CodeInfo starts.
pub fn code_info(input: &[u8]) {
    let Some((word, buffer)) = input.split_first_chunk() else {
        return;
    };
    let word = u32::from_le_bytes(*word);
    let machine = match word & 3 {
        0 => Machine::X86_64,
        1 => Machine::Aarch64,
        2 => Machine::Arm,
        _ => Machine::X86,
    };
    for format in [CodeFormat::Android11, CodeFormat::Android14] {
        if let Ok(info) = CodeInfo::parse_at(format, machine, buffer, word >> 2) {
            assert!(info.size <= buffer.len() as u64, "more than there is");
            look_into(&info);
        }
    }
}

/// Reads the tables of an oat file of ART as if its dex files had two classes of eight methods, and the CodeInfo of all code.
pub fn oat_file(input: &[u8]) {
    let Ok(oat) = OatFile::parse(input) else {
        return;
    };
    assert!(
        oat.boot_class_path().count() <= input.len(),
        "more than there is"
    );
    let classes = |_| Some([(0..8).collect(), (8..16).collect()].into_iter());
    let compiled = oat.compiled_methods(classes);
    for (code, methods) in compiled.iter() {
        assert!(!methods.is_empty(), "code of no method");
        let found = compiled.at(code.start);
        assert_eq!(found.map(|(code, _)| code.start), Some(code.start));
        if let Ok(info) = oat.code_info(code) {
            look_into(&info);
        }
    }
}

/// Reads a library of ART, and follows the code that the rest of the input is.
///
/// Input: a byte that says for which machine, and code; or a whole library.
pub fn layout(input: &[u8]) {
    // Whatever is wrong with it, that is an answer.
    let _ = LibraryLayout::read(input);
    let Some((machine, code)) = input.split_first() else {
        return;
    };
    let machine = match machine & 3 {
        0 => Machine::X86_64,
        1 => Machine::Aarch64,
        _ => Machine::Arm,
    };
    let events = follow(machine, code);
    assert!(
        events <= code.len().saturating_mul(20),
        "an instruction is followed twice"
    );
}

/// Describes a HotSpot with the input as its memory, and as the words that its library exports: those are the first ones.
pub fn jvm(input: &[u8]) {
    /// Where the memory starts in the seeds.
    const BASE: u64 = 0x10_0000;
    const PAGE: usize = 1 << 12;
    let library = LoadedLibrary::exporting_at(Machine::X86_64, Address::new(BASE));
    let mut bytes = input.to_vec();
    bytes.resize(input.len().next_multiple_of(PAGE), 0);
    let memory = ByteMemory {
        start: BASE,
        bytes: &bytes,
    };
    let tids = || HashSet::from([11, 12].map(Tid::new));
    // Whatever is wrong with it, that is an answer.
    let Ok(jvm) = Jvm::read(&library, &memory, &tids) else {
        return;
    };
    let is_code = |code: &Range<Address>| {
        let mut heaps = jvm.code_heaps.iter().map(|heap| &heap.reserved);
        code.start <= code.end && heaps.any(|heap| heap.start <= code.start && code.end <= heap.end)
    };
    let mut codelets = jvm.interpreter.codelets.iter();
    assert!(
        codelets.all(|codelet| is_code(&codelet.code)),
        "it is no code"
    );
    assert!(is_code(&jvm.interpreter.code) && !jvm.to_string().is_empty());
}

fn look_into(info: &CodeInfo<'_>) {
    for map in info.stack_maps().take(LOOKED_INTO) {
        if let Some(exact) = info.stack_map_at(map.pc_offset) {
            assert_eq!(exact.pc_offset, map.pc_offset, "the map of another pc");
        }
        // Errors and maps that are out of order are answers, too.
        let _ = (info.stack_map_before(map.pc_offset), info.inlined(&map));
    }
}
