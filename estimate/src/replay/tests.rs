use std::collections::BTreeMap;

use varid_model::CodeUnits;
use varid_recording::{CallEvent, NodeId};

use crate::{
    CacheAccesses, CacheCharges, CodeInstruction, CostModel, Geometry, MethodBody, MethodCode,
    MethodName, Opcode, Operand, Price, PricedMethod, Program, ProgramMethod, ProgramNode, Replay,
    Synchronized, Target, estimate,
};

/// A load takes 6 and 2 for each word and one more. Blocks have four words.
const TARGET: &str = r#"
target = "t"
unit = "cycles"
[cost]
iadd = 1
ifne = 1
invokestatic = 10
ireturn = 5
return = 5
[runtime]
idiv = { value = 100, words = 3, result = "int" }
[method_cache]
size = 64
blocks = 4
policy = "fifo-variable-block"
[load]
hit = 4
miss = { base = 6, word = 2, more_words = 1 }
invoke_hides = 10
return_hides = { ireturn = 10, lreturn = 10, freturn = 10, dreturn = 10, areturn = 10, return = 9 }
"#;

const IADD: u8 = 0x60;
const IDIV: u8 = 0x6c;
const IFNE: u8 = 0x9a;
const IRETURN: u8 = 0xac;
const RETURN: u8 = 0xb1;
const INVOKESTATIC: u8 = 0xb8;

/// Makes a method of opcodes with their places. Those of `leads` start blocks.
fn method(
    name: &str,
    descriptor: &str,
    length: u32,
    code: &[(u32, u8)],
    leads: &[u32],
) -> ProgramMethod {
    let instructions = code.iter().map(|(place, opcode)| CodeInstruction {
        place: CodeUnits::new(*place),
        opcode: Opcode::Java(*opcode),
        operand: Operand::None,
        leads: leads.contains(place),
        falls_through: ![RETURN, IRETURN].contains(opcode),
        target: None,
        ways: 1,
    });
    ProgramMethod {
        name: Some(MethodName {
            class: "App".to_owned(),
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
        }),
        body: MethodBody::Code(MethodCode {
            instructions: instructions.collect(),
            length,
            is_synchronized: false,
        }),
    }
}

fn node(method: usize, parent: Option<(u32, u32)>, executions: &[u64]) -> ProgramNode {
    ProgramNode {
        method,
        parent: parent.map(|(node, _)| NodeId(node)),
        site: parent.map(|(_, site)| CodeUnits::new(site)),
        calls: 1,
        executions: executions.iter().copied().enumerate().collect(),
        is_leaf: executions.is_empty(),
        is_run: true,
        is_priced: true,
    }
}

fn program(methods: Vec<ProgramMethod>, nodes: Vec<ProgramNode>) -> Program {
    Program {
        methods,
        nodes,
        notes: Vec::new(),
    }
}

/// A cache that always misses.
const ONE_BLOCK: Geometry = Geometry {
    size: 64,
    blocks: 1,
    word: 4,
};

/// `main` of six words, which fill two blocks, calls `half` of two words twice, which divides.
fn two_calls() -> Program {
    let main = [(0, INVOKESTATIC), (3, IADD), (4, INVOKESTATIC), (7, RETURN)];
    let half = [(0, IADD), (1, IDIV), (2, IRETURN)];
    program(
        vec![
            method("main", "()V", 24, &main, &[0]),
            method("half", "(I)I", 8, &half, &[0]),
        ],
        vec![
            node(0, None, &[1, 1, 1, 1]),
            node(1, Some((0, 0)), &[1, 1, 1]),
            node(1, Some((0, 4)), &[1, 1, 1]),
        ],
    )
}

fn priced(program: &Program, target: &Target) -> Vec<Option<PricedMethod>> {
    let model = CostModel::new(target);
    let methods = program.methods.iter();
    let priced = methods.map(|method| match &method.body {
        MethodBody::Code(code) => Some(model.price(code)),
        _ => None,
    });
    priced.collect()
}

fn replay(program: &Program, events: &[CallEvent], blocks: &[u32]) -> Vec<CacheCharges> {
    let target = Target::parse("t", TARGET).unwrap();
    let geometries: Vec<_> = blocks
        .iter()
        .map(|blocks| Geometry {
            size: 64,
            blocks: *blocks,
            word: 4,
        })
        .collect();
    let priced = priced(program, &target);
    let mut replay = Replay::new(program, &target, &priced, &geometries).unwrap();
    replay.thread(events.iter().copied().map(Ok)).unwrap();
    replay.finish()
}

fn enter(node: u32) -> CallEvent {
    CallEvent::Enter(NodeId(node))
}

fn block(node: u32, start: u32) -> CallEvent {
    CallEvent::Block {
        node: NodeId(node),
        start: CodeUnits::new(start),
    }
}

#[test]
fn calls_returns_and_the_runtime_access_caches_in_their_order() {
    let program = two_calls();
    let charges = replay(&program, &[enter(0), enter(1), enter(2)], &[4, 1]);
    // Four blocks: main in 0 and 1, half in 2, the runtime's division in 3. half: 6 + 3 * 2 - 10, the division: 6 + 4 * 2 - 10.
    let expected = BTreeMap::from([((NodeId(0), Some(0)), 2.0), ((NodeId(1), Some(1)), 4.0)]);
    assert_eq!(charges[0].places, expected);
    assert_eq!(
        (charges[0].total, charges[0].misses, charges[0].hits),
        (6.0, 2, 6)
    );
    // One block has one method. Twice: half 2, the division 4, half again 2, main 6 + 7 * 2 - 10.
    assert_eq!(
        (charges[1].total, charges[1].misses, charges[1].hits),
        (36.0, 8, 0)
    );
}

#[test]
fn without_the_order_all_hits_and_all_misses_are_the_bounds() {
    let (program, target) = (two_calls(), Target::parse("t", TARGET).unwrap());
    let priced = priced(&program, &target);
    let of = |accesses| estimate(&program, &target, &priced, accesses).total;
    let (hit, miss) = (of(CacheAccesses::Hit), of(CacheAccesses::Miss));
    assert_eq!(
        hit.value,
        10.0 + 1.0 + 10.0 + 5.0 + 2.0 * (1.0 + 100.0 + 5.0)
    );
    assert_eq!(miss.value - hit.value, 36.0);
    let bounds = of(CacheAccesses::Bounds);
    assert_eq!((bounds.low, bounds.high), (hit.value, miss.value));
    let charges = replay(&program, &[enter(0), enter(1), enter(2)], &[4]);
    let found = estimate(
        &program,
        &target,
        &priced,
        CacheAccesses::Charged(&charges[0]),
    );
    assert_eq!(found.total.value - hit.value, 6.0);
    assert_eq!((found.instructions, found.calls), (10, 3));
    let places = found.nodes.iter().flatten().map(|place| place.cost.value);
    assert_eq!(places.sum::<f64>(), found.total.value);
}

#[test]
fn monitors_that_the_build_adds_are_charged_or_named() {
    let mut program = two_calls();
    if let MethodBody::Code(code) = &mut program.methods[1].body {
        code.is_synchronized = true;
    }
    let mut target = Target::parse("t", TARGET).unwrap();
    target.build.synchronized = Synchronized::MonitorInstructions;
    target.costs.insert("aload_0".to_owned(), Price::exact(1.0));
    let find = |target: &Target, accesses| {
        let priced = priced(&program, target);
        estimate(&program, target, &priced, accesses)
    };
    let found = find(&target, CacheAccesses::Hit);
    let names = found
        .uncosted
        .iter()
        .map(|one| (one.name.as_str(), one.executions));
    let names: Vec<_> = names.collect();
    assert_eq!(names, [("monitorenter", 2), ("monitorexit", 2)]);
    for key in ["monitorenter", "monitorexit"] {
        let method = target.runtime["idiv"].clone();
        target.runtime.insert(key.to_owned(), method);
    }
    let hit = find(&target, CacheAccesses::Hit).total.value;
    assert_eq!(hit - found.total.value, 2.0 * 2.0 * (1.0 + 100.0));
    let miss = find(&target, CacheAccesses::Miss).total.value;
    let priced = priced(&program, &target);
    let mut replay = Replay::new(&program, &target, &priced, &[ONE_BLOCK]).unwrap();
    let events = [enter(0), enter(1), enter(2)];
    replay.thread(events.into_iter().map(Ok)).unwrap();
    assert_eq!(replay.finish()[0].total, miss - hit);
}

#[test]
fn an_order_has_no_more_events_than_there_are_counts() {
    let (program, target) = (two_calls(), Target::parse("t", TARGET).unwrap());
    let priced = priced(&program, &target);
    let mut replay = Replay::new(&program, &target, &priced, &[ONE_BLOCK]).unwrap();
    let error = replay.thread(std::iter::repeat_with(|| Ok(enter(0))));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("more events than there are counts"),
        "{error}"
    );
}

#[test]
fn calls_of_what_has_no_context_are_named() {
    let mut program = two_calls();
    if let MethodBody::Code(code) = &mut program.methods[0].body {
        for index in [0, 2] {
            code.instructions[index].operand = Operand::Method("App.half".to_owned());
        }
    }
    let target = Target::parse("t", TARGET).unwrap();
    let priced = priced(&program, &target);
    let uncosted = |program: &Program| {
        let found = estimate(program, &target, &priced, CacheAccesses::Hit);
        let uncosted = found.uncosted.into_iter();
        let uncosted = uncosted.map(|one| (one.name, one.is_method, one.executions));
        uncosted.collect::<Vec<_>>()
    };
    assert_eq!(uncosted(&program), []);
    // The VM calls this one, not the instruction.
    program.nodes[2].site = None;
    assert_eq!(uncosted(&program), [("App.half".to_owned(), true, 1)]);
}

#[test]
fn what_the_order_does_not_have_is_a_hit_that_may_be_a_miss() {
    // The division is behind a branch, in a block of which there is no event; so is the call of what has no events.
    let code = [(0, IFNE), (3, IDIV), (4, INVOKESTATIC), (7, RETURN)];
    let program = program(
        vec![
            method("main", "()V", 8, &code, &[0, 3]),
            method("leaf", "()V", 4, &[(0, RETURN)], &[0]),
        ],
        vec![node(0, None, &[1, 1, 1, 1]), node(1, Some((0, 4)), &[])],
    );
    let target = Target::parse("t", TARGET).unwrap();
    let priced = priced(&program, &target);
    let of = |accesses| estimate(&program, &target, &priced, accesses);
    let bounds = of(CacheAccesses::Bounds).total;
    let charges = replay(&program, &[enter(0)], &[4]);
    let found = of(CacheAccesses::Charged(&charges[0]));
    assert!(bounds.low < bounds.high);
    assert_eq!(
        (found.total.low, found.total.value),
        (bounds.low, bounds.low)
    );
    assert_eq!(found.total.high, bounds.high);
    assert!(
        found.notes[0].starts_with("2 instructions"),
        "{:?}",
        found.notes
    );
    let charges = replay(&program, &[enter(0), block(0, 3)], &[4]);
    let found = of(CacheAccesses::Charged(&charges[0]));
    assert_eq!(found.notes, [""; 0]);
}

#[test]
fn a_loop_over_the_first_block_executes_it_once_for_each_event() {
    let code = [(0, IDIV), (1, IFNE), (4, RETURN)];
    let program = program(
        vec![method("main", "()V", 5, &code, &[0, 4])],
        vec![node(0, None, &[2, 2, 1])],
    );
    let charges = replay(&program, &[enter(0), block(0, 0), block(0, 0)], &[4]);
    // Each division is a call and a return.
    assert_eq!(charges[0].misses + charges[0].hits, 4);
}

#[test]
fn what_the_vm_calls_leaves_the_cache_as_it_is() {
    let mut program = two_calls();
    program.nodes[1].is_run = false;
    program.nodes[1].is_priced = false;
    let charges = replay(&program, &[enter(0), enter(1), enter(2)], &[4]);
    assert_eq!(charges[0].places[&(NodeId(0), Some(2))], 2.0);
    assert_eq!(charges[0].misses + charges[0].hits, 4);
}

#[test]
fn only_what_is_priced_is_charged() {
    let mut program = two_calls();
    program.restrict(&[1]);
    let charges = replay(&program, &[enter(0), enter(1), enter(2)], &[4]);
    assert_eq!(
        charges[0].places,
        BTreeMap::from([((NodeId(1), Some(1)), 4.0)])
    );
}

#[test]
fn events_may_begin_anywhere() {
    let program = two_calls();
    let charges = replay(
        &program,
        &[block(2, 0), enter(1), block(9, 9), enter(7)],
        &[4],
    );
    assert!(charges[0].total > 0.0);
}
