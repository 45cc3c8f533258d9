//! Does compiled code run where artvm is told so? A method's entry point is in the file that holds its code.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::{App, Result, app, beside, finish, run_command, succeed};

/// How often the method is called until it must have been compiled: the JIT does that on a thread of its own, in milliseconds.
const CALLS: &str = "1000000";

/// The sum of 0..1000.
const SUM: &str = "499500\n";

/// ART's compiler beside artvm, and a folder for what it writes.
fn compiler() -> Result<&'static Path> {
    static FOLDER: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    let build = || -> Result<PathBuf> {
        let target = beside()?.parent().ok_or("artvm's folder has no parent")?;
        succeed(
            Command::new(sources("build.sh"))
                .arg(beside()?)
                .env("CARGO_TARGET_DIR", target),
        )?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artvm-code");
        std::fs::create_dir_all(&folder)?;
        Ok(folder.canonicalize()?)
    };
    FOLDER
        .get_or_init(|| build().map_err(|error| error.to_string()))
        .as_deref()
        .map_err(|error| error.clone().into())
}

/// A script of the folder that builds ART's compiler.
fn sources(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../art11")
        .join(script)
}

/// Compiles ahead of time.
fn compile(arguments: &[&str]) -> Result {
    succeed(
        Command::new(sources("compile.sh"))
            .arg(beside()?)
            .args(arguments),
    )
}

/// A boot image in a folder of this name, of these dex files beside boot.dex.
fn image(name: &str, dex: &[&Path]) -> Result<String> {
    let image = compiler()?.join(name).display().to_string();
    let mut arguments = vec!["image".to_owned(), image.clone()];
    arguments.extend(dex.iter().map(|dex| dex.display().to_string()));
    compile(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(image)
}

/// Where the app's method has its code, once it has been called often; its result must be right.
fn code(options: &[&str]) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
    command
        .args(["--no-dim", "--name", "org.example.vm"])
        .args(options)
        .arg("--lib")
        .arg(&app()?.library)
        .args(["org.example.vm.Compiled", "run", CALLS]);
    let (code, out, error) = run_command(&mut command)?;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{options:?}: {out}");
    let file = out.strip_suffix(SUM).ok_or(out.clone())?;
    Ok(file.trim_end().to_owned())
}

/// The app's dex file as an option's value.
fn dex(app: &App) -> Result<&str> {
    Ok(app.dex.to_str().ok_or("not UTF-8")?)
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn the_jit_s_code_is_in_its_cache() -> Result {
    compiler()?;
    let dex = dex(app()?)?;
    let code = code(&["--jit", "--dex", dex])?;
    assert_eq!(code, "/memfd:jit-cache (deleted)");
    Ok(())
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn a_child_of_the_zygote_has_a_jit_of_its_own() -> Result {
    compiler()?;
    let app = app()?;
    let mut zygote = Command::new(env!("CARGO_BIN_EXE_artvm"))
        .args(["--no-dim", "--zygote", "--jit", "--dex", dex(app)?, "--lib"])
        .arg(&app.library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = zygote.stdin.take().ok_or("no pipe")?;
    writeln!(
        input,
        "org.example.child org.example.vm.Compiled run {CALLS}"
    )?;
    drop(input);
    let (code, out, error) = finish(zygote.wait_with_output()?)?;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let (file, result) = out.split_once('\n').ok_or("no line")?;
    assert_eq!(file, "/memfd:jit-cache (deleted)");
    assert!(result.ends_with(&format!(" {SUM}")), "{out}");
    Ok(())
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn code_of_a_boot_image_is_in_its_oat_file_unless_all_is_interpreted() -> Result {
    let app = app()?;
    let dex = dex(app)?;
    let image = image("image", &[&app.dex])?;
    let oat = format!("{image}/x86_64/boot-app.oat");
    assert_eq!(code(&["--image", &image, "--dex", dex])?, oat);
    assert_eq!(code(&["--image", &image, "--jit", "--dex", dex])?, oat);
    let mut interpreted = Command::new(env!("CARGO_BIN_EXE_artvm"));
    interpreted
        .args(["--no-dim", "--image", &image, "--dex", dex, "--name", "a"])
        .args(["--vm-option", "-Xint", "--lib"])
        .arg(&app.library)
        .args(["org.example.vm.Compiled", "run", "3"]);
    let (_, out, _) = run_command(&mut interpreted)?;
    assert!(out.contains("libart.so.0"), "{out}");
    Ok(())
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn an_app_s_code_is_in_the_odex_beside_its_dex_file() -> Result {
    let image = image("boot", &[])?;
    for (name, option) in [
        ("compact", "--compact-dex-level=fast"),
        ("plain", "--compact-dex-level=none"),
    ] {
        let folder = compiler()?.join(name);
        let path = folder.to_str().ok_or("not UTF-8")?;
        compile(&["app", &image, path, dex(app()?)?, "--", option])?;
        let dex = format!("{path}/app.dex");
        let code = code(&["--image", &image, "--app-dex", &dex])?;
        assert_eq!(
            Path::new(&code),
            folder.join("oat/x86_64/app.odex"),
            "{name}"
        );
        // Compact dex begins with "cdex".
        let vdex = std::fs::read(folder.join("oat/x86_64/app.vdex"))?;
        let is_compact = vdex.windows(4).any(|bytes| bytes == b"cdex");
        assert_eq!(is_compact, name == "compact");
    }
    Ok(())
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn art_14_runs_code_of_a_boot_image_and_of_an_odex() -> Result {
    let target = beside()?.parent().ok_or("artvm's folder has no parent")?;
    succeed(
        Command::new(sources("../art14/compiler.sh"))
            .arg(beside()?)
            .env("CARGO_TARGET_DIR", target),
    )?;
    let release = beside()?.join("art14");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artvm-code-14");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let path = |name: &str| folder.join(name).display().to_string();
    let (boot, with_app) = (path("boot"), path("image"));
    let dex = dex(app()?)?;
    let compile = |arguments: &[&str]| {
        succeed(
            Command::new(sources("compile.sh"))
                .arg(&release)
                .args(arguments),
        )
    };
    compile(&["image", &with_app, dex])?;
    assert_eq!(
        code(&["--art", "14", "--image", &with_app, "--dex", dex])?,
        format!("{with_app}/x86_64/boot-app.oat")
    );
    compile(&["image", &boot])?;
    for level in ["fast", "none"] {
        let odex = path(level);
        let option = format!("--compact-dex-level={level}");
        compile(&["app", &boot, &odex, dex, "--", &option])?;
        let app = format!("{odex}/app.dex");
        assert_eq!(
            code(&["--art", "14", "--image", &boot, "--app-dex", &app])?,
            format!("{odex}/oat/x86_64/app.odex")
        );
    }
    Ok(())
}

#[test]
#[ignore = "builds ART's compiler first: make test-long runs it"]
fn code_that_art_does_not_take_is_refused() -> Result {
    let app = app()?;
    let image = image("refused", &[&app.dex])?;
    let other = compiler()?.join("other.dex");
    std::fs::copy(&app.dex, &other)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_artvm"));
    command
        .args(["--no-dim", "--dex"])
        .arg(&other)
        .args(["--image", &image, "--name", "a"])
        .args(["org.example.vm.Main", "sum", "1"]);
    let (code, out, error) = run_command(&mut command)?;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("boot.oat: ART does not use"), "{error}");
    Ok(())
}
