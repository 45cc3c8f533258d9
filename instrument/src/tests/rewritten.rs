//! Ugly classes that verify are rewritten so that they still do what they did.

use super::assembled::{Assembled, CALLEE};
use crate::class::{ClassFile, Code, Instruction, Instructions, Kind, opcode};
use crate::{
    Bci, Block, Body, Counted, Executions, Intrinsics, MethodNumber, MethodTable, NotRewritten,
    Plain, Plan, rewrite,
};

fn plan(counted: Counted) -> Plan {
    Plan {
        counted,
        intrinsics: Intrinsics::Leaves,
        start: None,
        within: None,
    }
}

fn table(class: &Assembled, counted: Counted) -> MethodTable {
    let rewritten = rewrite(&class.class(), &plan(counted), MethodNumber::FIRST).unwrap();
    rewritten.methods.into_iter().next().unwrap()
}

/// Rewrites a class, and calls `check` with the new code of its method.
fn with_code(class: &Assembled, check: impl FnOnce(&Code<'_>, &Instructions<'_>)) {
    let bytes = rewrite(&class.class(), &plan(Counted::Blocks), MethodNumber::FIRST)
        .unwrap()
        .bytes;
    let file = ClassFile::read(&bytes).unwrap();
    let attribute = file.methods[0].attribute(b"Code").unwrap();
    let code = Code::read(attribute.data, &file.constants).unwrap();
    check(&code, &Instructions::decode(code.bytes).unwrap());
}

fn call() -> [u8; 3] {
    let [high, low] = CALLEE.to_be_bytes();
    [opcode::INVOKESTATIC, high, low]
}

#[test]
fn a_method_that_begins_with_a_loop_has_a_counter_for_its_first_block() {
    // 0: iload_0; ifne 0; return
    let class = Assembled {
        descriptor: "(I)V",
        max_locals: 1,
        code: vec![26, opcode::IFNE, 0xff, 0xff, opcode::RETURN],
        frames: Some(vec![0, 1, 0]),
        ..Assembled::default()
    };
    let table = table(&class, Counted::Blocks);
    assert_eq!(table.body, Body::Counted);
    let block = |start, end, counter| Block {
        start: Bci(start),
        end: Bci(end),
        executions: Executions::Counter(counter),
    };
    assert_eq!(table.blocks, [block(0, 4, 0), block(4, 5, 1)]);
    assert_eq!(table.counters, 2);
    // The branch leads behind the entry, to the counter.
    with_code(&class, |_, instructions| {
        let targets: Vec<_> = instructions
            .list
            .iter()
            .flat_map(Instruction::targets)
            .collect();
        let calls: Vec<_> = (0..)
            .zip(&instructions.list)
            .filter(|(_, it)| it.opcode == opcode::INVOKESTATIC)
            .map(|(index, _)| index)
            .collect();
        let [_, enter, count, ..] = calls.as_slice() else {
            panic!("{calls:?}");
        };
        let [target] = targets.as_slice() else {
            panic!("{targets:?}");
        };
        assert!(enter < target && target < count);
    });
}

#[test]
fn a_method_without_branches_has_no_counter() {
    let table = table(&Assembled::default(), Counted::Blocks);
    let block = Block {
        start: Bci(0),
        end: Bci(1),
        executions: Executions::Calls,
    };
    assert_eq!((table.blocks.as_slice(), table.counters), (&[block][..], 0));
}

#[test]
fn blocks_with_an_instruction_that_is_a_subroutine_elsewhere_are_in_the_order() {
    // 0: iload_0; ifne 7; 4: iload_0, i2b, pop; 7: iload_0, i2c, pop; return
    let class = Assembled {
        descriptor: "(I)V",
        max_locals: 1,
        code: vec![
            26,
            opcode::IFNE,
            0,
            6,
            26,
            145,
            87,
            26,
            146,
            87,
            opcode::RETURN,
        ],
        frames: Some(vec![0, 1, 7]),
        ..Assembled::default()
    };
    let executions = |counted| {
        let blocks = table(&class, counted).blocks.into_iter();
        blocks.map(|block| block.executions).collect::<Vec<_>>()
    };
    let (first, counter) = (Executions::Calls, Executions::Counter);
    let ordered = Executions::Ordered;
    assert_eq!(executions(Counted::Blocks), [first, counter(0), counter(1)]);
    assert_eq!(executions(Counted::Order), [first, ordered(0), counter(1)]);
}

#[test]
fn switches_stay_aligned_and_lead_where_they_did() {
    for padding in 0..4_u8 {
        // nop...; iload_0; tableswitch 1: a, 2: b, default: b; a: call; b: return
        let mut code = vec![0; padding.into()];
        code.push(26);
        let switch = u8::try_from(code.len()).unwrap();
        code.push(opcode::TABLESWITCH);
        code.extend(vec![0; (3 - usize::from(switch) % 4) % 4]);
        let length = u8::try_from(code.len()).unwrap() + 20 - switch;
        for word in [length + 3, 1, 2, length, length + 3] {
            code.extend(u32::from(word).to_be_bytes());
        }
        let first = switch + length;
        code.extend(call());
        code.push(opcode::RETURN);
        let class = Assembled {
            descriptor: "(I)V",
            max_locals: 1,
            code,
            frames: Some(vec![0, 2, 251, 0, first, 251, 0, 2]),
            ..Assembled::default()
        };
        with_code(&class, |_, instructions| {
            let kinds: Vec<_> = instructions
                .list
                .iter()
                .filter_map(|it| match &it.kind {
                    Kind::Table(default, low, targets) => Some((*default, *low, targets.clone())),
                    _ => None,
                })
                .collect();
            let [(default, 1, targets)] = kinds.as_slice() else {
                panic!("{kinds:?}");
            };
            assert_eq!(targets[1], *default);
            assert!(targets[0] < *default);
        });
    }
}

#[test]
fn a_handler_that_code_runs_into_records_exceptions_only() {
    // 0: call; 3: aconst_null; 4: pop (the handler); 5: return
    let mut code = call().to_vec();
    code.extend([opcode::ACONST_NULL, 87, opcode::RETURN]);
    let class = Assembled {
        code,
        handlers: vec![[0, 3, 4, 0]],
        // The constant 7 is no class, which nobody looks at here.
        frames: Some(vec![0, 1, 64 + 4, 7, 0, 2]),
        ..Assembled::default()
    };
    with_code(&class, |code, instructions| {
        let handler = instructions.at(code.handlers[0].handler.into()).unwrap();
        let before = &instructions.list[usize::from(handler) - 1];
        let Kind::Branch(over) = before.kind else {
            panic!("{before:?}");
        };
        assert_eq!(before.opcode, opcode::GOTO);
        assert!(over > handler);
    });
}

#[test]
fn the_added_handler_covers_the_method_and_comes_last() {
    with_code(&Assembled::default(), |code, instructions| {
        let [handler] = code.handlers.as_slice() else {
            panic!("{:?}", code.handlers);
        };
        assert_eq!(handler.catch_type, 0);
        assert_eq!(handler.end, handler.handler);
        let last = instructions.list.last().unwrap();
        assert_eq!(last.opcode, opcode::ATHROW);
    });
}

#[test]
fn code_that_grows_too_much_stays_as_it_is() {
    let mut code: Vec<u8> = std::iter::repeat_n(call(), 10_000).flatten().collect();
    code.push(opcode::RETURN);
    let class = Assembled {
        code,
        ..Assembled::default()
    };
    let table = table(&class, Counted::Calls);
    assert_eq!(table.body, Body::Plain(Plain::TooLarge));
    assert!(table.sites.is_empty());
    let rewritten = rewrite(&class.class(), &plan(Counted::Calls), MethodNumber::FIRST).unwrap();
    let file = ClassFile::read(&rewritten.bytes).unwrap();
    let attribute = file.methods[0].attribute(b"Code").unwrap();
    let kept = Code::read(attribute.data, &file.constants).unwrap();
    assert_eq!(kept.bytes, class.code);
}

#[test]
fn local_variables_above_255_have_wide_instructions() {
    for max_locals in [1, 3, 250, 300, 65_000] {
        let class = Assembled {
            max_locals,
            major: 49,
            ..Assembled::default()
        };
        with_code(&class, |code, _| {
            assert_eq!(code.max_locals, max_locals + 6)
        });
    }
    let class = Assembled {
        max_locals: 65_533,
        ..Assembled::default()
    };
    assert_eq!(
        table(&class, Counted::Blocks).body,
        Body::Plain(Plain::TooManyLocals)
    );
}

#[test]
fn subroutines_of_old_classes_are_rewritten() {
    // 0: jsr 4; 3: return; 4: astore_0; 5: ret 0
    let class = Assembled {
        major: 48,
        max_locals: 1,
        code: vec![opcode::JSR, 0, 4, opcode::RETURN, 75, opcode::RET, 0],
        ..Assembled::default()
    };
    let table = table(&class, Counted::Blocks);
    let starts: Vec<u16> = table.blocks.iter().map(|block| block.start.0).collect();
    assert_eq!((table.body, starts), (Body::Counted, vec![0, 3, 4]));
}

#[test]
fn code_that_is_not_valid_stays_as_it_is() {
    let codes: [&[u8]; 5] = [
        // It ends in an instruction, it runs out, a branch leads into an instruction, an unknown opcode, a switch with no values.
        &[opcode::SIPUSH, 0],
        &[0],
        &[opcode::GOTO, 0, 1],
        &[203],
        &[
            opcode::TABLESWITCH,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
        ],
    ];
    for code in codes {
        let class = Assembled {
            code: code.to_vec(),
            ..Assembled::default()
        };
        let body = table(&class, Counted::Blocks).body;
        assert_eq!(body, Body::Plain(Plain::Invalid), "{code:?}");
    }
}

#[test]
fn numbers_end_with_an_error() {
    let class = Assembled::default().class();
    let plan = plan(Counted::Calls);
    assert!(rewrite(&class, &plan, MethodNumber::LAST).is_ok());
    let mut two = class;
    two.truncate(8);
    assert!(matches!(
        rewrite(&two, &plan, MethodNumber::FIRST),
        Err(NotRewritten::Invalid { .. })
    ));
}
