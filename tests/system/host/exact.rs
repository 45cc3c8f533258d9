//! Tests that `varid exact` counts each call of a Java program by its calling context.
//!
//! The oracle is an agent in C, which follows JVMTI's events of entries and exits in the interpreter. Compared are the contexts of the
//! program's own methods, with all their callers and call sites. Others depend on which classes are loaded when.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use varid_recording::{ContextNode, NodeId, SessionReader, SessionRecord};
use varid_tests::{
    JDK, Scale, compile_agent, compile_class, has_jdk, printed, scale, skipped, testbed,
};

/// The program, and its rounds.
pub(crate) const PROGRAM: &str = "Contexts";
const ROUNDS: &str = "25";
/// The threads whose calls do not depend on time.
const THREADS: [&str; 4] = ["main", "worker-0", "worker-1", "worker-2"];
/// The first addresses of the parts of the remap range, by their files of names, and the offset of names: docs/session-format.md.
const PARTS: [(&str, u64); 2] = [
    ("remap.substitute.sym", 0x6000_0000_0000),
    ("remap-framework.substitute.sym", 0x6000_0080_0000),
];
const NAMES_OFFSET: u64 = 0x1000;

/// Values of contexts, by their thread and frames.
pub(crate) type Values = BTreeMap<String, u64>;

/// Returns true if there is nothing to test.
pub(crate) fn skip() -> bool {
    let skip = !has_jdk();
    if skip {
        skipped("exact", "there is no openjdk-17-jdk-headless");
    }
    skip
}

/// Returns the readable name of a class of a hidden class: without its address and its number.
fn readable(class: &str) -> String {
    let class = class.replace('/', ".");
    let class = class.split(".0x").next().unwrap_or_default();
    match class.split_once("$$Lambda") {
        Some((of, _)) => format!("{of}$$Lambda"),
        None => class.to_owned(),
    }
}

/// Whether a context's method is the program's, and its thread is compared.
fn is_own(context: &str) -> bool {
    let last = context.rsplit_once('\t').map_or("", |(_, last)| last);
    let method = last.split_once(':').map_or("", |(_, method)| method);
    let thread = context.split('\t').next().unwrap_or_default();
    method.starts_with(PROGRAM) && THREADS.contains(&thread)
}

/// Runs the program with the oracle.
fn oracle(folder: &Path) -> Result<Values> {
    let agent = compile_agent("contexts", folder)?;
    let file = folder.join("contexts.txt");
    let mut java = Command::new(format!("{JDK}/java"));
    java.args(["-Xint", "-Xshare:off"])
        .arg(format!(
            "-agentpath:{}={PROGRAM},{}",
            agent.display(),
            file.display()
        ))
        .arg("-cp")
        .arg(folder)
        .args([PROGRAM, ROUNDS]);
    printed(&mut java)?;
    let mut values = Values::new();
    for line in fs::read_to_string(&file)?.lines() {
        let (count, context) = line.split_once(' ').context("a line")?;
        let mut frames = context.split('\t');
        let mut normal = frames.next().unwrap_or_default().to_owned();
        for frame in frames {
            let (site, method) = frame.split_once(':').context("a frame")?;
            let name = method.split('(').next().unwrap_or_default();
            let (class, _) = name.rsplit_once('.').context("a method")?;
            let method = method.get(class.len()..).unwrap_or_default();
            normal += &format!("\t{site}:{}{method}", readable(class));
        }
        if is_own(&normal) {
            *values.entry(normal).or_default() += count.parse::<u64>()?;
        }
    }
    Ok(values)
}

/// Counts the program with varid, which must print what it prints without.
pub(crate) fn exact(folder: &Path, session: &Path, options: &[&str], java: &[&str]) -> Result<()> {
    let output = varid(options, session)?
        .arg("--")
        .arg(format!("{JDK}/java"))
        .args(java)
        .arg("-cp")
        .arg(folder)
        .args([PROGRAM, ROUNDS])
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let mut plain = Command::new(format!("{JDK}/java"));
    plain.arg("-cp").arg(folder).args([PROGRAM, ROUNDS]);
    ensure!(
        printed(&mut plain)?.as_bytes() == output.stdout,
        "{output:?}"
    );
    Ok(())
}

pub(crate) fn varid(options: &[&str], session: &Path) -> Result<Command> {
    let mut varid = testbed()?.varid();
    varid.arg("exact").args(options).arg("-o").arg(session);
    Ok(varid)
}

/// Reads the own contexts of a session: the values of a counter.
pub(crate) fn read(session: &Path, counter: &str) -> Result<Values> {
    let names = names(session)?;
    let reader = SessionReader::open(session)?;
    let mut threads = Vec::new();
    for record in reader.records()? {
        if let SessionRecord::Comm {
            time, tid, name, ..
        } = record?
        {
            threads.push((tid, time, name));
        }
    }
    // A thread may have the number of one that has ended.
    let thread = |node: &ContextNode| {
        let names = threads.iter();
        let names = names.filter(|(tid, time, _)| Some(*tid) == node.tid && *time <= node.time);
        let last = names.max_by_key(|(_, time, _)| *time);
        last.map_or("earlier".to_owned(), |(_, _, name)| name.clone())
    };
    let contexts = reader.contexts()?.context("contexts")?;
    let counter = contexts.counter(counter).context("the counter")?;
    let mut paths: HashMap<NodeId, String> = HashMap::new();
    let mut values = Values::new();
    for id in contexts.node_ids() {
        let node = contexts.node(id).context("a node")?;
        let start = match node.parent {
            Some(parent) => paths.get(&parent).context("a parent")?.clone(),
            None => thread(node),
        };
        let site = node.site.and_then(|site| contexts.site(site));
        let site = site.map_or("-".to_owned(), |site| site.pc.get().to_string());
        let name = names.get(&node.address.get()).context("a name")?;
        let path = format!("{start}\t{site}:{name}");
        if is_own(&path) {
            *values.entry(path.clone()).or_default() += contexts.value(id, counter);
        }
        paths.insert(id, path);
    }
    Ok(values)
}

/// Returns the methods of a session by their addresses.
pub(crate) fn names(session: &Path) -> Result<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for (file, base) in PARTS {
        // A part without methods has no file.
        let lines = fs::read_to_string(session.join("symbols").join(file)).unwrap_or_default();
        for line in lines.lines() {
            if let [address, _, class, method, descriptor, ..] =
                line.split('\t').collect::<Vec<_>>()[..]
                && let Some(address) = address.strip_prefix("0x")
            {
                let address = u64::from_str_radix(address, 16)?;
                let name = format!("{}.{method}{descriptor}", readable(class));
                names.insert(base + address - NAMES_OFFSET, name);
            }
        }
    }
    Ok(names)
}

pub(crate) fn ensure_equal(found: &Values, expected: &Values) -> Result<()> {
    let differ = |context: &&String| found.get(*context) != expected.get(*context);
    let all: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differ: Vec<_> = all.into_iter().filter(differ).collect();
    let shown: Vec<_> = differ
        .iter()
        .take(10)
        .map(|context| (expected.get(*context), found.get(*context), context))
        .collect();
    ensure!(
        differ.is_empty(),
        "{} of {} contexts differ (expected, found): {shown:#?}",
        differ.len(),
        expected.len()
    );
    Ok(())
}

/// Checks that an annotation and metrics, which find the class file in the session, have so many calls of `product`.
fn ensure_instructions(session: &Path, calls: u64) -> Result<()> {
    let json = |arguments: &[&str]| -> Result<serde_json::Value> {
        let mut varid = testbed()?.varid();
        varid.args(arguments).args(["--format", "json", "-i"]);
        Ok(serde_json::from_str(&printed(varid.arg(session))?)?)
    };
    let annotation = json(&["annotate", "Contexts.product", "--measure", "bytecodes"])?;
    let lines = annotation["files"].as_array().into_iter().flatten();
    let lines = lines.flat_map(|file| file["lines"].as_array().into_iter().flatten());
    let found: Vec<_> = lines
        .flat_map(|line| line["instructions"].as_array().into_iter().flatten())
        .map(|one| (one["text"].as_str(), one["self"].as_u64()))
        .collect();
    let expected = ["iload_0", "iload_1", "imul", "ireturn"];
    let expected = expected.map(|name| (Some(name), Some(calls)));
    ensure!(found == expected, "{calls} calls: {annotation:#}");
    let metrics = json(&["metrics"])?;
    let methods = metrics["methods"].as_array().into_iter().flatten();
    let mut products = methods.filter(|row| row["method"] == "Contexts.product");
    let product = products.next().context("product")?;
    ensure!(
        product["calls"] == calls && product["size"] == 4,
        "{product}"
    );
    ensure!(product["bytecodes"] == 4 * calls, "{product}");
    let opcodes = metrics["opcodes"].as_array().into_iter().flatten();
    let executions = opcodes.filter_map(|row| row["executions"].as_u64());
    let methods = metrics["methods"].as_array().into_iter().flatten();
    let bytecodes = methods.filter_map(|row| row["bytecodes"].as_u64());
    ensure!(
        executions.sum::<u64>() == bytecodes.sum::<u64>(),
        "opcodes of other executions"
    );
    Ok(())
}

#[test]
fn calls_are_those_of_jvmti_interpreted_and_compiled() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(PROGRAM, folder.path())?;
    let expected = oracle(folder.path())?;
    ensure!(expected.len() > 300, "{expected:?}");
    let mut runs = vec![("mixed", &["--bytecodes"][..], "-Xmixed")];
    if scale() == Scale::Long {
        runs.push(("interpreted", &[], "-Xint"));
        runs.push(("compiled", &["--bytecodes"], "-Xcomp"));
        runs.push(("calls only", &[], "-Xmixed"));
    }
    for (name, options, java) in runs {
        let session = folder.path().join(name);
        exact(folder.path(), &session, options, &[java])?;
        let calls = read(&session, "calls")?;
        ensure_equal(&calls, &expected).context(name)?;
        if !options.is_empty() {
            // Two loads, a multiplication and a return.
            let is_product = |context: &String| context.ends_with(".product(II)I");
            let products = read(&session, "bytecodes")?;
            let products = products
                .into_iter()
                .filter(|(context, _)| is_product(context));
            let four = |(context, count): (&String, &u64)| (context.clone(), 4 * count);
            let called = calls.iter().filter(|(context, _)| is_product(context));
            ensure_equal(&products.collect(), &called.map(four).collect())?;
        }
        if name == "mixed" {
            let called = calls
                .iter()
                .filter(|(context, _)| context.contains(".product(II)I"));
            ensure_instructions(&session, called.map(|(_, count)| count).sum())?;
        }
    }
    Ok(())
}

#[test]
fn a_killed_vm_has_all_that_it_has_counted() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(PROGRAM, folder.path())?;
    let expected = oracle(folder.path())?;
    let session = folder.path().join("session");
    let mut varid = varid(&[], &session)?
        .arg("--")
        .arg(format!("{JDK}/java"))
        .arg("-cp")
        .arg(folder.path())
        .args([PROGRAM, ROUNDS, "forever"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(varid.stdout.take().context("its output")?).lines();
    lines.next().context("the result")??;
    let pid: i32 = lines.next().context("the process")??.parse()?;
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    )?;
    ensure!(varid.wait()?.code() == Some(128 + 9));
    let mut found = read(&session, "calls")?;
    // What the program does forever is one more call of `switched`, and what that calls. How much of it there is depends on when the VM is killed.
    let after = found
        .keys()
        .filter(|context| !expected.contains_key(*context));
    let after: Vec<_> = after.collect();
    let call = after
        .iter()
        .find(|context| context.ends_with(".switched(I)I"));
    let is_of_loop =
        |context: &&String| call.is_some_and(|call| context.starts_with(call.as_str()));
    ensure!(
        after.iter().all(is_of_loop),
        "contexts of the loop: {after:#?}"
    );
    found.retain(|context, _| expected.contains_key(context));
    ensure_equal(&found, &expected)
}

#[test]
fn what_cannot_be_counted_is_said() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let run = |options: &[&str], command: &[&str]| -> Result<(Output, String)> {
        let output = varid(options, &session)?.args(command).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output, said))
    };
    for (options, command, code, sentence) in [
        (&[][..], &[][..], 2, "required arguments"),
        (&["--nodes", "1"][..], &["true"][..], 2, "64K at least"),
        (
            &["--nodes", "9999999G"],
            &["true"],
            125,
            "less than --nodes asks for",
        ),
        (&[], &["/nowhere/java"], 127, "cannot run '/nowhere/java'"),
        (&[], &["true"], 0, "no Java VM"),
    ] {
        let (output, said) = run(options, command)?;
        ensure!(
            output.status.code() == Some(code) && said.contains(sentence),
            "{options:?} {command:?}: {output:?}"
        );
    }
    // Nothing else is left beside the session.
    let left = fs::read_dir(folder.path())?.count();
    ensure!(left == 1, "{left} files");
    Ok(())
}
