//! Merges native frames with managed frames on a separate stack, such as Dalvik's.
//!
//! Addresses on two stacks cannot be compared. The order follows from the interpreter: one native frame of its loop executes a
//! method and all methods that this calls without native code in between.

use super::{Item, Merged, Merging, ShownFn};
use crate::seam::CodeKind;
use varid_model::Stack;

/// Merges each native frame of a loop with the managed frames that it executes.
pub(in super::super) fn by_loop(of: Merging<'_>, is_shown: ShownFn<'_>, items: &mut Vec<Item>) {
    let mut merged = Merged::new(of, is_shown, items);
    let mut entered = false;
    for step in of.steps {
        if merged.next().is_none() || !step.kind.is_some_and(CodeKind::executes) {
            merged.push(Item::Native(step.address));
            continue;
        }
        entered = true;
        if of.stack != Stack::Full {
            break;
        }
        while let Some(next) = merged.next() {
            merged.managed();
            if next.is_outermost() {
                break;
            }
        }
    }
    merged.leaf();
    let all_shown = entered && of.stack != Stack::Full;
    let may_lack_frames = !all_shown && (of.stack == Stack::Full || merged.next().is_some());
    if let Some(error) = of.stopped.filter(|_| may_lack_frames) {
        merged.push(Item::Missing(error.reason()));
    }
    merged.callers();
}
