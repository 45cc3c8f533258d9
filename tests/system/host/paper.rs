//! Tests that the document of the paper's evaluation matches measurements of the board.

use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

const WORKLOADS: [&str; 4] = ["math", "cradle", "vm", "scene"];
/// Nanoseconds of two of the app's calls (1,000,000 without a profiler), and of the rest of the command.
const RECORDERS: [(&str, u64, u64); 7] = [
    ("none", 1_000_000, 500_000),
    ("perf", 1_005_000, 700_000),
    ("load-from-dex", 1_000_100, 500_000),
    ("none-for-short", 1_000_000, 300_000),
    ("tunnel", 1_029_000, 500_000),
    ("method-invoke", 2_509_000, 500_000),
    ("varid", 1_009_000, 900_000),
];
/// Instructions of each call in the interpreter.
const SHADOW_RECORDERS: [(&str, u64); 9] = [
    ("none", 1000),
    ("off", 1020),
    ("own", 1028),
    ("hash", 1090),
    ("perf", 1005),
    ("varid", 1040),
    ("varid-hash", 1100),
    ("counted", 1240),
    ("logged", 9000),
];
const CALLS_A_TIME: u64 = 10_000;
const NANOSECONDS: u64 = 2;

fn times(slower: u64) -> Result<String> {
    let mut text = "Linux\n".to_owned();
    for workload in WORKLOADS {
        for (recorder, calls, rest) in RECORDERS {
            let (calls, half) = (calls + slower, (calls + slower) / 2);
            let total = calls + half + rest;
            let (mut second, mut third) = (half, calls - half);
            // The calls of this recorder vary around the unprofiled ones, so the cost of dim cannot be determined.
            if (workload, recorder) == ("vm", "load-from-dex") {
                (second, third) = (second - 10_000, third + 10_000);
            }
            writeln!(
                text,
                "PAPER time {workload} {recorder} 2 {total} {half} {second} {third}"
            )?;
        }
        for (recorder, instructions) in SHADOW_RECORDERS {
            let each = instructions * CALLS_A_TIME * NANOSECONDS;
            let total = 4 * each;
            writeln!(
                text,
                "PAPER tunnel {workload} {recorder} 44 {total} {each} {each} {each}"
            )?;
        }
    }
    Ok(text)
}

fn layers() -> Result<String> {
    let mut text = String::new();
    for workload in WORKLOADS {
        for (image, samples) in [
            ("libart.so.0", 900),
            ("[kernel.kallsyms]", 60),
            ("libc.so.6", 40),
        ] {
            writeln!(text, "PAPER perf {workload} {samples} {image}")?;
        }
        for line in ["layer,self", "app,700", "vm,200", "kernel,60", "native,40"] {
            writeln!(text, "PAPER varid {workload} layer {line}")?;
        }
        for line in ["layer,image,self", "app,app.dex,700", "vm,libart.so.0,200"] {
            writeln!(text, "PAPER varid {workload} image {line}")?;
        }
        for line in [
            "pc,vma,method,class,file,line,layer,map_start,map_end,map_mode,map_file,total",
            "7,0x7f01,draw,Lorg/example/Ball;,Ball.java,43,app,0x7f00,0x8000,r--p,/a/app.dex,10",
            "9,0x7f09,draw,Lorg/example/Ball;,Ball.java,44,app,0x7f00,0x8000,r--p,/a/app.dex,9",
            "1,0x6001,fill,Lorg/example/Canvas;,,-2,app,0x6000,0x6100,,/a/remap.elf,30",
            "1,0x9001,fill,,,-2,native,0x9000,0x9100,r-xp,/a/libdraw.so,30",
        ] {
            writeln!(text, "PAPER varid {workload} dim {line}")?;
        }
        for line in [
            "layer,symbol,relation,other_layer,other_image,other_symbol,samples,percent",
            "app,org.example.scene.Main.run,callee,app,app.dex,Balls.draw,600,60.0",
            "app,Balls.draw,callee,native,libdraw.so,fill,250,41.6",
            "app,Balls.draw,callee,app,app.dex,Balls.rest,20,2.0",
            "native,_start,callee,native,libc.so.6,main,300,100.0",
        ] {
            writeln!(text, "PAPER calls {workload} {line}")?;
        }
        writeln!(text, "PAPER code {workload} 12345")?;
        writeln!(text, "PAPER framework {workload} 34404")?;
        for length in [1, 2, 4, 7, 10] {
            writeln!(text, "PAPER size {workload} load-from-dex {length} 40000")?;
            writeln!(text, "PAPER size {workload} all-else {length} 60000")?;
            let grows = length * 70_000;
            writeln!(text, "PAPER size {workload} perf.data {length} {grows}")?;
            let invokes = 40 + length * 250;
            writeln!(text, "PAPER invokes {workload} {length} {invokes}")?;
            writeln!(text, "PAPER size {workload} method-invoke {length} {grows}")?;
        }
    }
    Ok(text)
}

fn paper(folder: &Path, times: &str, again: &str, layers: &str) -> Result<Output> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/paper.py");
    let consoles = [("times", times), ("again", again), ("layers", layers)];
    let mut command = Command::new(script);
    for (name, text) in consoles {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        command.arg(path);
    }
    command
        .arg("6.1.0-board")
        .output()
        .context("scripts/paper.py")
}

#[test]
fn figures_become_tables_and_what_is_not_met_is_said() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let times = times(0)?;
    let output = paper(folder.path(), &times, &times, &layers()?)?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in [
        // The barrier and the bridge.
        "| 0xBench Math | plain perf | not seen | not seen | 90.0 % | 4.0 % | 6.0 % |",
        "| 0xBench Math | varid | 70.0 % | 0.0 % | 20.0 % | 4.0 % | 6.0 % |",
        "| 7 | 0x7f01 | `draw` | `Lorg/example/Ball;` | `Ball.java` | 43 | 0x7f00-0x8000 r--p `app.dex` |",
        "| 1 | 0x6001 | `fill` | `Lorg/example/Canvas;` | `-` | -2 | 0x6000-0x6100 ---- `remap.elf` |",
        // Calls below 5 % are omitted.
        "| `org.example.scene.Main.run` | `Balls.draw` | `app.dex` | 600 | 60.0 % |",
        "    \"Balls.draw\" -> \"fill\" [label=\"250\"];",
        "Here of 1000 samples of the app's method 25.0 % are in the native library",
        "| Newton's Cradle | 12,345 | method-invoke: log of events | 70,000 | 140,000 | 280,000 | 490,000 | 700,000 |",
        "adds 34,404 bytes",
        "| load-from-dex, of the app's instructions: at most 0.1 % | 0.0100 % (0xBench Math) | yes |",
        "| load-from-dex, of the app's instructions, where calls differ: at most 0.1 % | 0.0100 % (0xBench VM) | not told: calls differ by ±4.00 % |",
        // The same number of instructions for each call of a method.
        "| the same, in the interpreter, no dim in it | 1,000 | 1,000 | 1,000 | 1,000 |",
        "+9.00 %, 90 instructions",
        "0xBench Math 20.0 of 2 %",
        "| tunnel, the method's own address, beside dim switched off: at most 1.0 % | 0.80 % (0xBench Math) | yes |",
        "| tunnel, the method's own address, beside no dim: at most 1.0 % | 2.80 % (0xBench Math) | no |",
        "| tunnel, R = i + H0, beside dim switched off: at most 1.0 % | 7.00 % (0xBench Math) | no |",
        "| tunnel by ART's instrumentation, beside load-from-dex: at most 1.0 % | 2.00 % (0xBench Math) | no |",
        "| method-invoke with its log: at least 35 % (printed) | 150.00 % (0xBench Math) | yes |",
        // The whole command, compared with one with as few calls.
        "nobody profiles, 3 calls, for the next two",
    ] {
        ensure!(text.contains(line), "no line {line:?} in\n{text}");
    }
    ensure!(
        !text.contains("Balls.rest") && !text.contains("_start"),
        "{text}"
    );
    Ok(())
}

#[test]
fn boots_that_differ_and_figures_that_are_missing_make_no_document() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (first, layers) = (times(0)?, layers()?);
    let says = |output: Output, what: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && output.stdout.is_empty());
        ensure!(said.contains(what), "{said}");
        Ok(())
    };
    let differ = paper(folder.path(), &first, &times(2)?, &layers)?;
    says(differ, "the two boots differ")?;
    let without: Vec<_> = first
        .lines()
        .filter(|line| !line.contains("vm tunnel"))
        .collect();
    let without = without.join("\n");
    let missing = paper(folder.path(), &without, &without, &layers)?;
    says(missing, "no figures of [('vm', 'tunnel')]")?;
    let rarely = layers.replace("invokes scene 2 540", "invokes scene 2 490");
    let rarely = paper(folder.path(), &first, &first, &rarely)?;
    says(
        rarely,
        "scene calls a method each 1250 instructions, the interpreter each 1000",
    )
}

/// Runs the evaluation with this program as varid and without a board. It succeeds and leaves the document unchanged.
fn skipped(varid: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("evaluation.md");
    std::fs::write(&document, "as it was")?;
    let release = folder.path().join("release");
    std::fs::create_dir(&release)?;
    std::os::unix::fs::symlink(varid, release.join("varid"))?;
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/paper.sh"))
        .args([folder.path(), &document])
        // The port has no server, and the folder has no cache.
        .env("VARID_DEBIAN_MIRROR", "http://127.0.0.1:1/debian")
        .env_remove("http_proxy")
        .output()
        .context("scripts/paper.sh")?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success(), "{said}");
    ensure!(std::fs::read_to_string(&document)? == "as it was");
    Ok(said)
}

#[test]
fn without_a_board_or_permission_the_document_stays_as_it_is() -> Result<()> {
    let said = skipped("/bin/true")?;
    ensure!(said.contains("cannot be fetched"), "{said}");
    ensure!(
        said.contains("paper: skipped: there is no board here"),
        "{said}"
    );
    let said = skipped("/bin/false")?;
    ensure!(
        said.contains("paper: skipped: nothing can be recorded here"),
        "{said}"
    );
    Ok(())
}
