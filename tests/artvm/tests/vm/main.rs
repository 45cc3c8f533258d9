//! Does artvm run dex code as a VM should? A tiny app, assembled here, is run in it.

#[cfg(target_arch = "x86_64")]
mod code;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const MAIN: &str = "org.example.vm.Main";

/// What chooses a VM on artvm's command line.
type Vm = &'static [&'static str];

/// The VMs that artvm starts: ART 11, and ART 14 with each of its interpreters.
const VMS: [Vm; 3] = [
    &["--art", "11"],
    &["--art", "14"],
    &["--art", "14", "--int"],
];

/// A test of every VM. The last one that is named in the test's output is the one that failed.
fn each_vm(test: impl Fn(Vm) -> Result) -> Result {
    for vm in VMS {
        println!("{vm:?}");
        test(vm)?;
    }
    Ok(())
}

/// The app's files, built once for all tests of this process.
struct App {
    dex: PathBuf,
    library: PathBuf,
    agent: PathBuf,
}

/// Builds what artvm needs beside it, and the app.
fn app() -> Result<&'static App> {
    static APP: OnceLock<std::result::Result<App, String>> = OnceLock::new();
    APP.get_or_init(|| build().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|error| error.clone().into())
}

fn build() -> Result<App> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artvm-app");
    std::fs::create_dir_all(&folder)?;
    let beside = beside()?;
    succeed(Command::new(sources.join("../bootclasspath/build.sh")).arg(beside))?;
    let target = beside.parent().ok_or("artvm's folder has no parent")?;
    succeed(
        Command::new(sources.join("../art14/build.sh"))
            .arg(beside)
            .env("CARGO_TARGET_DIR", target),
    )?;
    let app = App {
        dex: folder.join("app.dex"),
        library: folder.join("libapp.so"),
        agent: folder.join("libagent.so"),
    };
    let app_sources = sources.join("tests/app");
    succeed(
        Command::new("smali")
            .args(["assemble", "--api", "29", "-o"])
            .arg(&app.dex)
            .arg(&app_sources),
    )?;
    for (library, source) in [(&app.library, "native.c"), (&app.agent, "agent.c")] {
        // The build-id is fixed: one test takes the library for an unknown libart.
        let mut cc = Command::new("cc");
        cc.args([
            "-shared",
            "-fPIC",
            "-Wl,--build-id=0x0123456789abcdef",
            "-o",
        ]);
        succeed(cc.arg(library).arg(app_sources.join(source)))?;
    }
    Ok(app)
}

/// The folder of artvm and of what it needs.
fn beside() -> Result<&'static Path> {
    Path::new(env!("CARGO_BIN_EXE_artvm"))
        .parent()
        .ok_or("artvm has no folder".into())
}

/// Runs a tool that must succeed.
fn succeed(command: &mut Command) -> Result {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(())
}

/// artvm with the app's dex file, without varid's agent.
fn artvm(vm: Vm, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
    command
        .args(vm)
        .arg("--dex")
        .arg(&app()?.dex)
        .arg("--no-dim")
        .args(arguments)
        .stdin(Stdio::null());
    Ok(command)
}

/// Calls a method of the app: exit code, standard output and standard error.
fn run(vm: Vm, options: &[&str], method: &str, n: i32) -> Result<(Option<i32>, String, String)> {
    let mut command = artvm(vm, &["--name", "org.example.vm"])?;
    finish(
        command
            .args(options)
            .args([MAIN, method, &n.to_string()])
            .output()?,
    )
}

/// Runs a command: exit code, standard output and standard error.
fn run_command(command: &mut Command) -> Result<(Option<i32>, String, String)> {
    finish(command.stdin(Stdio::null()).output()?)
}

fn finish(output: Output) -> Result<(Option<i32>, String, String)> {
    Ok((
        output.status.code(),
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    ))
}

/// A call that must return `expected` and print nothing else.
fn expect(vm: Vm, options: &[&str], method: &str, n: i32, expected: i64) -> Result {
    assert_eq!(
        run(vm, options, method, n)?,
        (Some(0), format!("{expected}\n"), String::new())
    );
    Ok(())
}

#[test]
fn a_method_s_result_is_printed() -> Result {
    each_vm(|vm| expect(vm, &[], "sum", 100_000, 4_999_950_000))
}

#[test]
fn an_uncaught_exception_is_printed_with_its_stack_and_fails() -> Result {
    each_vm(|vm| {
        let (code, out, error) = run(vm, &[], "divide", 1)?;
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert_eq!(
            error,
            "Exception in thread \"main\" java.lang.ArithmeticException: divide by zero\n\
         \tat org.example.vm.Main.divide(Main.java:41)\n"
        );
        let (code, _, error) = run(vm, &[], "throwWithMessage", 1)?;
        assert_eq!(code, Some(1));
        assert!(
            error.contains("java.lang.IllegalStateException: outer"),
            "{error}"
        );
        assert!(
            error.contains("Caused by: java.lang.RuntimeException: inner"),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn the_vm_s_own_exceptions_can_be_caught() -> Result {
    each_vm(|vm| expect(vm, &[], "implicitExceptions", 1, 31))
}

#[test]
fn threads_start_and_are_joined() -> Result {
    each_vm(|vm| expect(vm, &[], "threads", 20, 20 * 499_500))
}

#[test]
fn an_exception_that_ends_a_thread_ends_the_process() -> Result {
    each_vm(|vm| {
        let (code, out, error) = run(vm, &[], "throwingThread", 1)?;
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(
            error.starts_with("Exception in thread \"thrower\" java.lang.NullPointerException"),
            "{error}"
        );
        assert!(error.contains("Thrower.java:12"), "{error}");
        Ok(())
    })
}

#[test]
fn the_collector_frees_many_times_the_heap() -> Result {
    each_vm(|vm| expect(vm, &["--vm-option", "-Xmx16m"], "garbage", 600, 600 << 20))
}

#[test]
fn math_is_libm_s() -> Result {
    each_vm(|vm| {
        for n in [1, 2, 1000, 123_456] {
            let x = f64::from(n);
            let expected = x.sqrt() + x.sin() * x.powf(1.5);
            expect(vm, &[], "math", n, expected.to_bits() as i64)?;
        }
        Ok(())
    })
}

/// Folds results as the app's Numbers class does.
fn fold(results: &[i64]) -> i64 {
    results.iter().fold(0, |sum: i64, result| {
        sum.wrapping_mul(31).wrapping_add(*result)
    })
}

#[test]
fn the_natives_of_numbers_compute_what_java_says() -> Result {
    let int = 0x1234_5678_i32;
    let long = 0x1234_5678_9abc_def0_i64;
    let bits = fold(&[
        int.reverse_bits().into(),
        int.swap_bytes().into(),
        32,
        -1,
        0x0020_0000,
        0x200,
        32,
        9,
        int.rotate_left(4).into(),
        int.rotate_left(4).into(),
        -1,
        long.reverse_bits(),
        long.swap_bytes(),
        63,
        1,
        0x2_0000_0000_0000,
        0x2_0000_0000,
        63,
        64,
        long.rotate_left(4),
        long.rotate_left(8),
        1,
        0x3412,
        i32::MIN.into(),
        5,
        -3,
        3,
    ]);
    // Not folded by the compiler, whose libm is another; cbrt (of 64) is Rust's own code.
    let x = std::hint::black_box(0.625_f64);
    let mut math = [
        x.cos(),
        x.sin(),
        x.acos(),
        x.asin(),
        x.atan(),
        4.0,
        x.cosh(),
        x.exp(),
        x.exp_m1(),
        x.ln(),
        x.log10(),
        x.ln_1p(),
        x.sinh(),
        x.tan(),
        x.tanh(),
        x.sqrt(),
        1.0,
        0.0,
        1.0,
        2.0,
        1.0_f64.atan2(-2.0),
        5.0,
        1.0 + f64::EPSILON,
        1.5_f64.powf(2.5),
        0.0,
        -1.0,
        2.0,
    ]
    .map(|result| result.to_bits() as i64)
    .to_vec();
    math.extend([3, -2, 0x7ff8_0000_0000_0000]);
    let nan = f64::NAN.to_bits() as i64;
    let edges = fold(&[nan, i64::MIN, 0, nan, 0, i64::MAX, 0, i64::MIN]);
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("artvm-numbers-{}.trace", std::process::id()));
    let file = format!("-Xmethod-trace-file:{}", trace.display());
    each_vm(|vm| {
        // Traced, the VM calls the natives; else its interpreter has some of them built in.
        for options in [
            &[][..],
            &["--vm-option", "-Xmethod-trace", "--vm-option", &file],
        ] {
            for (method, expected) in [("bits", bits), ("math", fold(&math)), ("edges", edges)] {
                let mut command = artvm(vm, options)?;
                let output = command
                    .args(["--name", "n", "org.example.vm.Numbers", method])
                    .output()?;
                assert_eq!(
                    finish(output)?,
                    (Some(0), format!("{expected}\n"), String::new()),
                    "{method} {options:?}"
                );
            }
        }
        Ok(())
    })?;
    std::fs::remove_file(&trace)?;
    Ok(())
}

#[test]
fn strings_have_java_s_length_index_and_hash() -> Result {
    each_vm(|vm| {
        let hash = "boot.dex".bytes().fold(0_i32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(i32::from(byte))
        });
        expect(
            vm,
            &[],
            "string",
            0,
            i64::from(hash.wrapping_mul(10).wrapping_add(8 + 7)),
        )
    })
}

#[test]
fn a_method_that_the_boot_class_path_lacks_says_so() -> Result {
    each_vm(|vm| {
        let (code, _, error) = run(vm, &[], "unsupported", 1)?;
        assert_eq!(code, Some(1));
        assert!(
            error.contains(
                "UnsupportedOperationException: java.lang.StringBuilder.append is not part"
            ),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn a_library_s_natives_are_bound_by_name_and_its_on_load_is_called_once() -> Result {
    each_vm(|vm| {
        let library = app()?.library.to_string_lossy();
        expect(vm, &["--lib", &library], "twice", 21, 43)?;
        let (code, _, error) = run(vm, &[], "twice", 21)?;
        assert_eq!(code, Some(1));
        assert!(error.contains("java.lang.UnsatisfiedLinkError"), "{error}");
        let (code, _, error) = run(vm, &["--lib", "no/such.so"], "twice", 21)?;
        assert_eq!(
            (code, error.contains("no/such.so")),
            (Some(1), true),
            "{error}"
        );
        let (code, _, error) = run(vm, &["--lib", &app()?.dex.to_string_lossy()], "twice", 21)?;
        assert_eq!(
            (code, error.contains("did not load the library")),
            (Some(1), true),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn the_agent_is_loaded_unless_refused() -> Result {
    each_vm(|vm| {
        let app = app()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
        command
            .args(vm)
            .arg("--dex")
            .arg(&app.dex)
            .args(["--name", "a", MAIN, "sum", "4"])
            .env("VARID_ART_AGENT", &app.agent);
        let (code, out, error) = finish(command.output()?)?;
        assert_eq!((code, error.as_str()), (Some(0), ""));
        assert_eq!(out, "agent vm=1 options=\n6\n");
        let (_, out, _) = finish(command.arg("--no-dim").output()?)?;
        assert_eq!(out, "6\n");
        Ok(())
    })
}

#[test]
fn the_command_line_is_exactly_the_package() -> Result {
    each_vm(|vm| {
        let library = app()?.library.to_string_lossy();
        let (code, out, error) = run(vm, &["--lib", &library], "printName", 5)?;
        assert_eq!((code, error.as_str()), (Some(0), ""));
        assert_eq!(out, "cmdline=org.example.vm~ comm=org.example.vm\n5\n");
        Ok(())
    })
}

#[test]
fn a_zygote_s_children_have_names_and_results_of_their_own() -> Result {
    each_vm(|vm| {
        let long_name = format!("org.example.{}", "long".repeat(20));
        let library = app()?.library.to_string_lossy();
        let mut zygote = artvm(vm, &["--zygote", "--lib", &library])?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut input = zygote.stdin.take().ok_or("no pipe")?;
        writeln!(
            input,
            "org.example.first {MAIN} printName 1\n{long_name} {MAIN} printName 2"
        )?;
        // The last line has no newline.
        write!(
            input,
            "org.example.threads {MAIN} threads 8\norg.example.throws {MAIN} divide 4"
        )?;
        drop(input);
        let (code, out, error) = finish(zygote.wait_with_output()?)?;
        assert_eq!(code, Some(1), "one child throws");
        assert!(error.contains("java.lang.ArithmeticException"), "{error}");
        assert!(
            out.contains("cmdline=org.example.first~ comm=g.example.first\n"),
            "{out}"
        );
        assert!(
            out.contains(&format!("cmdline={long_name}~ comm=onglonglonglong\n")),
            "{out}"
        );
        let mut results: Vec<(&str, &str)> = out
            .lines()
            .filter(|line| !line.starts_with("cmdline="))
            .map(|line| line.split_once(' ').ok_or("not `PACKAGE PID RESULT`"))
            .collect::<std::result::Result<_, _>>()?;
        for (_, rest) in &mut results {
            let (pid, result) = rest.split_once(' ').ok_or("not `PACKAGE PID RESULT`")?;
            assert!(pid.parse::<u32>().is_ok(), "{out}");
            *rest = result;
        }
        results.sort_unstable();
        let expected = [
            ("org.example.first", "1"),
            (&long_name, "2"),
            ("org.example.threads", "3996000"),
            ("org.example.throws", "exit 1"),
        ];
        assert_eq!(results, expected);
        Ok(())
    })
}

#[test]
fn an_unknown_libart_is_refused_before_it_is_loaded() -> Result {
    each_vm(|vm| {
        let (code, out, error) = run(
            vm,
            &["--libart", &app()?.library.to_string_lossy()],
            "sum",
            1,
        )?;
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(error.contains("0123456789abcdef"), "{error}");
        assert!(error.contains("known here:"), "{error}");
        let (code, _, error) = run(vm, &["--libart", &app()?.dex.to_string_lossy()], "sum", 1)?;
        assert_eq!(
            (code, error.contains("no build-id")),
            (Some(1), true),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn a_method_trace_names_the_app_s_methods() -> Result {
    each_vm(|vm| {
        let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("artvm-{}.trace", std::process::id()));
        let file = format!("-Xmethod-trace-file:{}", trace.display());
        expect(
            vm,
            &["--vm-option", "-Xmethod-trace", "--vm-option", &file],
            "threads",
            2,
            999_000,
        )?;
        let bytes = std::fs::read(&trace)?;
        std::fs::remove_file(&trace)?;
        let text = String::from_utf8_lossy(&bytes);
        for method in [
            "org.example.vm.Main\tthreads\t(I)J",
            "org.example.vm.Main\tsum\t(I)J",
            "org.example.vm.Counter\trun\t()V",
        ] {
            assert!(text.contains(method), "{method}");
        }
        Ok(())
    })
}

#[test]
fn what_is_missing_is_named() -> Result {
    each_vm(|vm| {
        let (code, _, error) = run(vm, &[], "absent", 1)?;
        assert_eq!(
            (code, error.contains("static absent(I)J")),
            (Some(1), true),
            "{error}"
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
        command.args(vm).args([
            "--dex",
            "no/such.dex",
            "--no-dim",
            "--name",
            "a",
            MAIN,
            "sum",
        ]);
        let (code, _, error) = finish(command.output()?)?;
        assert_eq!(
            (code, error.contains("no/such.dex")),
            (Some(1), true),
            "{error}"
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
        command
            .args(vm)
            .arg("--dex")
            .arg(&app()?.dex)
            .args(["--name", "a", MAIN, "sum"])
            .env("VARID_ART_AGENT", "no/agent.so");
        let (code, _, error) = finish(command.output()?)?;
        assert_eq!(
            (
                code,
                error.contains("no/agent.so") && error.contains("--no-dim")
            ),
            (Some(1), true),
            "{error}"
        );
        let (code, _, error) = run(vm, &["--boot", "no/boot.dex"], "sum", 1)?;
        assert_eq!(
            (code, error.contains("bootclasspath/build.sh")),
            (Some(1), true),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn the_time_of_each_call_is_printed_with_the_result() -> Result {
    each_vm(|vm| {
        let (code, result, told) = run(vm, &["--timed", "3"], "sum", 100)?;
        let times: Vec<u64> = told
            .lines()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let once = run(vm, &[], "sum", 100)?;
        assert_eq!((code, times.len(), result), (Some(0), 3, once.1));
        assert!(times.iter().all(|nanoseconds| *nanoseconds > 0), "{told}");
        Ok(())
    })
}

#[test]
fn art_14_runs_on_the_libraries_beside_it() -> Result {
    let mut zygote = artvm(&["--art", "14"], &["--zygote"])?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = zygote.stdin.take().ok_or("no pipe")?;
    let mut results = BufReader::new(zygote.stdout.take().ok_or("no pipe")?).lines();
    writeln!(input, "org.example.vm {MAIN} sum 4")?;
    let result = results.next().ok_or("no result")??;
    assert!(result.ends_with(" 6"), "{result}");
    // The VM is up: all of its libraries are mapped.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", zygote.id()))?;
    drop(input);
    assert!(zygote.wait()?.success());
    let beside = Path::new(env!("CARGO_BIN_EXE_artvm")).parent();
    let own = beside.ok_or("artvm has no folder")?.canonicalize()?;
    let mut libraries: Vec<_> = maps
        .lines()
        .filter_map(|line| line.find('/').and_then(|start| line.get(start..)))
        .filter(|path| path.contains(".so"))
        .collect();
    libraries.dedup();
    assert!(libraries.len() > 15, "{maps}");
    for library in libraries {
        assert!(Path::new(library).starts_with(&own), "{library}\n{maps}");
    }
    Ok(())
}

#[test]
fn a_release_that_is_not_there_is_named_with_what_fetches_it() -> Result {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artvm-alone");
    std::fs::create_dir_all(&folder)?;
    let alone = folder.join(format!("artvm-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_artvm"), &alone)?;
    let mut command = Command::new(&alone);
    command.arg("--dex").arg(&app()?.dex);
    command.args(["--art", "14", "--name", "a", MAIN, "sum"]);
    let output = command.output();
    std::fs::remove_file(&alone)?;
    let (code, _, error) = finish(output?)?;
    assert_eq!(
        (code, error.contains("tests/art14/build.sh")),
        (Some(1), true),
        "{error}"
    );
    Ok(())
}
