//! Sequences of instructions take what the cores' manuals say.

use varid_model::Address;
use varid_riscv::{Instruction, Length, Xlen, decode};

use crate::{Cycles, Events, History, Issue, Operands, Pipeline, Processor, Setting, Slot};

const ADD: u32 = 0x00b5_0533; // add a0, a0, a1
const LOAD: u32 = 0x0005_a503; // lw a0, 0(a1)
const STORE: u32 = 0x00a5_a023; // sw a0, 0(a1)
const NOP: u32 = 0x0000_0013;
const JUMP_REGISTER: u32 = 0x0005_0067; // jr a0
const BACK: u32 = 0xfe05_0ee3; // beq a0, zero, -4
const FORTH: u32 = 0x0005_0463; // beq a0, zero, 8
const JUMP: u32 = 0x0080_006f; // j 8
const DIVIDE: u32 = 0x02b5_4533; // div a0, a0, a1

fn instruction(word: u32) -> Instruction {
    decode(&word.to_le_bytes(), Xlen::Rv32).unwrap()
}

fn processor(name: &str, settings: &[&str]) -> Processor {
    let settings = settings.iter();
    let settings: Vec<_> = settings.map(|text| Setting::parse(text).unwrap()).collect();
    Processor::named(name, &settings).unwrap()
}

/// What instructions at these addresses take, one after the other, and what happens.
fn run(processor: &Processor, code: &[(u64, u32)], operands: Operands) -> (Vec<Issue>, Events) {
    let mut pipeline = Pipeline::new(processor);
    let issues = code.iter().map(|(address, word)| {
        let address = Address::new(*address);
        let following = Some(Length::Four);
        let slot = Slot::new(processor, &instruction(*word), address, following).unwrap();
        pipeline.issue(&slot, operands)
    });
    (issues.collect(), pipeline.events())
}

fn cycles(processor: &Processor, code: &[(u64, u32)]) -> u64 {
    let (issues, _) = run(processor, code, Operands::default());
    let cycles = issues.iter().map(|issue| issue.previous.0 + issue.own.0);
    cycles.sum()
}

#[test]
fn ibex_takes_what_its_manual_says() {
    let ibex = processor("ibex", &[]);
    assert_eq!(cycles(&ibex, &[(0, LOAD), (4, ADD), (8, STORE)]), 5);
    // Not taken; taken.
    assert_eq!(cycles(&ibex, &[(0, FORTH), (4, NOP)]), 2);
    assert_eq!(cycles(&ibex, &[(0, FORTH), (8, NOP)]), 4);
    let target = processor("ibex", &["branch_target_alu=true"]);
    assert_eq!(cycles(&target, &[(0, FORTH), (8, NOP)]), 3);
    assert_eq!(cycles(&ibex, &[(0, JUMP), (8, NOP)]), 3);
    // The target's second half is fetched later. What follows in sequence is there in time.
    assert_eq!(cycles(&ibex, &[(2, JUMP), (10, NOP)]), 4);
    assert_eq!(cycles(&ibex, &[(2, NOP), (6, NOP)]), 2);
    let by_zero = run(&ibex, &[(0, DIVIDE)], Operands::default()).0;
    assert_eq!(by_zero[0].own, Cycles(2));
}

#[test]
fn a_jump_s_target_is_fetched_while_a_division_before_it_is_executed() {
    let cv32e40p = processor("cv32e40p", &[]);
    // By zero: 35 cycles.
    assert_eq!(cycles(&cv32e40p, &[(0, DIVIDE), (4, JUMP), (12, NOP)]), 37);
    // The target's second half is fetched later.
    let compressed = [(0, DIVIDE), (4, JUMP), (14, NOP)];
    assert_eq!(cycles(&cv32e40p, &compressed), 38);
    // Not if the division is not directly before it, or its result is where the jump leads to.
    let separated = [(0, DIVIDE), (4, NOP), (8, JUMP), (16, NOP)];
    assert_eq!(cycles(&cv32e40p, &separated), 39);
    let dependent = [(0, DIVIDE), (4, JUMP_REGISTER), (12, NOP)];
    assert_eq!(cycles(&cv32e40p, &dependent), 39);
    // A branch is decided in the next stage.
    assert_eq!(cycles(&cv32e40p, &[(0, DIVIDE), (4, FORTH), (12, NOP)]), 39);
    let ibex = processor("ibex", &[]);
    assert_eq!(cycles(&ibex, &[(0, DIVIDE), (4, JUMP), (12, NOP)]), 5);
}

/// The same as [`cycles`], by two pipelines: the second continues behind the first `split` instructions with what is pending there.
fn cycles_of_parts(processor: &Processor, code: &[(u64, u32)], split: usize) -> u64 {
    let slot = |(address, word): &(u64, u32)| {
        let following = Some(Length::Four);
        let address = Address::new(*address);
        Slot::new(processor, &instruction(*word), address, following).unwrap()
    };
    let (first, second) = code.split_at(split);
    let mut pipeline = Pipeline::of_hits(processor);
    for place in first {
        pipeline.issue(&slot(place), Operands::default());
    }
    pipeline.arrive_at(&slot(&second[0]));
    let mut other = Pipeline::of_hits(processor);
    other.restart(&pipeline.pending());
    for place in second {
        other.issue(&slot(place), Operands::default());
    }
    pipeline.cycles().0 + other.cycles().0
}

#[test]
fn what_is_pending_is_all_that_later_instructions_depend_on() {
    let sequences: [&[(u64, u32)]; 6] = [
        &[(0, DIVIDE), (4, JUMP), (12, NOP)],
        &[(0, DIVIDE), (4, JUMP), (14, NOP), (18, ADD)],
        &[(0, DIVIDE), (4, NOP), (8, JUMP), (16, NOP)],
        &[
            (0, LOAD),
            (4, ADD),
            (8, STORE),
            (12, LOAD),
            (16, JUMP_REGISTER),
        ],
        &[(0, ADD), (4, JUMP_REGISTER), (12, NOP)],
        &[(0, STORE), (4, STORE), (8, STORE), (12, STORE), (16, LOAD)],
    ];
    for (name, history) in [
        ("ibex", History::Results),
        ("cv32e40p", History::Results),
        ("picorv32", History::Results),
        ("vexriscv", History::Caches),
    ] {
        let processor = processor(name, &[]);
        assert_eq!(processor.history(), history);
        for code in sequences {
            let whole = cycles_of_parts(&processor, code, 0);
            if history == History::Results {
                assert_eq!(whole, cycles(&processor, code), "{name}, {code:x?}");
            }
            for split in 1..code.len() {
                let parts = cycles_of_parts(&processor, code, split);
                assert_eq!(parts, whole, "{name}, {code:x?}, {split}");
            }
        }
    }
}

#[test]
fn what_a_predictor_learns_is_a_history_of_its_own() {
    let history = |name, settings: &[&str]| processor(name, settings).history();
    let learning = ["predictor.kind=bimodal", "predictor.entries=64"];
    assert_eq!(history("vexriscv", &learning), History::Other);
    // How long a branch has waited is not pending.
    assert_eq!(history("ibex", &["branch_predictor=true"]), History::Other);
}

#[test]
fn without_a_cache_the_lines_are_listed_that_are_fetched() {
    let vexriscv = processor("vexriscv", &[]);
    let mut pipeline = Pipeline::of_hits(&vexriscv);
    for (address, word) in [(0x18, NOP), (0x1c, FORTH), (0x24, NOP), (0x28, NOP)] {
        let address = Address::new(address);
        let following = Some(Length::Four);
        let slot = Slot::new(&vexriscv, &instruction(word), address, following).unwrap();
        pipeline.issue(&slot, Operands::default());
    }
    assert_eq!(pipeline.take_fetched(), [0, 1]);
    assert!(pipeline.take_fetched().is_empty());
}

#[test]
fn a_loaded_value_is_waited_for_only_if_it_is_read_at_once() {
    let ibex = processor("ibex", &["writeback_stage=true"]);
    assert_eq!(cycles(&ibex, &[(0, LOAD), (4, NOP)]), 2);
    assert_eq!(cycles(&ibex, &[(0, LOAD), (4, ADD)]), 3);
    assert_eq!(cycles(&ibex, &[(0, LOAD), (4, NOP), (8, ADD)]), 3);
    let cv32e40p = processor("cv32e40p", &[]);
    // A jump needs its operand a stage earlier.
    assert_eq!(cycles(&cv32e40p, &[(0, ADD), (4, ADD)]), 2);
    assert_eq!(cycles(&cv32e40p, &[(0, ADD), (4, JUMP_REGISTER)]), 3);
    assert_eq!(cycles(&cv32e40p, &[(0, LOAD), (4, JUMP_REGISTER)]), 4);
    assert_eq!(
        cycles(&cv32e40p, &[(0, ADD), (4, NOP), (8, JUMP_REGISTER)]),
        3
    );
}

#[test]
fn a_jump_pays_for_what_passes_before_the_next_instruction() {
    let ibex = processor("ibex", &[]);
    let (issues, _) = run(&ibex, &[(0, JUMP), (8, NOP)], Operands::default());
    let expected = Issue {
        previous: Cycles(1),
        own: Cycles(1),
    };
    assert_eq!(issues[1], expected);
}

#[test]
fn picorv32_fetches_halves_of_instructions_one_by_one() {
    let picorv32 = processor("picorv32", &[]);
    assert_eq!(cycles(&picorv32, &[(0, ADD), (4, LOAD), (8, NOP)]), 11);
    assert_eq!(cycles(&picorv32, &[(0, FORTH), (8, NOP)]), 8);
    assert_eq!(cycles(&picorv32, &[(2, NOP), (6, NOP)]), 7);
    // The branch waits for what follows it, then its target is fetched.
    assert_eq!(cycles(&picorv32, &[(2, FORTH), (10, NOP)]), 10);
}

#[test]
fn a_branch_that_goes_as_predicted_is_cheaper() {
    let ibex = processor("ibex", &["branch_predictor=true", "branch_target_alu=true"]);
    let (issues, events) = run(&ibex, &[(4, BACK), (0, NOP)], Operands::default());
    assert_eq!(
        (issues[1].previous, events.mispredicted),
        (Cycles(0), Some(0))
    );
    let (issues, events) = run(&ibex, &[(4, BACK), (8, NOP)], Operands::default());
    assert_eq!(events.mispredicted, Some(1));
    assert!(issues[1].previous > Cycles(0));
    let (_, events) = run(&ibex, &[(4, FORTH), (12, NOP)], Operands::default());
    assert_eq!(events.mispredicted, Some(1));
    // The second half of the target is fetched later, which an instruction before the branch hides.
    let straddling = [(8, BACK), (2, NOP)];
    let (issues, _) = run(&ibex, &straddling, Operands::default());
    assert_eq!(issues[1].previous, Cycles(1));
    let hidden = [(4, LOAD), (8, BACK), (2, NOP)];
    let (issues, _) = run(&ibex, &hidden, Operands::default());
    assert_eq!(issues[2].previous, Cycles(0));
    // What follows a branch that was wrongly predicted is fetched anew, too.
    let (issues, _) = run(&ibex, &[(2, BACK), (6, NOP)], Operands::default());
    assert_eq!(issues[1].previous, Cycles(2));
    let (_, without) = run(&processor("ibex", &[]), &[(0, NOP)], Operands::default());
    assert_eq!(without, Events::default());
}

#[test]
fn a_miss_of_a_cache_takes_its_time_once() {
    let vexriscv = processor("vexriscv", &["icache.wrong_path.mispredicted=0"]);
    let line = u64::from(vexriscv.icache.map(|cache| cache.miss.of_line(32)).unwrap());
    let (issues, events) = run(
        &vexriscv,
        &[(0, NOP), (4, NOP), (32, NOP)],
        Operands::default(),
    );
    let before: Vec<_> = issues.iter().map(|issue| issue.previous.0).collect();
    assert_eq!(before[..2], [line, 0]);
    assert_eq!(events.icache_misses, Some(2));
    let (_, events) = run(
        &vexriscv,
        &[(0, STORE), (4, LOAD), (8, LOAD)],
        Operands::default(),
    );
    assert_eq!(events.dcache_misses, Some(1));
    let back = processor("vexriscv", &["dcache.writes=back"]);
    let (_, events) = run(
        &back,
        &[(0, STORE), (4, LOAD), (8, LOAD)],
        Operands::default(),
    );
    assert_eq!(events.dcache_misses, Some(1));
}

#[test]
fn stores_that_are_written_through_wait_for_each_other() {
    let vexriscv = processor("vexriscv", &[]);
    let own = |code: &[(u64, u32)]| -> Vec<u64> {
        let (issues, _) = run(&vexriscv, code, Operands::default());
        issues.iter().map(|issue| issue.own.0).collect()
    };
    let stores = [(0, STORE), (4, STORE), (8, STORE), (12, STORE)];
    assert_eq!(own(&stores), [1, 1, 2, 2]);
    assert_eq!(
        own(&[(0, STORE), (4, NOP), (8, STORE), (12, NOP), (16, STORE)]),
        [1; 5]
    );
    // The word that was just stored; at the load, its line is filled.
    let line = 16;
    assert_eq!(own(&[(0, STORE), (4, LOAD)]), [1, 1 + line + 5]);
    assert_eq!(
        own(&[(0, STORE), (4, NOP), (8, NOP), (12, LOAD)]),
        [1, 1, 1, 1 + line]
    );
}

#[test]
fn code_behind_a_transfer_is_fetched_too() {
    let vexriscv = processor("vexriscv", &[]);
    // The branch at the line's end is taken: the next line is fetched, and not executed.
    let (issues, events) = run(&vexriscv, &[(24, FORTH), (0, NOP)], Operands::default());
    assert_eq!(events.icache_misses, Some(2));
    assert_eq!(issues[1].previous, Cycles(3 + 16));
    let (_, events) = run(&vexriscv, &[(0, FORTH), (8, NOP)], Operands::default());
    assert_eq!(events.icache_misses, Some(1));
}

#[test]
fn an_instruction_that_the_processor_lacks_is_an_error() {
    let ibex = processor("ibex", &["rv32m=none"]);
    let slot = Slot::new(&ibex, &instruction(DIVIDE), Address::new(0x40), None);
    assert_eq!(
        slot.unwrap_err().to_string(),
        "the processor has no instruction of the class 'div', as there is one at 0x40"
    );
}
