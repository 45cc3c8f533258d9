//! How are native frames merged with managed frames that lie on a stack of their own, as Dalvik's do?
//!
//! Addresses on two stacks cannot be compared. The order follows from the interpreter: one native frame of its loop executes a
//! method and all methods that this calls without native code in between.

use super::chain::Chain;
use super::missing::reason;
use crate::seam::{CodeKind, Vm};
use varid_model::Stack;
use varid_shim::{CapturedSample, ManagedFrame};
use varid_unwind::NativeStack;

impl Chain<'_> {
    /// Native frames, and managed ones, whose loops they are.
    pub(super) fn merge_by_loop(
        &mut self,
        record: &CapturedSample,
        native: &NativeStack,
        managed: &[ManagedFrame],
        vm: &dyn Vm,
        stack: Stack,
    ) {
        let mut rest = managed;
        let mut entered = false;
        for frame in &native.frames {
            if rest.is_empty() || !vm.code_at(frame.lookup()).is_some_and(CodeKind::executes) {
                self.native(frame.address);
                continue;
            }
            entered = true;
            if stack != Stack::Full {
                break;
            }
            while let Some((next, after)) = rest.split_first() {
                self.managed(next);
                rest = after;
                if next.is_outermost() {
                    break;
                }
            }
        }
        while let Some((next, after)) = rest.split_first().filter(|_| self.leaf) {
            self.managed(next);
            self.native_stretch |= next.is_outermost();
            rest = after;
        }
        self.leaf_at_least();
        let all_shown = entered && stack != Stack::Full;
        if let Some(error) = native
            .stopped
            .as_ref()
            .filter(|_| !all_shown && (stack == Stack::Full || !rest.is_empty()))
        {
            self.missing(reason(error));
        }
        self.callers(record.tid.get(), rest);
    }
}
