//! Descriptions are read, and those that contradict themselves are refused, with line and key.

use crate::{
    Class, Cycles, Duration, Error, Predictor, Processor, SHIPPED, Setting, Steps, Variation,
};

/// The smallest description.
const SMALL: &str = "target = 't'\n[cycles]\nalu = 1\nload = 2\nstore = 2\nbranch = 1\njump = 1\n";

fn settings(texts: &[&str]) -> Vec<Setting> {
    let texts = texts.iter();
    texts.map(|text| Setting::parse(text).unwrap()).collect()
}

fn named(name: &str, texts: &[&str]) -> Processor {
    Processor::named(name, &settings(texts)).unwrap()
}

fn refused(text: &str) -> String {
    let error = Processor::parse("t.toml", text, &[]).unwrap_err();
    error.to_string()
}

#[test]
fn the_processors_of_varid_are_right() {
    for shipped in SHIPPED {
        let read = named(shipped.name, &[]);
        assert_eq!(read.name, shipped.name);
    }
    let ibex = named("ibex", &[]);
    assert_eq!(
        ibex.instructions.duration(Class::MultiplyHigh),
        Some(Duration::fixed(4))
    );
    assert_eq!(
        ibex.parameters[0],
        ("branch_predictor".to_owned(), "false".to_owned())
    );
}

#[test]
fn a_parameter_changes_what_depends_on_it() {
    let ibex = named("ibex", &["rv32m=single-cycle", "branch_target_alu=true"]);
    let duration = |class| ibex.instructions.duration(class);
    assert_eq!(duration(Class::Multiply), Some(Duration::fixed(1)));
    assert_eq!(ibex.transfers.branch, 1);
    let without = named("ibex", &["rv32m=none"]);
    assert_eq!(without.instructions.duration(Class::Divide), None);
    assert_eq!(without.instructions.duration(Class::Remainder), None);
    // An alias, and what two parameters together change.
    let serial = named(
        "picorv32",
        &[
            "barrel_shifter=false",
            "two_stage_shift=false",
            "fast_mul=false",
        ],
    );
    let shift = serial.instructions.duration(Class::ShiftRegister).unwrap();
    assert_eq!(shift.varies, Variation::ShiftSteps(Steps::Ones));
    let one_port = named(
        "picorv32",
        &["barrel_shifter=false", "dualport=false", "div=false"],
    );
    let shift = one_port.instructions.duration(Class::ShiftRegister);
    let steps = Variation::ShiftSteps(Steps::FoursThenOnes);
    assert_eq!(
        shift,
        Some(Duration {
            cycles: 5,
            varies: steps
        })
    );
    let multiply = one_port.instructions.duration(Class::MultiplyHigh);
    assert_eq!(multiply, Some(Duration::fixed(7)));
    assert_eq!(one_port.instructions.duration(Class::Divide), None);
    assert_eq!(
        serial.instructions.duration(Class::Multiply),
        Some(Duration::fixed(40))
    );
}

#[test]
fn a_setting_is_put_over_parameters() {
    let vexriscv = named("vexriscv", &["dcache.size=8K", "dcache.ways=2"]);
    let geometry = vexriscv.dcache.unwrap().geometry;
    assert_eq!(
        (geometry.size, geometry.ways, geometry.sets()),
        (8192, 2, 128)
    );
    let ibex = named("ibex", &["predictor.kind=bimodal", "predictor.entries=64"]);
    assert_eq!(
        ibex.prediction.predictor,
        Predictor::Bimodal { entries: 64 }
    );
    for (setting, expected) in [
        (
            "rv32m=quick",
            "--set: rv32m: 'quick' is not one of none, slow, fast, single-cycle",
        ),
        (
            "rv32n=slow",
            "--set: rv32n: no parameter; is 'rv32m' meant?",
        ),
        ("cycles.alu=0", "--set: cycles.alu: 0 is neither"),
        (
            "cycles.alo=1",
            "--set: cycles.alo: unknown; is 'alu' meant?",
        ),
        (
            "target.x=1",
            "--set: target.x: 'target' is a value, not a table",
        ),
    ] {
        let error = Processor::named("ibex", &settings(&[setting])).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_line_and_key() {
    assert!(Processor::parse("t.toml", SMALL, &[]).is_ok());
    for (more, expected) in [
        ("mul = 0\n", "t.toml:8: cycles.mul: 0 is neither a number"),
        ("mul = 1e9\n", "t.toml:8: cycles.mul: 1e9 is neither"),
        ("mul = 200000\n", "t.toml:8: cycles.mul: 200000 is neither"),
        (
            "mul = { cycles = 0 }\n",
            "t.toml:8: cycles.mul: 'cycles' is not",
        ),
        (
            "mul = { cycles = 2, zero_divisor = 1 }\n",
            "t.toml:8: cycles.mul: 'zero_divisor' is of divisions",
        ),
        (
            "div = { cycles = 2, zero_divisor = 1, leading_zero = 1 }\n",
            "t.toml:8: cycles.div: 'leading_zero' is unknown, or contradicts another key",
        ),
        (
            "shift = { cycles = 2, steps = 'twos' }\n",
            "t.toml:8: cycles.shift: 'steps' is not one of ones",
        ),
        ("load_use = 1\n", "t.toml:8: cycles.load_use: unknown"),
        (
            "[result_delay]\nalu = -1\n",
            "t.toml:9: result_delay.alu: -1 is not",
        ),
        (
            "[predictor]\nkind = 'static'\n",
            "t.toml:9: predictor.kind: 'static' is not one of",
        ),
        (
            "[predictor]\nentries = 4\n",
            "t.toml:9: predictor.entries: only the predictor 'bimodal'",
        ),
        (
            "[predictor]\nkind = 'bimodal'\nentries = 3\n",
            "t.toml:10: predictor.entries: 3 is not a power of two",
        ),
        (
            "[transfers]\nbranch = 1\n",
            "t.toml:8: transfers: unknown; is 'transfer' meant?",
        ),
        (
            "[dcache]\nsize = 64\n",
            "t.toml:9: dcache.line: it is missing",
        ),
        (
            "[dcache]\nline = 32\nsize = 96\nmiss = { word = 1 }\n",
            "t.toml:10: dcache.size: 96 is not 1 ways of lines of 32 bytes",
        ),
        (
            "[dcache]\nline = 24\nsize = 96\nmiss = { word = 1 }\n",
            "t.toml:9: dcache.line: 24 is not a power of two",
        ),
        (
            "[dcache]\nline = 32\nsize = 1_000_000_000\nmiss = { word = 1 }\n",
            "t.toml:10: dcache.size: 1000000000 is not a whole number from 0 to",
        ),
        (
            "[icache]\nline = 32\nsize = 64\nways = 0\nmiss = { word = 1 }\n",
            "t.toml:11: icache.ways: a cache has at least one way",
        ),
        (
            "[icache]\nline = 32\nsize = 64\nmiss = { word = 0 }\n",
            "t.toml:11: icache.miss: a miss that takes no cycle is a hit",
        ),
        (
            "[dcache]\nline = 32\nsize = 64\nmiss = { word = 1 }\nwrite_back = 9\n",
            "t.toml:12: dcache.write_back: lines are written back only with",
        ),
        (
            "[parameters]\nx = {}\n",
            "t.toml:9: parameters.x: it has no 'default'",
        ),
        (
            "[parameters]\nx = { default = 1, values = [2] }\n",
            "t.toml:9: parameters.x: its default 1 is not one of its values",
        ),
        (
            "[[when]]\nparameters = { y = 1 }\n",
            "t.toml:9: when.parameters.y: no such parameter",
        ),
        (
            "[[when]]\ncycles = { alu = 2 }\n",
            "t.toml:8: when.parameters: not a table of",
        ),
    ] {
        let error = refused(&format!("{SMALL}{more}"));
        assert!(error.starts_with(expected), "{more}{error}");
    }
    let missing = refused("target = 't'\n[cycles]\nalu = 1\n");
    assert!(
        missing.starts_with("t.toml:3: cycles.load: every processor"),
        "{missing}"
    );
    assert!(matches!(
        Processor::parse("t.toml", "x = ", &[]),
        Err(Error::Description(varid_description::Error::Syntax { .. }))
    ));
}

#[test]
fn a_name_that_is_no_processor_says_what_would_be_one() {
    let error = |name| Processor::named(name, &[]).unwrap_err().to_string();
    assert!(error("ibix").contains("--targets"));
    assert!(error("none/x.toml").contains("cannot read none/x.toml"));
    assert_eq!(Cycles(u64::MAX).plus(Cycles(1)), Cycles(u64::MAX));
}
