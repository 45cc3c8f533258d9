//! Where do exceptions of what is inserted lead?

use super::super::instruction::decode;
use super::super::item::Try;
use super::*;
use crate::file::{Header, Pools};
use crate::runtime::Runtime;

/// `synchronized (v0) { v1 = v0.length; }`: exceptions release the monitor at 4.
const LOCKED: [u16; 7] = [0x001d, 0x0121, 0x001e, 0x000e, 0x010d, 0x001e, 0x0127];

fn inserted(tries: &[(u32, u32)]) -> Inserted {
    let item = CodeItem {
        registers: 2,
        ins: 0,
        outs: 0,
        debug_info: 0,
        units: LOCKED.to_vec(),
        tries: tries
            .iter()
            .map(|(start, end)| Try {
                start: *start,
                end: *end,
                handlers: 0,
            })
            .collect(),
        handlers: vec![Handlers {
            typed: Vec::new(),
            catch_all: Some(4),
        }],
    };
    let dex = include_bytes!("../../../../symbolizer/tests/fixtures/names.dex");
    let mut pools = Pools::read(&Header::read(dex).unwrap()).unwrap();
    let runtime = Runtime::add(&mut pools).unwrap();
    let order = pools.sort().unwrap();
    let instructions = decode(&item.units).unwrap();
    let flow = Flow::new(&item, &instructions);
    let method = Method {
        item: &item,
        instructions: &instructions,
        flow: &flow,
        at: 0,
    };
    let counting = Counting {
        plan: Plan {
            counted: Counted::Blocks,
            entries: Entries::Inline,
        },
        runtime: &runtime.members(&order).unwrap(),
        number: 1,
        shape: 1 << 16 | 8,
        arguments: &[],
        counters: &[(0, None), (4, Some(2))],
    };
    insert(method, &order, Some(counting)).unwrap()
}

/// Returns the covers of what is inserted and may throw, before an original instruction and behind the one before.
fn covers_before(inserted: &Inserted, index: usize) -> Vec<Option<Cover>> {
    const INSERTED: [u8; 3] = [
        opcode::INVOKE_STATIC_RANGE,
        opcode::AGET_WIDE,
        opcode::APUT_WIDE,
    ];
    let place = |index: usize| inserted.code.place(inserted.labels[index]);
    let between = place(index - 1) + 1..place(index + 1);
    let cover = |at: u32| {
        let tries = inserted.code.tries.iter();
        let mut found = tries.filter(|(start, end, _)| (*start..*end).contains(&at));
        found.next().map(|(_, _, cover)| *cover)
    };
    let instructions = decode(&inserted.code.units).unwrap();
    let throwing = instructions
        .into_iter()
        .filter(|one| between.contains(&one.pc) && INSERTED.contains(&one.code));
    throwing.map(|one| cover(one.pc)).collect()
}

#[test]
fn what_is_inserted_while_a_monitor_is_held_has_its_handlers() {
    let inserted = inserted(&[(1, 3), (5, 6)]);
    let in_monitor = Cover {
        handlers: Some(0),
        exit: false,
    };
    // In the handler: the call of the runtime, and the counter, which is read and written.
    assert_eq!(covers_before(&inserted, 5), [Some(in_monitor); 3]);
    // Before the return.
    let outside = Cover {
        handlers: None,
        exit: true,
    };
    assert_eq!(covers_before(&inserted, 3), [Some(outside)]);
}

#[test]
fn the_exit_catches_nothing_while_a_monitor_is_held() {
    let inserted = inserted(&[(1, 3), (5, 6)]);
    for index in [1, 2, 5] {
        // All have one code unit.
        let at = inserted.code.place(inserted.labels[index + 1]) - 1;
        let mut tries = inserted.code.tries.iter();
        let found = tries.find(|(start, end, _)| (*start..*end).contains(&at));
        assert!(found.is_some_and(|(_, _, cover)| !cover.exit), "{index}");
    }
}
