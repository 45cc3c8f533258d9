//! Whatever a class file holds, the rewriter returns.

use super::assembled::{Assembled, CALLEE};
use crate::class::opcode;
use crate::{Counted, Intrinsics, MethodNumber, NotRewritten, Plan, rewrite};
use proptest::prelude::*;

fn class() -> Vec<u8> {
    let [high, low] = CALLEE.to_be_bytes();
    let code = vec![
        26,
        opcode::IFEQ,
        0,
        9,
        opcode::INVOKESTATIC,
        high,
        low,
        opcode::GOTO,
        0xff,
        0xf9,
        opcode::RETURN,
    ];
    Assembled {
        descriptor: "(IJ[Ljava/lang/String;)V",
        max_locals: 4,
        code,
        handlers: vec![[0, 4, 10, 0]],
        frames: Some(vec![0, 2, 0, 9]),
        ..Assembled::default()
    }
    .class()
}

proptest! {
    #[test]
    fn what_is_written_is_a_class_file(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        counted in prop::sample::select(vec![Counted::Calls, Counted::Blocks, Counted::Order]),
    ) {
        let mut class = class();
        for (at, byte) in changes {
            let at = at.index(class.len());
            class[at] = byte;
        }
        let plan = Plan {
            counted,
            intrinsics: Intrinsics::Leaves,
            start: None,
            within: None,
        };
        if let Ok(first) = rewrite(&class, &plan, MethodNumber::FIRST) {
            let second = rewrite(&first.bytes, &plan, MethodNumber::FIRST);
            prop_assert!(matches!(second, Ok(_) | Err(NotRewritten::ConstantPoolFull)));
        }
    }
}
