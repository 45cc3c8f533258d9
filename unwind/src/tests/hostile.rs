//! Does unwinding end, whatever the rules and the stack say?

use super::*;
use object::{Object, ObjectSection, ObjectSymbol};
use proptest::prelude::*;

/// Rules that a compiler does not write.
const ODD: &str = "
.text
.globl falls, loops, deep, endless
.type falls, @function
falls: .cfi_startproc
.cfi_def_cfa rbp, 16
.skip 16, 0x90
.cfi_endproc
.size falls, . - falls
.type loops, @function
loops: .cfi_startproc
.cfi_def_cfa rsp, 0
.skip 16, 0x90
.cfi_endproc
.size loops, . - loops
.type deep, @function
deep: .cfi_startproc
.cfi_def_cfa_offset 8
.skip 16, 0x90
.cfi_endproc
.size deep, . - deep
.type endless, @function
endless: .cfi_startproc
.cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff
.skip 16, 0x90
.cfi_endproc
.size endless, . - endless
.section .note.GNU-stack,\"\",@progbits
";

/// A module by itself, its addresses those of its file.
fn with_odd(test: impl FnOnce(&dyn Fn(&str) -> u64, &dyn Fn(&Record) -> NativeStack)) {
    let bytes = std::fs::read(Compiled::new("odd.s", ODD).path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let module = std::cell::RefCell::new(Module::new(&file));
    let text = file.section_by_name(".text").unwrap();
    let text = text.address()..text.address() + text.size();
    let symbol = |name: &str| {
        file.dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(name))
            .unwrap()
            .address()
            + 4
    };
    let code = |address: u64| {
        if text.contains(&address) {
            CodeAt::Module(module.borrow_mut(), address)
        } else {
            CodeAt::None
        }
    };
    test(&symbol, &|record| unwind(record, None, code));
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the rules name x86-64's registers"
)]
fn frames_that_do_not_ascend_end_the_stack() {
    with_odd(|symbol, unwind| {
        let (falls, loops) = (symbol("falls"), symbol("loops"));
        // Its CFA is below its own sp.
        let found = unwind(&words(falls, 4, 0, &[0, falls, 0, 0, falls, 0]));
        assert_eq!(ips(&found), [falls]);
        assert_eq!(
            found.stopped,
            Some(UnwindError::NotAscending(Address::new(SP + 32)))
        );
        // A caller that would be its own caller.
        let mut found = unwind(&words(loops, 1, 0, &[loops, loops, loops]));
        found.frames.dedup();
        assert!(found.frames.len() <= 2, "{found:x?}");
        assert!(matches!(found.stopped, Some(UnwindError::NotAscending(_))));
    });
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the rules name x86-64's registers"
)]
fn no_stack_has_more_frames_than_the_limit() {
    with_odd(|symbol, unwind| {
        let deep = symbol("deep");
        let found = unwind(&words(deep, 0, 0, &vec![deep; 3 * MAX_FRAMES]));
        assert_eq!(found.frames.len(), MAX_FRAMES);
    });
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the rules name x86-64's registers"
)]
fn an_expression_that_never_ends_is_given_up() {
    with_odd(|symbol, unwind| {
        let endless = symbol("endless");
        let found = unwind(&words(endless, 0, 0, &[endless; 8]));
        assert_eq!(ips(&found), [endless]);
        assert!(found.stopped.is_some());
    });
}

/// This process's C library: every kind of rule that compilers and people write.
fn libc_bytes() -> Vec<u8> {
    let maps = procfs::process::Process::myself().unwrap().maps().unwrap();
    let path = maps.iter().find_map(|map| match &map.pathname {
        procfs::process::MMapPath::Path(path) if path.to_str()?.contains("/libc.so") => {
            Some(path.clone())
        }
        _ => None,
    });
    std::fs::read(path.expect("this test is linked with a C library")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Bytes of .eh_frame and .eh_frame_hdr may say anything: unwinding ends, and does not panic.
    #[test]
    fn hostile_rules_are_survived(
        mutations in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..2000),
        cut in prop::option::of(any::<prop::sample::Index>()),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 40),
        values in prop::collection::vec(any::<u64>(), 8),
        stack in prop::collection::vec(prop_oneof![any::<u64>(), (0u64..64).prop_map(|at| SP + 8 * at)], 64),
    ) {
        thread_local!(static LIBC: Vec<u8> = libc_bytes());
        let mut bytes = LIBC.with(Clone::clone);
        let (ranges, text, addresses) = {
            let file = object::File::parse(&*bytes).unwrap();
            let range = |name| {
                let (start, len) = file.section_by_name(name).unwrap().file_range().unwrap();
                start as usize..(start + len) as usize
            };
            let text = file.section_by_name(".text").unwrap();
            let symbols: Vec<_> = file.dynamic_symbols().map(|symbol| symbol.address()).collect();
            let addresses: Vec<_> = picks.iter().map(|pick| *pick.get(&symbols)).collect();
            ([range(".eh_frame"), range(".eh_frame_hdr")], text.address()..text.address() + text.size(), addresses)
        };
        for (header, at, value) in mutations {
            let range = &ranges[usize::from(header)];
            bytes[range.start + at.index(range.len())] = value;
        }
        if let Some(cut) = cut {
            let range = &ranges[0];
            let from = range.start + cut.index(range.len());
            bytes[from..range.end].fill(0xff);
        }
        let module = std::cell::RefCell::new(Module::new(&object::File::parse(&*bytes).unwrap()));
        let code = |address: u64| {
            if text.contains(&address) { CodeAt::Module(module.borrow_mut(), address) } else { CodeAt::Unknown }
        };
        for address in addresses {
            let mut regs = Regs::default();
            SHOWN.iter().zip(&values).for_each(|(dwarf, value)| regs.set(*dwarf, Some(*value)));
            regs.set_frame(address, SP, SP + 16);
            let bytes = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
            let found = unwind(&record(regs, SP, bytes), None, code);
            prop_assert!(!found.frames.is_empty() && found.frames.len() <= MAX_FRAMES);
        }
    }
}
