//! Runs the script of a page in Node and compares its results with the page's data.

use std::{fs, process::Command};

use varid_model::{Pid, Tid};
use varid_recording::SessionRecord;
use varid_report::{ExportFormat, ExportRequest, NameOptions, Options, export};

use crate::common::{DRAW, Fixture, RUN, elf, slot};

const SCRIPT: u64 = 0x7500_0000_0000;

/// Two threads of a pool. Three quarters of the samples are in a method, the others in a function compiled by V8.
fn recording() -> Fixture {
    let mut fixture = Fixture::new();
    for (tid, name) in [(101, "work-1"), (102, "work-2")] {
        let (time, name) = (fixture.tick(), name.to_owned());
        fixture.write(&SessionRecord::Comm {
            time,
            pid: Pid::new(100),
            tid: Tid::new(tid),
            exec: false,
            name,
        });
    }
    let file = fixture.dir.path().join("script");
    let name = "JS:*geo.Grid.fill /srv/app/grid.js:4:14";
    elf(&file, &[9; 20], vec![slot(0x1000, name)]);
    fixture.map(100, SCRIPT, &file, &[9; 20]);
    fixture.samples(300, (100, 101), &[DRAW, RUN + 1]);
    fixture.samples(100, (100, 102), &[SCRIPT + 0x1010]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn a_page_s_script_computes_what_the_page_says() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: a page's script is not run: there is no node");
        return;
    }
    let options = Options {
        sample_table: true,
        names: NameOptions {
            lines: true,
            ..NameOptions::default()
        },
        ..Options::default()
    };
    let fixture = recording();
    let mut page = Vec::new();
    let (profile, request) = (fixture.profile(&options), ExportRequest::default());
    export(
        &profile,
        &request,
        ExportFormat::named("html").unwrap(),
        &mut page,
    )
    .unwrap();
    let file = fixture.dir.path().join("page.html");
    fs::write(&file, page).unwrap();
    let checks = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/logic.mjs");
    let output = Command::new("node").arg(checks).arg(&file).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
