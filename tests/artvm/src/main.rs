//! artvm: the dex VM of the tests. Debian's ART, started on a boot class path of the project's own.

mod app;
mod app_loader;
#[cfg(not(target_arch = "arm"))]
mod code;
mod dynamic_linker;
mod error;
mod execution;
mod libart;
mod native_library;
mod options;
mod process_name;
mod release;
mod uncaught;
mod vm;
mod worker_stacks;
mod zygote;

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use app::Call;
use app_loader::AppLoader;
use error::Error;
use execution::Jit;
use libart::Libart;
use options::Options;
use process_name::ProcessName;
use release::Home;
use vm::Vm;

/// Names varid's agent where it is not beside artvm.
const AGENT_VARIABLE: &str = "VARID_ART_AGENT";

/// libart's log level, as on Android: `*:v` says everything.
const LOG_VARIABLE: &str = "ANDROID_LOG_TAGS";

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "artvm: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the VM and does what the options say.
fn run(options: &Options) -> Result<ExitCode, Error> {
    let executable = dynamic_linker::executable()?;
    let beside = executable.parent().unwrap_or(Path::new("/"));
    let release = options.art.release();
    let source = release.libart(beside);
    if let Home::Beside(_) = release.home {
        dynamic_linker::enter(&source.folder, &executable, source.hint)?;
    }
    let vm_options = vm_options(options, beside)?;
    quiet_log();
    let process = ProcessName::claim()?;
    let libart = Libart::load(
        &source,
        options.libart.as_deref(),
        options.any_build,
        beside,
    )?;
    (release.repair)(&libart)?;
    if options.code.execution().jit() == Jit::On {
        libart.load_compiler(&release.boot_class_path(beside))?;
    }
    let vm = Vm::boot(&libart, &vm_options)?;
    uncaught::register(vm.env())?;
    let load_app = |env| {
        let dex = options.code.app_dex.as_deref();
        let loader = dex.map(|dex| AppLoader::open(env, dex)).transpose()?;
        options.code.check_code_is_used()?;
        options
            .libs
            .iter()
            .try_for_each(|library| native_library::load(&libart, env, loader, library))
    };
    if let Some(name) = options
        .name
        .as_deref()
        .or(options.zygote.then_some("zygote"))
    {
        process.set(name)?;
    }
    let (Some(class), Some(method)) = (&options.class, &options.method) else {
        // Apps load their code and libraries after the fork.
        return zygote::serve(vm, &process, load_app);
    };
    load_app(vm.env())?;
    let call = Call {
        class: class.clone(),
        method: method.clone(),
        n: options.n,
    };
    let outcome = match options.timed {
        None => call.run(vm.env())?,
        Some(times) => call.timed(vm.env(), times, std::io::stderr())?,
    };
    Ok(outcome.report(std::io::stdout()))
}

/// Lets libart's log speak of fatal errors only, unless ANDROID_LOG_TAGS says otherwise: at every start without a
/// compiled image it warns of just that.
fn quiet_log() {
    if std::env::var_os(LOG_VARIABLE).is_none() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(LOG_VARIABLE, "*:f") };
    }
}

/// The VM's options: class path, interpreter, varid's agent, and those of the command line.
fn vm_options(options: &Options, beside: &Path) -> Result<Vec<String>, Error> {
    let release = options.art.release();
    let boot = options
        .boot
        .clone()
        .unwrap_or_else(|| release.boot_class_path(beside));
    check_dex(
        &boot,
        "; tests/bootclasspath/build.sh FOLDER writes boot.dex: give it with --boot, or put it beside artvm",
    )?;
    let location = |dex: &Path| options.code.location(dex).display().to_string();
    let mut class_path = format!("-Xbootclasspath:{}", location(&boot));
    if let Some(dex) = &options.code.app_dex {
        check_dex(dex, "")?;
    }
    for dex in &options.dex {
        check_dex(dex, "")?;
        class_path.push(':');
        class_path.push_str(&location(dex));
    }
    let mut all = vec![class_path];
    let interpreter = if options.int {
        &["-Xint"]
    } else {
        release.default_interpreter
    };
    all.extend(options.code.execution().vm_options(interpreter));
    if options.zygote {
        all.push("-Xzygote".to_owned());
    }
    if !options.no_dim {
        all.push(format!("-agentpath:{}", agent(beside)?.display()));
    }
    all.extend(options.vm_options.iter().cloned());
    Ok(all)
}

/// varid's agent for ART.
fn agent(beside: &Path) -> Result<PathBuf, Error> {
    let path = std::env::var_os(AGENT_VARIABLE)
        .map_or_else(|| beside.join("libvarid_art.so"), PathBuf::from);
    if path.is_file() {
        return Ok(path);
    }
    let hint = "; it is varid's agent: name it in VARID_ART_AGENT, put it beside artvm, or run with --no-dim";
    Err(Error::File {
        path,
        source: ErrorKind::NotFound.into(),
        hint,
    })
}

/// Refuses what libart would abort over.
fn check_dex(path: &Path, hint: &'static str) -> Result<(), Error> {
    let unreadable = |source| Error::File {
        path: path.to_owned(),
        source,
        hint,
    };
    let mut magic = [0; 4];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .map_err(unreadable)?;
    if path.to_string_lossy().contains(':') {
        return Err(Error::Colon(path.to_owned()));
    }
    if &magic != b"dex\n" && &magic != b"PK\x03\x04" {
        return Err(Error::NotDex(path.to_owned()));
    }
    Ok(())
}
