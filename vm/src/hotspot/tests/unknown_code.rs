//! Where do the stacks end that lead through code of which nothing is known any more?

use super::{JDK_17, of};
use crate::ManagedProcess;
use crate::hotspot::vm::HotSpotVm;
use crate::seam::{Methods, VmCompiler};
use std::rc::Rc;
use varid_model::{Address, FrameAddress, MonotonicNs, Period, Reason, Regs, Tid};
use varid_process::AddressSpace;
use varid_shim::CapturedSample;
use varid_unwind::{CodeRule, NativeFrame, Reached};

fn sample(managed: &ManagedProcess) -> CapturedSample {
    CapturedSample {
        time: MonotonicNs::new(1),
        pid: managed.pid(),
        tid: Tid::new(2),
        cpu: 0,
        flags: 0,
        period: Period::new(1),
        ip: Address::default(),
        regs: Regs::default(),
        frames: Default::default(),
        kernel: Vec::new(),
        stack_addr: Address::default(),
        stack: Vec::new(),
        holes: Default::default(),
        interrupted: Default::default(),
        beyond: Default::default(),
        code: Default::default(),
        allocated: None,
    }
}

/// The frame pointer may have any value in such code.
#[test]
fn they_end_there_and_go_on_by_conventions_elsewhere() {
    let jvm = of(JDK_17, 17);
    let code = jvm.code_heaps[0].reserved.clone();
    let vm = HotSpotVm::new(Rc::new(jvm));
    let mut managed = ManagedProcess::made_up(AddressSpace::default(), None);
    let sample = sample(&managed);
    let frame = |address| NativeFrame {
        address: FrameAddress::Return(address),
        sp: Address::default(),
        regs: Regs::default(),
        reached: Reached::Unwound,
    };
    let inside = frame(code.start.wrapping_add(0x400));
    let rule = vm.unwind_rule(&inside, &sample, managed.process());
    assert!(matches!(rule, Some(CodeRule::NotRead)), "{rule:?}");
    let methods = vm.native_frame(&inside, &sample, &mut managed);
    assert!(matches!(methods, Some(Err(Reason::VmGone))), "{methods:?}");
    let outside = frame(code.end.wrapping_add(1));
    let rule = vm.unwind_rule(&outside, &sample, managed.process());
    assert!(rule.is_none(), "{rule:?}");
}
