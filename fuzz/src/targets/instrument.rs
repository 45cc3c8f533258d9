//! A class file that a VM loads is not trusted: it is rewritten, or refused, and what was written is a class file.

use crate::bounded;
use varid_instrument::{
    Body, Counted, Intrinsics, MethodNumber, NotRewritten, Plain, Plan, rewrite, thread_class,
};

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    for counted in [Counted::Calls, Counted::Blocks, Counted::Order] {
        let plan = Plan {
            counted,
            intrinsics: Intrinsics::Leaves,
            start: None,
            within: None,
        };
        bounded(bytes, 512, || rewritten(bytes, &plan));
    }
    bounded(bytes, 64, || {
        if let Ok(class) = thread_class(bytes) {
            assert!(thread_class(&class).is_ok(), "a class that cannot be read");
        }
    });
}

fn rewritten(bytes: &[u8], plan: &Plan) {
    let Ok(first) = rewrite(bytes, plan, MethodNumber::FIRST) else {
        return;
    };
    let second = match rewrite(&first.bytes, plan, MethodNumber::FIRST) {
        Ok(second) => second,
        Err(NotRewritten::ConstantPoolFull) => return,
        Err(error) => panic!("a class that cannot be read: {error}"),
    };
    assert_eq!(first.methods.len(), second.methods.len());
    for (before, after) in first.methods.iter().zip(&second.methods) {
        assert!(
            before.body != Body::Counted || after.body != Body::Plain(Plain::Invalid),
            "{} has code that is not valid",
            before.name
        );
        let end = before.blocks.last().map_or(0, |block| block.end.0);
        assert!(end == 0 || end == before.code_length);
    }
}
