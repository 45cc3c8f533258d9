//! Executes programs for RISC-V by both engines, and prints millions of instructions in a second of user time: `speed PROGRAM...`. With
//! `interpret=no` before them, only by translated code; with `target=NAME`, on another processor than Ibex.

#![allow(clippy::expect_used, clippy::arithmetic_side_effects)]

use std::{env, fs, io};

use nix::sys::resource::{UsageWho, getrusage};
use varid_machine::{Interpreter, Limits, Machine, Stop, Streams, Timing};
use varid_processor::Processor;
use varid_riscv::Image;

fn main() {
    let (mut interprets, mut target) = (true, "ibex".to_owned());
    let mut paths = Vec::new();
    for argument in env::args().skip(1) {
        match argument.split_once('=') {
            Some(("interpret", value)) => interprets = value != "no",
            Some(("target", name)) => name.clone_into(&mut target),
            _ => paths.push(argument),
        }
    }
    let processor = Processor::named(&target, &[]).expect("a shipped processor");
    for path in paths {
        let file = fs::read(&path).expect("a file");
        let image = Image::parse(&file).expect("a program");
        let translated = measure(&image, &processor, varid_translate::run);
        let mut line = format!("{path}\t{translated}");
        if interprets {
            let interpret = |it: &mut Interpreter, timing: &mut Timing<'_>| it.run(timing);
            line += &format!("\t{}", measure(&image, &processor, interpret));
        }
        println!("{line}");
    }
}

fn measure(
    image: &Image,
    processor: &Processor,
    run: impl Fn(&mut Interpreter, &mut Timing<'_>) -> Stop,
) -> String {
    let streams = Streams {
        input: Box::new(io::empty()),
        output: Box::new(io::sink()),
        error: Box::new(io::sink()),
    };
    let limits = Limits {
        memory: 64 << 20,
        folder: None,
        clock_hz: 100_000_000,
    };
    let machine = Machine::load(image, &[b"program"], streams, &limits).expect("room");
    let mut interpreter = Interpreter::new(machine, u64::MAX);
    let mut timing = Timing::new(processor);
    let before = user_seconds();
    let stop = run(&mut interpreter, &mut timing);
    let seconds = user_seconds() - before;
    let instructions = interpreter.counts().instructions;
    let speed = instructions as f64 / seconds / 1e6;
    format!("{stop:?} {instructions} instructions, {seconds:.3} s, {speed:.0} million/s")
}

fn user_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
    let time = usage.user_time();
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}
