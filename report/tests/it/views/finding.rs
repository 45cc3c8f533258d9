//! Checks the first sentence of a report, and when it has none.

use super::*;
use crate::common::{
    BLIT, FIB, READ, SQRT, decoded, elf, manifest,
    native::{SOURCE, run},
    slot,
};
use std::process::Command;
use varid_model::{Rate, perf};
use varid_recording::{EventDesc, ImageKind, SessionImage};
use varid_report::{ExportFormat, ExportRequest, export};

/// Samples in a library under a method, and in another method.
fn recorded(in_library: u64, elsewhere: u64) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.samples(in_library, (100, 100), &[BLIT, JNI, DRAW + 1, RUN + 1]);
    fixture.samples(elsewhere, (100, 100), &[FIB, RUN + 1]);
    fixture.samples(20, (100, 100), &[SQRT, DRAW + 1, RUN + 1]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn a_report_begins_with_where_most_of_it_is() {
    let fixture = recorded(160, 70);
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    // nativeBlit is also a method of the app, and the innermost one.
    let sentence = "64 % is in libskia.so called from org.example.Balls.nativeBlit: look there, not at the app's dex";
    assert_eq!(text.lines().next(), Some(sentence));
    let report = json(&fixture, &Options::default(), &View::default());
    let expected = serde_json::json!({
        "text": sentence, "percent": 64.0, "layer": "native", "image": "libskia.so",
        "caller": "org.example.Balls.nativeBlit",
    });
    assert_eq!(report["finding"], expected);
}

#[test]
fn a_report_of_few_or_of_even_shares_begins_with_its_head() {
    for fixture in [recorded(100, 60), recorded(120, 120), Fixture::full()] {
        let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
        assert!(text.starts_with("Profile of "), "{text}");
        let report = json(&fixture, &Options::default(), &View::default());
        assert_eq!(report.get("finding"), None);
    }
}

#[test]
fn a_report_of_waits_does_not_begin_with_the_scheduler() {
    let software = |config: u32| {
        let mut manifest = manifest();
        let rate = Rate::Period(1_000_000);
        let kind = perf::PERF_TYPE_SOFTWARE;
        manifest.events.first = EventDesc::new("event", rate, kind, u64::from(config));
        let mut fixture = Fixture::with(manifest);
        // All waits end in this function.
        fixture.kernel_samples(300, (100, 100), &[READ], &[RUN + 1]);
        fixture.writer.finish().unwrap();
        fixture.render(&Options::default(), &View::default(), OutputFormat::Text)
    };
    let text = software(perf::PERF_COUNT_SW_CPU_CLOCK);
    assert!(text.starts_with("100 % is in the kernel"), "{text}");
    let text = software(perf::PERF_COUNT_SW_BPF_OUTPUT);
    assert!(text.starts_with("Profile of "), "{text}");
}

const PROGRAM: u64 = 0x5500_0000_0000;
const LIBC: u64 = 0x7700_0000_0000;
const FILL: u64 = PROGRAM + 0x1010;
const OTHER: u64 = PROGRAM + 0x1110;
const MEMSET: u64 = LIBC + 0x1010;

/// The first line of a report of a program with this name. It has samples in its own function, in the libc and kernel
/// functions that it calls, and in another function of its own.
fn of_program(name: &str, [own, library, kernel, other]: [u64; 4]) -> String {
    let mut fixture = Fixture::bare();
    let file = |name: &str| fixture.dir.path().join(name);
    let (program, libc) = (file(name), file("libc.so.6"));
    let slots = vec![
        slot(0x1000, "void geo::fill<int>(int, char const*)"),
        slot(0x1100, "main"),
    ];
    elf(&program, &[7; 20], slots);
    elf(&libc, &[8; 20], vec![slot(0x1000, "memset")]);
    fixture.map(100, PROGRAM, &program, &[7; 20]);
    fixture.map(100, LIBC, &libc, &[8; 20]);
    fixture.samples(own, (100, 100), &[FILL, OTHER + 1]);
    fixture.samples(library, (100, 100), &[MEMSET, FILL + 1, OTHER + 1]);
    fixture.kernel_samples(kernel, (100, 100), &[READ], &[FILL + 1, OTHER + 1]);
    fixture.samples(other, (100, 100), &[OTHER]);
    fixture.writer.finish().unwrap();
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    text.lines().next().unwrap().to_owned()
}

#[test]
fn of_machine_code_the_function_is_named_and_never_the_program() {
    const FILLS: &str = "void geo::fill<int>(int, char const*)";
    for (samples, expected) in [
        (
            [200, 50, 50, 20],
            format!("62 % is in {FILLS} itself: look at its own code"),
        ),
        (
            [20, 200, 50, 50],
            format!("62 % is in memset of libc.so.6 called from {FILLS}: look at that call first"),
        ),
        (
            [20, 50, 200, 50],
            format!(
                "62 % is in the kernel called from {FILLS}: look at what that asks of the kernel"
            ),
        ),
    ] {
        assert_eq!(of_program("program", samples), expected);
    }
    // Two functions of the program have equal shares, and there is nothing else.
    let even = of_program("program", [150, 0, 0, 150]);
    assert!(even.starts_with("Profile of "), "{even}");
    // The runtime is not named if its methods have no names.
    let runtime = of_program("python3.12", [200, 20, 20, 20]);
    assert!(runtime.starts_with("Profile of "), "{runtime}");
}

/// A program with run-time code with these names, in slots of 256 bytes from `LIBC` on.
fn with_jit(program: &str, functions: &[&str], methods: &[&str]) -> Fixture {
    let mut fixture = Fixture::bare();
    let file = fixture.dir.path().join(program);
    let jit = fixture.writer.symbols().join("jit-100.elf");
    let slots = |names: &[&str]| {
        let places = (0x1000..).step_by(0x100);
        let slots = places.zip(names).map(|(offset, name)| slot(offset, name));
        slots.collect::<Vec<_>>()
    };
    elf(&file, &[7; 20], slots(functions));
    elf(&jit, &[9; 20], slots(methods));
    fixture.writer.manifest_mut().images = vec![SessionImage {
        path: "[jit]".to_owned(),
        build_id: String::new(),
        kind: ImageKind::Remap,
        layer: Layer::App,
        substitute: Some("symbols/jit-100.elf".to_owned()),
        location: None,
    }];
    fixture.map(100, PROGRAM, &file, &[7; 20]);
    fixture.map(100, LIBC, &jit, &[9; 20]);
    fixture
}

fn first_line(fixture: &Fixture) -> String {
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    text.lines().next().unwrap().to_owned()
}

#[test]
fn of_a_runtime_the_method_is_named_by_its_total() {
    let methods = ["JS:*sorts /srv/app.js:3:1", "JS:~ /srv/app.js:1:1"];
    let mut fixture = with_jit("node", &["Builtins_Sort", "main"], &methods);
    let outer = LIBC + 0x1110;
    fixture.samples(200, (100, 100), &[FILL, MEMSET + 1, outer + 1, OTHER + 1]);
    fixture.samples(40, (100, 100), &[MEMSET, outer + 1, OTHER + 1]);
    fixture.samples(60, (100, 100), &[FILL, outer + 1, OTHER + 1]);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    let name = "JS:*sorts /srv/app.js:3:1";
    let expected = serde_json::json!({
        "text": format!("80 % is in {name} and what it calls: look there first"),
        "percent": 80.0, "layer": "app", "symbol": name, "with_callees": true,
    });
    assert_eq!(report["finding"], expected);
    assert_eq!(shares(&report, "layers", "layer")["vm"], (260, 300));
}

#[test]
fn ways_in_which_v8_has_compiled_a_function_are_one_in_the_sentence() {
    let ways = ["~", "^", "*"].map(|way| format!("JS:{way}work /srv/app.js:4:14"));
    let [interpreted, compiled, optimised] = ways.each_ref().map(String::as_str);
    let methods = [interpreted, compiled, optimised, "JS:~rest /srv/app.js:9:1"];
    let mut fixture = with_jit("node", &["Builtins_Sort"], &methods);
    for (method, samples) in [(0u64, 60), (1, 130), (2, 80), (3, 30)] {
        let leaf = LIBC + 0x1010 + method * 0x100;
        fixture.samples(samples, (100, 100), &[leaf, FILL + 1]);
    }
    // One variant is below another, as in a recursive function.
    fixture.samples(30, (100, 100), &[MEMSET, MEMSET + 0x201, FILL + 1]);
    fixture.writer.finish().unwrap();
    assert_eq!(
        first_line(&fixture),
        "91 % is in work /srv/app.js:4:14 itself: look at its own code"
    );
    // A page opens the variant with the most samples.
    let options = Options {
        sample_table: true,
        ..Options::default()
    };
    let (profile, request) = (fixture.profile(&options), ExportRequest::default());
    let mut page = Vec::new();
    export(
        &profile,
        &request,
        ExportFormat::named("html").unwrap(),
        &mut page,
    )
    .unwrap();
    let page: serde_json::Value = serde_json::from_str(&decoded(&page, 0)).unwrap();
    let symbol = page["header"]["finding"]["symbol"].as_u64().unwrap();
    let symbol = usize::try_from(symbol).unwrap();
    assert_eq!(page["symbols"][symbol][0], compiled);
}

#[test]
fn some_methods_of_a_jit_do_not_make_machine_code_a_runtime() {
    let functions = ["radix::sort(int)", "main"];
    let mut fixture = with_jit("sorter", &functions, &["JS:*work /srv/app.js:4:14"]);
    let libm = fixture.dir.path().join("libm.so.6");
    elf(&libm, &[8; 20], vec![slot(0x1000, "sin")]);
    fixture.map(100, LIBC + 0x10_0000, &libm, &[8; 20]);
    let sin = LIBC + 0x10_1010;
    fixture.samples(270, (100, 100), &[sin, FILL + 1, OTHER + 1]);
    fixture.samples(30, (100, 100), &[MEMSET, OTHER + 1]);
    fixture.writer.finish().unwrap();
    assert_eq!(
        first_line(&fixture),
        "90 % is in sin of libm.so.6 called from radix::sort(int): look at that call first"
    );
}

#[test]
fn a_program_that_is_only_called_as_a_runtime_is_machine_code() {
    let expected = "62 % is in void geo::fill<int>(int, char const*) itself: look at its own code";
    assert_eq!(of_program("node", [200, 50, 50, 20]), expected);
}

#[test]
fn a_runtime_that_names_nothing_is_told_how_it_would() {
    let text = |program: &str, functions: &[&str], methods: &[&str]| {
        let mut fixture = with_jit(program, functions, methods);
        fixture.samples(40, (100, 100), &[MEMSET, FILL + 1]);
        fixture.samples(10, (100, 100), &[FILL]);
        fixture.writer.finish().unwrap();
        fixture.render(&Options::default(), &View::default(), OutputFormat::Text)
    };
    let node = text("node", &["Builtins_Sort"], &["Script:x"]);
    let advice = "\
methods       50, 100.00 %, run in V8, which names none of its program's functions
              start it as node --perf-basic-prof --interpreted-frames-native-stack: varid help node-python
";
    assert!(node.contains(advice), "{node}");
    let python = text("python3.11", &["_PyEval_EvalFrameDefault"], &["other"]);
    let advice = "start it as python -X perf (3.12 or later): varid help node-python\n";
    assert!(python.contains(advice), "{python}");
    for named in [
        text("node", &["Builtins_Sort"], &["JS:~work /srv/app.js:4:14"]),
        text("python3.12", &["PyMain"], &["py::work:/srv/app.py"]),
        // It is another program of that name.
        text("node", &["geo::fill"], &["other"]),
    ] {
        assert!(!named.contains("start it as"), "{named}");
    }
}

#[test]
fn the_hottest_line_of_a_function_is_the_one_that_addr2line_finds() {
    let mut fixture = Fixture::bare();
    let dir = fixture.dir.path().to_owned();
    let (source, program) = (dir.join("program.c"), dir.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    run(Command::new("cc")
        .args(["-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o"])
        .args([&program, &source]));
    let symbols = run(Command::new("nm").arg("-S").arg(&program));
    let of_leaf = symbols
        .lines()
        .find(|line| line.ends_with(" T leaf"))
        .unwrap();
    let mut numbers = of_leaf
        .split(' ')
        .map(|field| u64::from_str_radix(field, 16));
    let (start, len) = (
        numbers.next().unwrap().unwrap(),
        numbers.next().unwrap().unwrap(),
    );
    let build_id = run(Command::new("readelf").arg("-n").arg(&program));
    let build_id = build_id.split("Build ID: ").nth(1).unwrap();
    let build_id = build_id.split_whitespace().next().unwrap();
    let build_id: Vec<u8> = (0..build_id.len() / 2)
        .map(|byte| u8::from_str_radix(&build_id[2 * byte..2 * byte + 2], 16).unwrap())
        .collect();
    fixture.map(100, PROGRAM, &program, &build_id);
    let hottest = start + len - 1;
    fixture.samples(150, (100, 100), &[PROGRAM + hottest]);
    for address in start..hottest {
        fixture.samples(2, (100, 100), &[PROGRAM + address]);
    }
    fixture.writer.finish().unwrap();
    let place = run(Command::new("addr2line")
        .args(["-i", "-e"])
        .arg(&program)
        .arg(format!("{hottest:#x}")));
    let place = place.lines().next().unwrap().rsplit('/').next().unwrap();
    let place = place.split(' ').next().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(report["finding"]["symbol"], "leaf");
    assert_eq!(report["finding"]["line"], place);
    let text = report["finding"]["text"].as_str().unwrap();
    assert!(
        text.contains(&format!(" % at {place}: look at its own code")),
        "{text}"
    );
}
