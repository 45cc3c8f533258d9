//! Are frames of generated code left by their size, on every machine and beside others?

use super::*;

/// Registers that frames of generated code keep, and the stack that two of them make: the inner one's words, then the outer one's.
struct Case {
    machine: Machine,
    /// DWARF numbers of the two registers that are saved.
    saved: [u16; 2],
}

const CASES: [Case; 4] = [
    Case {
        machine: Machine::X86_64,
        saved: [3, 6],
    },
    Case {
        machine: Machine::X86,
        saved: [3, 5],
    },
    Case {
        machine: Machine::Aarch64,
        saved: [19, 29],
    },
    Case {
        machine: Machine::Arm,
        saved: [4, 11],
    },
];

const LOW_SP: u64 = 0x7fff_0000;
const WORDS: usize = 5;

impl Case {
    /// Frames of five words: two that are the method's own, the saved registers, the return address.
    fn frame(&self) -> FixedFrame {
        let word = u32::from(self.machine.word());
        let [first, second] = self.saved;
        let saved = [(first, 2), (second, 3)].map(|(dwarf, place)| SavedRegister {
            dwarf,
            offset: place * word,
        });
        FixedFrame::new(self.machine, WORDS as u32 * word, &saved)
    }

    fn stack(&self, words: &[u64]) -> Vec<u8> {
        let len = usize::from(self.machine.word());
        let word = |word: &u64| word.to_le_bytes()[..len].to_vec();
        words.iter().flat_map(word).collect()
    }

    fn unwind(&self, words: &[u64]) -> NativeStack {
        let mut regs = Regs::unknown(self.machine);
        regs.set_frame(CODE, LOW_SP, 0xf0);
        regs.set(self.saved[0], Some(0xa0));
        let record = record(regs, LOW_SP, self.stack(words));
        let mut native = NativeStack::default();
        native.unwind(&regs, record.slice(), None, &mut Blob(self.frame()));
        native
    }
}

/// Generated code from [`CODE`] on.
struct Blob(FixedFrame);

impl UnwindInfo for Blob {
    fn rule(&mut self, pc: Address) -> CodeRule {
        match pc.get() {
            CODE..0x6000 => self.0.rule(pc),
            _ => CodeRule::NoCode,
        }
    }
}

#[test]
fn each_frame_gives_its_caller_and_the_registers_that_it_kept() {
    for case in CASES {
        let inner = [1, 2, 0xa1, 0xf1, CODE + 0x100];
        let outer = [3, 4, 0xa2, 0xf2, CODE + 0x200];
        let native = case.unwind(&[inner, outer, [0; WORDS]].concat());
        assert_eq!(ips(&native), [CODE, CODE + 0x100, CODE + 0x200]);
        assert_eq!(native.stopped, None, "a return address of zero");
        let size = WORDS as u64 * u64::from(case.machine.word());
        let sps: Vec<_> = native.frames.iter().map(|frame| frame.sp.get()).collect();
        assert_eq!(sps, [LOW_SP, LOW_SP + size, LOW_SP + 2 * size]);
        for (frame, kept) in native
            .frames
            .iter()
            .zip([(0xa0, 0xf0), (0xa1, 0xf1), (0xa2, 0xf2)])
        {
            let found = case.saved.map(|dwarf| frame.regs.get(dwarf));
            assert_eq!(found, [Some(kept.0), Some(kept.1)], "{:?}", case.machine);
            assert_eq!(frame.regs.sp(), Some(frame.sp.get()));
        }
    }
}

#[test]
fn a_stack_that_is_cut_in_a_frame_is_said_to_end_there() {
    for case in CASES {
        let native = case.unwind(&[1, 2, 0xa1, 0xf1, CODE + 0x100, 3, 4, 0xa2, 0xf2]);
        assert_eq!(ips(&native), [CODE, CODE + 0x100]);
        assert_eq!(native.stopped, Some(UnwindError::NoStack));
    }
}

#[test]
fn a_size_that_is_wrong_ends_the_stack() {
    let case = &CASES[0];
    let native = case.unwind(&[1, 2, 0xa1, 0xf1, 0x1234, CODE]);
    assert_eq!(ips(&native), [CODE]);
    assert_eq!(
        native.stopped,
        Some(UnwindError::NoCode(Address::new(0x1234)))
    );
    let mut empty = FixedFrame::new(Machine::X86_64, 0, &[]);
    let mut regs = Regs::unknown(Machine::X86_64);
    regs.set_frame(CODE, SP, 0);
    let record = record(regs, SP - 8, case.stack(&[CODE; 8]));
    let mut native = NativeStack::default();
    native.unwind(&regs, record.slice(), None, &mut empty);
    assert!(native.frames.len() <= 2, "{native:x?}");
    assert!(matches!(native.stopped, Some(UnwindError::NotAscending(_))));
}

#[test]
fn registers_that_a_frame_does_not_save_are_the_callers() {
    let unknown = [7, 16, 999].map(|dwarf| SavedRegister { dwarf, offset: 0 });
    let mut frame = FixedFrame::new(Machine::X86_64, 16, &unknown);
    let mut regs = Regs::unknown(Machine::X86_64);
    regs.set_frame(CODE, SP, 0xf0);
    let record = record(regs, SP, CASES[0].stack(&[1, CODE + 8, 2, 0]));
    let mut native = NativeStack::default();
    native.unwind(&regs, record.slice(), None, &mut frame);
    assert_eq!(ips(&native), [CODE, CODE + 8]);
    let caller = native.frames[1].regs;
    assert_eq!((caller.sp(), caller.fp()), (Some(SP + 16), Some(0xf0)));
}

#[test]
fn a_rule_of_another_machine_is_no_rule() {
    let mut frame = FixedFrame::new(Machine::Aarch64, 16, &[]);
    let mut regs = Regs::unknown(Machine::X86_64);
    regs.set_frame(CODE, SP, 0);
    let record = record(regs, SP, CASES[0].stack(&[CODE + 8, 2, 0]));
    let mut native = NativeStack::default();
    native.unwind(&regs, record.slice(), None, &mut frame);
    // By convention: the leaf has pushed nothing.
    assert_eq!(ips(&native), [CODE, CODE + 8]);
    let frames = &native.frames;
    let found = bytecode_pc(record.slice(), &frames[0], &mut frame);
    assert_eq!(found, BytecodePc::NoInterpreter);
}

#[test]
fn a_frame_that_has_not_saved_its_return_address_has_it_in_the_link_register() {
    let machine = Machine::Aarch64;
    let saved = [SavedRegister {
        dwarf: 19,
        offset: 16,
    }];
    let mut regs = Regs::unknown(machine);
    regs.set_frame(CODE, LOW_SP, 0xf0);
    regs.set(30, Some(CODE + 0x100));
    let stack = CASES[2].stack(&[1, 2, 0xa1, 4, 5]);
    for (size, kept) in [(32, Some(0xa1)), (0, None)] {
        let saved = if size == 0 { &[][..] } else { &saved };
        let mut frame = FixedFrame::unlinked(machine, size, saved);
        let CodeRule::Rule(rule) = frame.rule(Address::new(CODE)) else {
            panic!("a rule");
        };
        let record = record(regs, LOW_SP, stack.clone());
        let cfa = rule.cfa(&regs, record.slice()).unwrap();
        assert_eq!(cfa, Address::new(LOW_SP + u64::from(size)));
        let caller = rule.caller(cfa, &regs, record.slice()).unwrap();
        assert_eq!((caller.ip(), caller.get(19)), (Some(CODE + 0x100), kept));
    }
    let x86 = FixedFrame::unlinked(Machine::X86_64, 16, &[]).rule(Address::new(CODE));
    let CodeRule::Rule(rule) = x86 else {
        panic!("a rule");
    };
    let regs = Regs::unknown(Machine::X86_64);
    let record = record(regs, LOW_SP, stack);
    let caller = rule.caller(Address::new(LOW_SP), &regs, record.slice());
    assert_eq!(caller, Err(UnwindError::NoStack));
}

/// An interpreter's frame, whose caller is a frame of fixed size: the interpreter has moved the stack pointer between the two.
#[test]
fn a_frame_pointer_leads_out_of_a_frame_of_unknown_size() {
    struct Mixed(LinkedFrame, FixedFrame);
    impl UnwindInfo for Mixed {
        fn rule(&mut self, pc: Address) -> CodeRule {
            match pc.get() < CODE + 0x100 {
                true => self.0.rule(pc),
                false => self.1.rule(pc),
            }
        }
    }
    let machine = Machine::X86_64;
    let saved = SavedRegister {
        dwarf: machine.fp(),
        offset: 0,
    };
    let mut code = Mixed(
        LinkedFrame::new(machine, CallerSp::InWord(-8)),
        FixedFrame::new(machine, 16, &[saved]),
    );
    let mut regs = Regs::unknown(machine);
    let fp = LOW_SP + 16;
    regs.set_frame(CODE, LOW_SP, fp);
    let caller = LOW_SP + 48;
    let words = [
        0xdead,       // sp
        caller,       // fp - 8: the caller's stack pointer
        0xf0,         // fp: its frame pointer
        CODE + 0x201, // the return address
        0xdead,       // locals
        0xdead,
        0xf1, // the caller's frame
        CODE + 0x301,
    ];
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word: &u64| word.to_le_bytes())
        .collect();
    let record = record(regs, LOW_SP, bytes);
    let mut native = NativeStack::default();
    native.unwind(&regs, record.slice(), None, &mut code);
    let found: Vec<_> = native
        .frames
        .iter()
        .map(|frame| {
            (
                frame.address.recorded().get(),
                frame.sp.get(),
                frame.regs.fp(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (CODE, LOW_SP, Some(fp)),
            (CODE + 0x201, caller, Some(0xf0)),
            (CODE + 0x301, caller + 16, Some(0xf1)),
        ]
    );
}
