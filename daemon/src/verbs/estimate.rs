//! `varid estimate`: prices a session of exact calling contexts for another machine, or executes a program for it.

mod program;
mod session;
mod summary;

use super::annotate::class_path;
use crate::cli::{AssumedCache, EstimateArgs, ProgramArgs};
use crate::output;
use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use summary::Summary;
use varid_estimate::{
    CacheAccesses, CacheCharges, CostModel, Estimate, Geometry, MethodBody, MethodCode, MethodName,
    PricedMethod, Program, ProgramMethod, Replay, SHIPPED, Setting, Target, estimate,
    methods_named, opcode_costs,
};
use varid_processor::Processor;
use varid_recording::{CallOrder, Contexts, SessionReader};
use varid_report::{MethodSource, Options, Profile, visit_java_methods};

/// The keys whose values are compared in one pass over the order of calls.
const SWEPT: [&str; 2] = ["method_cache.size", "method_cache.blocks"];
/// The most caches that are compared.
const MAX_CACHES: usize = 256;

/// Checks that there is nothing where a session is to be written.
fn check_new_folder(output: &Path) -> anyhow::Result<()> {
    ensure!(
        output.symlink_metadata().is_err(),
        "{} exists: -o takes a new folder",
        output.display()
    );
    Ok(())
}

/// Checks that a session can be written there, before it is computed.
fn check_output(output: &Path, read: &Path) -> anyhow::Result<()> {
    check_new_folder(output)?;
    let place = output.display();
    let parent = output.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    let parent = parent.with_context(|| format!("cannot make {place}"))?;
    ensure!(
        !parent.starts_with(read.canonicalize()?),
        "{place} is in the session that is read: -o takes a new folder elsewhere"
    );
    Ok(())
}

/// Checks that an estimate can be compared with a time that was measured.
fn check_measured(time: Duration, target: &Target) -> anyhow::Result<()> {
    ensure!(
        target.unit == "ns" && target.method_cache.is_none(),
        "--measured needs costs in nanoseconds without a method cache, such as a table of 'varid calibrate': those of {} are in {}",
        target.name,
        target.unit
    );
    ensure!(!time.is_zero(), "--measured: 0 is no time");
    Ok(())
}

/// Prints what the session costs, and writes a session with the costs if one is asked for.
pub fn run(args: &EstimateArgs) -> anyhow::Result<ExitCode> {
    let Some(name) = args.target.as_deref().filter(|_| !args.targets) else {
        list_targets()?;
        return Ok(ExitCode::SUCCESS);
    };
    let settings = args.set.iter().map(|text| Setting::parse(text));
    let settings = settings.collect::<Result<Vec<_>, _>>()?;
    let program = args.input.session.as_deref();
    if let Some(program) = program.filter(|path| program::is_program(path)) {
        return program::run(args, name, &settings, program);
    }
    refuse_options_of_programs(args, name)?;
    let target = Target::named(name, &settings)?;
    let swept = swept(name, &settings, &args.sweep)?;
    if let Some(time) = args.measured {
        check_measured(time, &target)?;
    }
    let folder = args.input.folder()?;
    if let Some(output) = &args.output {
        check_output(output, &folder)?;
    }
    let session = SessionReader::open(&folder)?;
    let Some(contexts) = session.contexts()? else {
        bail!("the session has no exact calling contexts: 'varid exact --bytecodes' counts them");
    };
    let profile = Profile::from_session(&session, &Options::default())?;
    let methods = methods(&contexts, &profile, args);
    let mut program = Program::new(&contexts, methods, target.build.vm_calls)?;
    program.check_bytecode(&target.name, target.bytecode)?;
    if let Some(within) = &args.within {
        let names: Vec<_> = program
            .methods
            .iter()
            .map(|method| method.name.clone())
            .collect();
        program.restrict(&methods_named(within, &names)?);
    }
    let model = CostModel::new(&target);
    let priced: Vec<Option<PricedMethod>> = program
        .methods
        .iter()
        .map(|method| match &method.body {
            MethodBody::Code(code) => Some(model.price(code)),
            MethodBody::Native | MethodBody::Unknown(_) => None,
        })
        .collect();
    let mut geometries: Vec<Geometry> = target
        .method_cache
        .iter()
        .map(|cache| cache.geometry)
        .collect();
    geometries.extend(&swept);
    let charges = match args.assume_cache {
        Some(_) => Vec::new(),
        None => replay(&folder, &mut program, &target, &priced, &geometries)?,
    };
    if !swept.is_empty() && charges.is_empty() {
        bail!(
            "--sweep compares caches in the order of calls, which the session does not have: 'varid exact --call-order' keeps it"
        );
    }
    let accesses = match (args.assume_cache, charges.first()) {
        (Some(AssumedCache::Hit), _) => CacheAccesses::Hit,
        (Some(AssumedCache::Miss), _) => CacheAccesses::Miss,
        (None, Some(charges)) => CacheAccesses::Charged(charges),
        (None, None) => CacheAccesses::Bounds,
    };
    let found = estimate(&program, &target, &priced, accesses);
    let is_interval = matches!(accesses, CacheAccesses::Bounds) && target.method_cache.is_some();
    let compared = charges.get(1..).unwrap_or_default();
    let caches = cache_totals(&found, &charges, compared);
    let mut summary = Summary::new(&target, &found, is_interval, &caches);
    if args.opcodes {
        summary = summary.with_opcodes(&opcode_costs(&program, &found));
    }
    if let Some(time) = args.measured {
        summary = summary.with_measured(time, found.total);
    }
    summary.print(args.summary)?;
    if let Some(folder) = &args.output {
        let assumptions = session::Assumptions {
            target: &target,
            settings: &args.set,
            within: args.within.as_deref(),
            is_interval,
            caches: &caches,
        };
        session::write(&session, &contexts, &assumptions, &found, folder)?;
        let shown = folder.display();
        output::notice(&format!("varid: 'varid report {shown}' shows it"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what only a program can have.
fn refuse_options_of_programs(args: &EstimateArgs, target: &str) -> anyhow::Result<()> {
    let ProgramArgs {
        arguments,
        limit,
        files,
        ..
    } = &args.program;
    ensure!(
        arguments.is_empty() && limit.is_none() && files.is_none(),
        "arguments, --limit and --files are for programs: the first argument is not an ELF file"
    );
    ensure!(
        varid_processor::shipped(target).is_none(),
        "the target {target} executes programs for RISC-V: the first argument is not an ELF file"
    );
    Ok(())
}

fn list_targets() -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for shipped in SHIPPED {
        let target = Target::named(shipped.name, &[])?;
        let truth = target.truth.unwrap_or_else(|| "nothing".to_owned());
        rows.push([target.name, target.unit, target.about, truth]);
    }
    for shipped in varid_processor::SHIPPED {
        let target = Processor::named(shipped.name, &[])?;
        let truth = target.truth.unwrap_or_else(|| "nothing".to_owned());
        rows.push([target.name, "cycles".to_owned(), target.about, truth]);
    }
    let head = ["target", "unit", "machine", "compared with"];
    output::text(&output::table(
        head.map(|title| (title, output::Align::Left)),
        &rows,
    ))
}

/// Returns the caches that are compared: all combinations of the values.
fn swept(name: &str, settings: &[Setting], sweep: &[String]) -> anyhow::Result<Vec<Geometry>> {
    if sweep.is_empty() {
        return Ok(Vec::new());
    }
    let mut combinations = vec![settings.to_vec()];
    for text in sweep {
        let values = Setting::parse_list(text)?;
        if let Some(other) = values
            .iter()
            .find(|value| !SWEPT.contains(&value.key().as_str()))
        {
            bail!(
                "--sweep {}: it compares {} only",
                other.key(),
                SWEPT.join(" and ")
            );
        }
        let combined = combinations.iter().flat_map(|one| {
            values
                .iter()
                .map(move |value| [one.as_slice(), std::slice::from_ref(value)].concat())
        });
        combinations = combined.take(MAX_CACHES.saturating_add(1)).collect();
        if combinations.len() > MAX_CACHES {
            bail!("--sweep: more than {MAX_CACHES} caches");
        }
    }
    let mut geometries = Vec::new();
    for settings in combinations {
        match Target::named(name, &settings)?.method_cache {
            Some(cache) => geometries.push(cache.geometry),
            None => bail!("--sweep: the target {name} has no method cache"),
        }
    }
    Ok(geometries)
}

/// Reads the methods of contexts with their code.
fn methods(contexts: &Contexts, profile: &Profile, args: &EstimateArgs) -> Vec<ProgramMethod> {
    let unknown = ProgramMethod {
        name: None,
        body: MethodBody::Unknown("nothing is known of it".to_owned()),
    };
    let mut methods = vec![unknown; contexts.methods().len()];
    let class_path = class_path(&args.class_path);
    visit_java_methods(contexts, profile, &class_path, |id, name, source| {
        let name = name.map(|name| MethodName {
            class: name.class.clone(),
            name: name.name.clone(),
            descriptor: name.descriptor.clone(),
        });
        let has_code = contexts
            .method(id)
            .is_some_and(|method| method.code.is_some());
        let body = match (has_code, source, &name) {
            (false, _, Some(_)) => MethodBody::Native,
            (_, Err(why), _) => MethodBody::Unknown(why),
            (_, Ok(source), Some(name)) => body(source, name),
            (_, Ok(_), None) => MethodBody::Unknown("it has no name".to_owned()),
        };
        if let Some(method) = methods.get_mut(id.index()) {
            *method = ProgramMethod { name, body };
        }
    });
    methods
}

/// Reads the code of a method.
fn body(source: MethodSource<'_>, name: &MethodName) -> MethodBody {
    let code = match source {
        MethodSource::Class(class) => MethodCode::read(class, name),
        MethodSource::Dex(dex, code) => MethodCode::read_dex(dex, code).map(Some),
    };
    match code {
        Ok(Some(code)) => MethodBody::Code(code),
        Ok(None) => MethodBody::Native,
        Err(why) => MethodBody::Unknown(format!("{}.{}: {why}", name.class, name.name)),
    }
}

/// Simulates caches in the order of calls. Empty: the session does not have it, or the target has no cache.
fn replay(
    folder: &Path,
    program: &mut Program,
    target: &Target,
    priced: &[Option<PricedMethod>],
    geometries: &[Geometry],
) -> anyhow::Result<Vec<CacheCharges>> {
    let order = CallOrder::open(folder).context(
        "the order of calls cannot be used: record the program again, or --assume-cache hit|miss does without it",
    )?;
    let Some(order) = order else {
        return Ok(Vec::new());
    };
    let incomplete = order
        .threads()
        .iter()
        .filter_map(|thread| thread.incomplete.as_ref());
    let notes: Vec<_> = incomplete
        .map(|why| {
            format!(
                "the order of calls is incomplete, and so is what the method cache costs: {why}"
            )
        })
        .collect();
    let mut charges = Vec::new();
    if let Some(mut replay) = Replay::new(program, target, priced, geometries) {
        for thread in order.threads() {
            replay.thread(order.events(thread))?;
        }
        charges = replay.finish();
    }
    program.notes.extend(notes);
    Ok(charges)
}

/// Returns the costs with the caches that are compared. `charges` begins with those of the estimate.
fn cache_totals(
    found: &Estimate,
    charges: &[CacheCharges],
    compared: &[CacheCharges],
) -> Vec<varid_estimate::CacheSummary> {
    let own = charges.first().map_or(0.0, |charges| charges.total);
    let summaries = compared.iter().map(|charges| {
        let change = varid_estimate::Price::exact(charges.total - own);
        varid_estimate::CacheSummary {
            geometry: charges.geometry,
            total: found.total.plus(change),
            hits: charges.hits,
            misses: charges.misses,
        }
    });
    summaries.collect()
}
