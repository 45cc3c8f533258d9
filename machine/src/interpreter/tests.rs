use varid_model::Mode;
use varid_processor::{Processor, Setting};
use varid_riscv::{Image, Segment, Symbol, SymbolKind};

use super::*;
use crate::{machine::Limits, observer::InstructionClock, system::Streams, timing::Timing};

const CODE: u32 = 0x1000;
const DATA: u32 = 0x2000;
const EXIT: u32 = 93;
const ZERO: u32 = 0;
const RA: u32 = 1;
const SP: u32 = 2;
const T0: u32 = 5;
const T1: u32 = 6;
const A0: u32 = 10;
const A1: u32 = 11;
const A7: u32 = 17;

fn addi(rd: u32, rs1: u32, immediate: i32) -> u32 {
    immediate.cast_unsigned() << 20 | rs1 << 15 | rd << 7 | 0x13
}

fn lui(rd: u32, immediate: u32) -> u32 {
    immediate << 12 | rd << 7 | 0x37
}

fn lw(rd: u32, rs1: u32, immediate: i32) -> u32 {
    immediate.cast_unsigned() << 20 | rs1 << 15 | 2 << 12 | rd << 7 | 3
}

fn sw(rs2: u32, rs1: u32, immediate: i32) -> u32 {
    let immediate = immediate.cast_unsigned();
    (immediate >> 5) << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (immediate & 31) << 7 | 0x23
}

/// `bne`, by a number of instructions.
fn bne(rs1: u32, rs2: u32, distance: i32) -> u32 {
    let offset = (distance * 4).cast_unsigned();
    let bit = |bit: u32| offset >> bit & 1;
    let low = (offset >> 1 & 15) << 8 | bit(11) << 7;
    bit(12) << 31 | (offset >> 5 & 63) << 25 | rs2 << 20 | rs1 << 15 | 1 << 12 | low | 0x63
}

/// `jal`, by a number of instructions.
fn jal(rd: u32, distance: i32) -> u32 {
    let offset = (distance * 4).cast_unsigned();
    let bit = |bit: u32| offset >> bit & 1;
    let high = bit(20) << 31 | (offset >> 1 & 0x3ff) << 21 | bit(11) << 20;
    high | (offset >> 12 & 0xff) << 12 | rd << 7 | 0x6f
}

fn jalr(rd: u32, rs1: u32) -> u32 {
    rs1 << 15 | rd << 7 | 0x67
}

const ECALL: u32 = 0x73;

/// Makes a program of functions, each a name and its instructions, with a page of data behind them.
fn image(functions: &[(&str, &[u32])], mode: Mode) -> Image {
    let mut code = Vec::new();
    let mut symbols = Vec::new();
    for (name, instructions) in functions {
        symbols.push(Symbol {
            name: (*name).to_owned(),
            address: Address::new(u64::from(CODE) + code.len() as u64),
            size: instructions.len() as u64 * 4,
            kind: SymbolKind::Function,
        });
        code.extend(instructions.iter().flat_map(|one| one.to_le_bytes()));
    }
    let data = Mode {
        execute: false,
        write: true,
        ..mode
    };
    let segment = |address: u32, data: Vec<u8>, mode| Segment {
        address: Address::new(address.into()),
        data,
        size: 0x1000,
        mode,
    };
    Image {
        xlen: Xlen::Rv32,
        entry: Address::new(CODE.into()),
        segments: vec![segment(CODE, code, mode), segment(DATA, Vec::new(), data)],
        symbols,
    }
}

const READ_EXECUTE: Mode = Mode {
    read: true,
    write: false,
    execute: true,
    shared: false,
};

fn interpreter(image: &Image, limit: u64) -> Interpreter {
    let streams = Streams {
        input: Box::new(io::empty()),
        output: Box::new(io::sink()),
        error: Box::new(io::sink()),
    };
    let limits = Limits {
        memory: 1 << 16,
        folder: None,
        clock_hz: 1,
    };
    let machine = Machine::load(image, &[b"program"], streams, &limits).unwrap();
    Interpreter::new(machine, limit)
}

/// Executes functions, of which the first one is the entry point.
fn run(functions: &[(&str, &[u32])], limit: u64) -> (Interpreter, Stop) {
    let mut interpreter = interpreter(&image(functions, READ_EXECUTE), limit);
    let stop = interpreter.run(&mut InstructionClock::default());
    (interpreter, stop)
}

/// Returns each context as the path of its functions' addresses, with its executed instructions and its calls.
fn contexts(counts: &Counts) -> Vec<(Vec<u32>, u64, u64)> {
    let all = counts.contexts.all();
    let path = |mut id: ContextId| {
        let mut path = vec![counts.contexts.function(id) - CODE];
        while let Some(parent) = counts.contexts.get(id).unwrap().parent {
            path.insert(0, counts.contexts.function(parent) - CODE);
            id = parent;
        }
        path
    };
    let instructions = |id: ContextId| {
        let cells = counts.cells.iter().filter(|cell| cell.context == id);
        cells
            .map(|cell| {
                let block = counts.block(cell.block).unwrap();
                cell.executions * block.instructions.len() as u64
            })
            .sum()
    };
    (0..)
        .map(ContextId)
        .zip(all)
        .map(|(id, context)| (path(id), instructions(id), context.calls))
        .collect()
}

#[test]
fn calls_and_tail_calls_have_contexts() {
    let main = [
        jal(RA, 5),
        jal(RA, 5),
        addi(A0, ZERO, 7),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
    ];
    // At 0x14 and 0x18: f jumps to g; g returns to main.
    let (interpreter, stop) = run(
        &[
            ("main", &main),
            ("f", &[jal(ZERO, 1)]),
            ("g", &[jalr(ZERO, RA)]),
        ],
        100,
    );
    assert_eq!(stop, Stop::Exit(7));
    let counts = interpreter.counts();
    assert_eq!(counts.instructions, 8);
    assert_eq!(
        contexts(counts),
        [
            (vec![0], 5, 1),
            (vec![0, 0x14], 1, 1),
            (vec![0, 0x14, 0x18], 1, 0),
            (vec![0, 0x18], 1, 1),
        ]
    );
}

#[test]
fn recursion_is_one_context_and_returns_to_its_caller() {
    let main = [
        addi(A0, ZERO, 3),
        jal(RA, 3),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
    ];
    // f(n): n == 0 ? 0 : f(n - 1)
    let f = [
        addi(SP, SP, -16),
        sw(RA, SP, 0),
        bne(A0, ZERO, 4),
        lw(RA, SP, 0),
        addi(SP, SP, 16),
        jalr(ZERO, RA),
        addi(A0, A0, -1),
        jal(RA, -7),
        jal(ZERO, -5),
    ];
    let (interpreter, stop) = run(&[("main", &main), ("f", &f)], 1000);
    assert_eq!(stop, Stop::Exit(0));
    let counts = interpreter.counts();
    // The beginning and the end four times, the recursive call and what is behind it three times.
    let f = 4 * (3 + 3) + 3 * (2 + 1);
    assert_eq!(contexts(counts), [(vec![0], 4, 1), (vec![0, 0x10], f, 4)]);
}

#[test]
fn a_jump_out_of_callees_ends_in_the_context_that_it_leads_to() {
    // main calls f, f calls g, g restores the stack pointer of main and returns into main, as longjmp does. Then main calls h.
    let main = [
        addi(T1, SP, 0),
        jal(RA, 5),
        addi(T0, ZERO, 1),
        jal(RA, 10),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
    ];
    let f = [
        addi(A1, RA, 0),
        addi(SP, SP, -16),
        jal(RA, 2),
        jalr(ZERO, RA),
    ];
    let g = [addi(RA, A1, 0), addi(SP, T1, 0), jalr(ZERO, RA)];
    let h = [jalr(ZERO, RA)];
    let (interpreter, stop) = run(&[("main", &main), ("f", &f), ("g", &g), ("h", &h)], 100);
    assert_eq!(stop, Stop::Exit(0));
    assert_eq!(
        contexts(interpreter.counts()),
        [
            (vec![0], 6, 1),
            (vec![0, 0x18], 3, 1),
            (vec![0, 0x18, 0x28], 3, 1),
            (vec![0, 0x34], 1, 1),
        ]
    );
}

#[test]
fn code_that_changes_itself_is_executed_as_it_is_now() {
    // It replaces the instruction behind the store, in its own block: a0 = 1 becomes a0 = 2.
    let new = addi(A0, ZERO, 2);
    let main = [
        lui(T0, CODE >> 12),
        lw(T1, T0, 28),
        sw(T1, T0, 16),
        addi(A1, ZERO, 5),
        addi(A0, ZERO, 1),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
        new,
    ];
    let mode = Mode {
        write: true,
        ..READ_EXECUTE
    };
    let mut interpreter = interpreter(&image(&[("main", &main)], mode), 100);
    let stop = interpreter.run(&mut InstructionClock::default());
    assert_eq!(stop, Stop::Exit(2));
    assert_eq!(interpreter.counts().instructions, 7);
    assert_eq!(contexts(interpreter.counts()), [(vec![0], 7, 1)]);
}

#[test]
fn the_limit_is_exact() {
    let main = [addi(A0, A0, 1), addi(A0, A0, 1), jal(ZERO, -2)];
    for limit in [0, 1, 2, 3, 100] {
        let (interpreter, stop) = run(&[("main", &main)], limit);
        assert_eq!(stop, Stop::Limit);
        assert_eq!(interpreter.counts().instructions, limit);
        assert_eq!(contexts(interpreter.counts())[0].1, limit);
    }
}

#[test]
fn a_fault_has_the_address_of_its_instruction() {
    let fault = |code: &[u32]| match run(&[("main", code)], 200) {
        (interpreter, Stop::Fault(fault)) => (fault.to_string(), interpreter.counts().instructions),
        (_, other) => panic!("{other:?}"),
    };
    let (text, executed) = fault(&[addi(A0, ZERO, 1), lw(A0, ZERO, 0)]);
    assert_eq!(text, "0x1004: Load of 4 bytes at 0x0: there is no memory");
    assert_eq!(executed, 1);
    let (text, _) = fault(&[lui(T0, 1), sw(A0, T0, 0)]);
    assert_eq!(
        text,
        "0x1004: Store of 4 bytes at 0x1000: the segment is read-only"
    );
    // The page of data is 0.
    let (text, executed) = fault(&[lui(T0, 2), jalr(ZERO, T0)]);
    assert_eq!(text, "0x2000: no known instruction: 0x0000");
    assert_eq!(executed, 2);
    let (text, _) = fault(&[lui(T0, 0x80000), jalr(ZERO, T0)]);
    assert_eq!(
        text,
        "0x80000000: Fetch of 2 bytes at 0x80000000: there is no memory"
    );
    let (text, _) = fault(&[addi(A7, ZERO, 222), ECALL]);
    assert_eq!(
        text,
        "0x1004: ecall 222 (mmap): the machine does not have this system call"
    );
    let (text, _) = fault(&[addi(SP, SP, -2048), sw(RA, SP, 0), jal(ZERO, -2)]);
    assert!(text.starts_with("0x1004: Store of 4 bytes"), "{text}");
}

#[test]
fn a_program_gets_its_arguments() {
    // exit(argc + argv[0][3])
    let main = [
        lw(A0, SP, 0),
        lw(T0, SP, 4),
        lw(T0, T0, 0),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
    ];
    let (interpreter, stop) = run(&[("main", &main)], 100);
    assert_eq!(stop, Stop::Exit(1));
    let text = interpreter.machine().hart.get(Register::T0);
    assert_eq!(text.to_le_bytes(), *b"prog");
}

#[test]
fn what_instructions_take_adds_up_to_the_time() {
    let main = [
        addi(A0, ZERO, 100),
        lw(T0, SP, 0),
        addi(A0, A0, -1),
        bne(A0, ZERO, -2),
        addi(A7, ZERO, EXIT as i32),
        ECALL,
    ];
    let image = image(&[("main", &main)], READ_EXECUTE);
    for (name, settings) in [
        ("ibex", "writeback_stage=true"),
        ("vexriscv", "dcache.size=8K"),
    ] {
        let settings = [Setting::parse(settings).unwrap()];
        let processor = Processor::named(name, &settings).unwrap();
        let mut timing = Timing::new(&processor);
        let mut interpreter = interpreter(&image, 1000);
        assert_eq!(interpreter.run(&mut timing), Stop::Exit(0));
        let cells = interpreter.counts().numbered_cells();
        let costs = cells.flat_map(|(id, _)| timing.costs(id));
        let sum: u64 = costs.map(|cost| cost.cycles.0).sum();
        assert_eq!(sum, timing.cycles().0);
        assert!(sum > interpreter.counts().instructions);
    }
}
