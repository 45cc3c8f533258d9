//! Checks that the sampled instruction of another recorder's precise event is in its own function, wherever the
//! interrupt came.

use super::*;
use crate::common::{FIB, KERNEL, READ};
use varid_model::{Period, Precision, Tid};
use varid_recording::{CpuMode, NO_UID, Sample};
use varid_report::{ExportFormat, ExportRequest, export};

#[test]
fn the_function_of_the_interrupt_is_left_out_kept_or_the_caller() {
    let mut fixture = Fixture::new();
    let user = CpuMode::User;
    for (mode, ip, kernel, user) in [
        // The same function.
        (user, DRAW, &[][..], &[DRAW + 8, RUN + 1][..]),
        // It has returned to the function of the interrupt.
        (user, DRAW, &[], &[RUN + 8, FIB + 1]),
        // It has called the function of the interrupt.
        (user, FIB, &[], &[DRAW, FIB + 5, RUN + 1]),
        (CpuMode::Kernel, READ, &[KERNEL + 0x11], &[RUN + 8]),
    ] {
        let time = fixture.tick();
        let addresses = |numbers: &[u64]| numbers.iter().copied().map(Address::new).collect();
        let sample = Sample {
            event: 0,
            time,
            pid: Pid::new(100),
            tid: Tid::new(100),
            cpu: 0,
            period: Period::new(1),
            original_ip: Address::new(ip),
            interrupt: None,
            mode,
            uid: NO_UID,
            frame: None,
            precision: Precision::Exact,
            kernel: addresses(kernel),
            user: addresses(user),
        };
        let written = fixture
            .writer
            .write_recorded_sample(&sample.borrowed(), None);
        written.unwrap();
    }
    fixture.writer.finish().unwrap();
    let mut out = Vec::new();
    let profile = fixture.profile(&Options::default());
    export(
        &profile,
        &ExportRequest::default(),
        ExportFormat::named("folded").unwrap(),
        &mut out,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    let text = text.replace("org.example.Balls.", "");
    let mut stacks: Vec<_> = text.lines().collect();
    stacks.sort_unstable();
    assert_eq!(
        stacks,
        [
            "balls;fib(int);run;draw 1",
            "balls;run;draw 1",
            "balls;run;entry;sys_read 1",
            "balls;run;fib(int) 1",
        ]
    );
}
