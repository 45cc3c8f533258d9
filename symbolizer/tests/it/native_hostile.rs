//! Tests that no debug information makes the reader panic, run for too long or allocate too much.

use crate::common;

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use varid_symbolizer::elf::{DebugFiles, ElfSource};

fn ask(bytes: Vec<u8>) {
    let Ok(source) = ElfSource::from_bytes(bytes, "x.so", &DebugFiles::none()) else {
        return;
    };
    for address in (0x1000..0x1300).step_by(16).chain([0, 1, u64::MAX]) {
        for frame in source.frames(address) {
            assert!(frame.function.len() < 1 << 20);
        }
        let _ = source.frames_at_offset(address);
    }
}

/// The small program with complete debug information. None if there is no compiler; the reason is printed.
fn program(name: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let made = Command::new("gcc")
        .args(["-O2", "-g", "-o"])
        .arg(&path)
        .args(arguments)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("not tried: there is no gcc");
        return None;
    }
    Some(std::fs::read(path).unwrap())
}

#[test]
fn broken_debug_information_is_survived() {
    let source = common::fixtures().join("native.c");
    for version in ["-gdwarf-5", "-gdwarf-4", "-gdwarf-2"] {
        let Some(original) = program("native", &[version, common::text(&source)]) else {
            return;
        };
        let mut numbers = common::Numbers(0x5eed);
        // Most of the file after the code is debug information.
        let from = original.len() as u64 / 3;
        for _ in 0..2_000 {
            let mut bytes = original.clone();
            for _ in 0..=numbers.below(8) {
                let at = from + numbers.below(bytes.len() as u64 - from);
                let value =
                    [0, 1, 0x7f, 0x80, 0xff, numbers.below(256) as u8][numbers.below(6) as usize];
                bytes[at as usize] = value;
            }
            ask(bytes);
        }
        for length in (0..original.len()).step_by(97) {
            ask(original[..length].to_vec());
        }
    }
}

/// A program with hand-written debug information: a unit with `entries`.
fn by_hand(folder: &Path, entries: &str) -> Option<Vec<u8>> {
    let text = format!(
        ".section .debug_abbrev,\"\",@progbits\n\
         .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0,0\n\
         .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x31; .uleb128 0x13; .byte 0,0\n\
         .uleb128 3; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x31; .uleb128 0x13; .byte 0,0\n\
         .uleb128 4; .uleb128 0x1d; .byte 1; .uleb128 0x03; .uleb128 8; .byte 0,0\n\
         .uleb128 5; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x03; .uleb128 8; .byte 0,0\n\
         .byte 0\n\
         .section .debug_info,\"\",@progbits\n\
         info: .4byte finish - start\nstart: .2byte 4\n.4byte .debug_abbrev\n.byte 8\n\
         .uleb128 1; .8byte main, end - main\n{entries}\n.byte 0\nfinish:\n"
    );
    assembled(folder, &text)
}

/// A program with these sections, and the function `main`.
fn assembled(folder: &Path, sections: &str) -> Option<Vec<u8>> {
    let main = ".text\n.globl main\n.type main, @function\nmain: .fill 64, 1, 0x90\nret\nend:\n.size main, end - main\n";
    let path = folder.join("by_hand.s");
    std::fs::write(&path, format!("{main}{sections}")).unwrap();
    program("by_hand", &["-no-pie", common::text(&path)])
}

/// Looks up the frames of `main`. Fails if there is no result within a minute.
fn frames_of_main(bytes: Vec<u8>) -> Vec<String> {
    let (answer, answered) = mpsc::channel();
    // The stack is small, so recursion over the input would overflow it.
    let asking = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            let source = ElfSource::from_bytes(bytes, "x", &DebugFiles::none()).unwrap();
            let main = (0x40_0000..0x41_0000)
                .find(|&at| {
                    source
                        .symbols()
                        .lookup(at)
                        .is_some_and(|symbol| symbol.raw == "main")
                })
                .unwrap();
            let frames = source.frames(main + 4);
            answer
                .send(
                    frames
                        .into_iter()
                        .map(|frame| frame.function.into_owned())
                        .collect(),
                )
                .unwrap();
        });
    let frames = answered
        .recv_timeout(Duration::from_secs(60))
        .expect("an answer");
    asking.unwrap().join().unwrap();
    frames
}

#[test]
fn an_origin_that_is_its_own_origin_ends() {
    let folder = tempfile::tempdir().unwrap();
    let entries = "a: .uleb128 2; .8byte main, end - main; .4byte b - info\n.byte 0\n\
                   b: .uleb128 2; .8byte main, end - main; .4byte a - info\n.byte 0";
    if let Some(bytes) = by_hand(folder.path(), entries) {
        assert_eq!(frames_of_main(bytes), ["main"]);
    }
}

#[test]
fn a_hundred_thousand_nested_inlined_functions_do_not_overflow_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let entries = "a: .uleb128 2; .8byte main, end - main; .4byte a - info\n\
                   .rept 100000\n.uleb128 3; .8byte main, end - main; .4byte a - info\n.endr\n\
                   .fill 100001, 1, 0";
    if let Some(bytes) = by_hand(folder.path(), entries) {
        assert!(!frames_of_main(bytes).is_empty());
    }
}

#[test]
fn an_inlined_function_without_addresses_is_between_those_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let entries = "a: .uleb128 2; .8byte main, end - main; .4byte a - info\n\
                   .uleb128 4; .asciz \"middle\"\n\
                   .uleb128 5; .8byte main, end - main; .asciz \"inner\"\n\
                   .byte 0,0,0";
    if let Some(bytes) = by_hand(folder.path(), entries) {
        assert_eq!(frames_of_main(bytes), ["inner", "middle", "main"]);
    }
}

#[test]
fn abbreviations_that_units_share_do_not_multiply() {
    let folder = tempfile::tempdir().unwrap();
    let sections = ".section .debug_abbrev,\"\",@progbits\n\
         .uleb128 1; .uleb128 0x11; .byte 0; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0,0\n\
         .set n, 2\n.rept 20000\n.uleb128 n; .uleb128 0x34; .byte 0,0,0\n.set n, n + 1\n.endr\n.byte 0\n\
         .section .debug_info,\"\",@progbits\n.rept 20000\n\
         .4byte 24; .2byte 4; .4byte .debug_abbrev; .byte 8; .uleb128 1; .8byte main, 64\n.endr\n";
    if let Some(bytes) = assembled(folder.path(), sections) {
        assert_eq!(frames_of_main(bytes), ["main"]);
    }
}

#[test]
fn what_unwind_entries_share_does_not_multiply() {
    let folder = tempfile::tempdir().unwrap();
    let sections = ".section .debug_frame,\"\",@progbits\n\
         common: .4byte 1f - 0f\n0: .4byte 0xffffffff; .byte 1; .ascii \"z\"; .fill 4000000, 1, 'S'\n\
         .byte 0,1,0x78,16,0\n.balign 4\n1:\n.rept 50000\n\
         .4byte 24; .4byte common; .8byte main, 64; .4byte 0\n.endr\n";
    if let Some(bytes) = assembled(folder.path(), sections) {
        assert_eq!(frames_of_main(bytes), ["main"]);
    }
}
