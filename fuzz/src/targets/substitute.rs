//! The substitute of any dex file is an ELF file with the same methods and lines.

use crate::bounded_by;
use varid_symbolizer::dex::{DexFile, MethodIndex};
use varid_symbolizer::elf::{DebugFiles, ElfSource};
use varid_symbolizer::substitute::Substitute;

/// A file's names may take 64 MB. They occur in the symbols, the debug information and their readers.
const NAMES: usize = 512 << 20;
/// The number of methods that are looked up.
const ASKED: usize = 64;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded_by(bytes, 256, NAMES, || {
        let Ok(dex) = DexFile::parse(bytes) else {
            return;
        };
        let Ok(substitute) = Substitute::of_dex(&dex) else {
            return;
        };
        let slots = substitute.slots();
        assert!(
            slots.windows(2).all(|pair| pair[0].offset < pair[1].offset),
            "symbols out of order"
        );
        let path = std::env::temp_dir().join(format!("varid-fuzz-{}.elf", std::process::id()));
        substitute.write(&path).expect("it can be written");
        let source = ElfSource::open(&path, &DebugFiles::none()).expect("it can be read");
        std::fs::remove_file(&path).expect("it was there");
        let Ok(index) = MethodIndex::new(&dex) else {
            return;
        };
        // In a container, other files may lie between.
        if dex.next_header().is_some() {
            return;
        }
        for method in index.methods().iter().take(ASKED) {
            let code = &method.code;
            let lines = dex.lines(method).ok();
            for offset in code.clone().step_by(2) {
                let [frame] = &source.frames(offset.into())[..] else {
                    panic!("not one method at {offset:#x}");
                };
                let row = lines.as_ref().and_then(|lines| lines.lookup(offset));
                let expected = row.map(|row| row.line).filter(|line| *line != 0);
                let line = frame.location.as_ref().map(|location| location.line);
                // If the source file is unknown, the substitute names the class, if possible.
                let location = dex.frame(&index, offset).and_then(|frame| frame.location);
                let known = location.filter(|location| !location.file.is_empty());
                if known.is_some() || line.is_some() {
                    assert_eq!(line, expected, "the line at {offset:#x}");
                }
            }
        }
    });
}
