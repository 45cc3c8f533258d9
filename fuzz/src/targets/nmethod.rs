//! Compiled code of a HotSpot, its debug information and its methods are not trusted: they change while they are read.

use crate::bounded_by;
use std::sync::OnceLock;
use varid_testing::hotspot::MadeUpJvm;
use varid_vm::fuzzing::HotSpotCode;

const JDK_17: &str = include_str!("../../../vm/tests/fixtures/hotspot/jdk17.tsv");
const JDK_25: &str = include_str!("../../../vm/tests/fixtures/hotspot/jdk25.tsv");

/// Bytes that are taken whatever the input's size is: what is read at once.
const CONSTANT: usize = 8 << 20;

/// Runs the target on one input: a byte that says which version, and the memory of the code.
pub(super) fn fuzz(bytes: &[u8]) {
    static VMS: OnceLock<[HotSpotCode; 2]> = OnceLock::new();
    let vms = VMS.get_or_init(|| {
        [(JDK_17, 17), (JDK_25, 25)].map(|(tables, major)| {
            let made = MadeUpJvm::new(tables, major);
            HotSpotCode::described_in(&made.bytes).expect("a made-up VM is described")
        })
    });
    let Some((version, code)) = bytes.split_first() else {
        return;
    };
    let vm = &vms[usize::from(*version & 1)];
    bounded_by(bytes, 64, CONSTANT, || vm.look_into(code));
}
