//! Tests that `varid exact --call-order` records each call, and each execution of a block with certain instructions, in its order.
#![cfg(target_arch = "x86_64")]

use crate::exact::{CONTEXTS, names, skip, varid};
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::path::Path;
use varid_model::CodeUnits;
use varid_recording::{CallEvent, CallOrder, CallOrderThread, Contexts, NodeId, SessionReader};
use varid_tests::{JDK, Scale, compile_class, scale};

/// What the events of a session say.
struct Replayed {
    contexts: Contexts,
    order: CallOrder,
    /// How often each context, and each of its blocks with events, was entered.
    entered: HashMap<(NodeId, Option<CodeUnits>), u64>,
    events: u64,
}

/// Replays the events of a session: the parent of a context that is called, and a context whose block is entered, must be on the stack.
fn replay(session: &Path) -> Result<Replayed> {
    let contexts = SessionReader::open(session)?
        .contexts()?
        .context("contexts")?;
    let order = CallOrder::open(session)?.context("the order of calls")?;
    let (mut entered, mut events) = (HashMap::new(), 0);
    for thread in order.threads() {
        let mut stack: Vec<NodeId> = Vec::new();
        for event in order.events(thread) {
            let event = event?;
            let node = event.node();
            let context = contexts.node(node).context("a context")?;
            ensure!((context.pid, context.tid) == (thread.pid, thread.tid));
            let (below, block) = match event {
                CallEvent::Enter(_) => (context.parent, None),
                CallEvent::Block { start, .. } => (Some(node), Some(start)),
            };
            match below {
                None => stack.clear(),
                Some(below) => {
                    let at = stack.iter().rposition(|on_stack| *on_stack == below);
                    let at = at.with_context(|| format!("{event:?} is not above {stack:?}"))?;
                    stack.truncate(at + 1);
                }
            }
            if block.is_none() {
                stack.push(node);
            }
            *entered.entry((node, block)).or_insert(0) += 1;
            events += 1;
        }
    }
    Ok(Replayed {
        contexts,
        order,
        entered,
        events,
    })
}

impl Replayed {
    /// Returns how much the events differ from the counts. Contexts without bytecodes count no calls of their own, and have no events.
    fn difference(&self) -> Result<u64> {
        let counter = |name| self.contexts.counter(name).context("a counter");
        let (calls, bytecodes) = (counter("calls")?, counter("bytecodes")?);
        let mut difference = 0;
        for node in self.contexts.node_ids() {
            let is_counted = self.contexts.value(node, bytecodes) > 0;
            let expected = match is_counted {
                true => self.contexts.value(node, calls),
                false => 0,
            };
            let found = self.entered.get(&(node, None)).copied().unwrap_or(0);
            difference += found.abs_diff(expected);
        }
        for ((node, block), found) in &self.entered {
            let Some(block) = block else { continue };
            // The first instruction of a block runs as often as the block.
            let counts = self.contexts.counts(*node).iter();
            let mut counts =
                counts.filter(|it| it.counter == bytecodes && it.place == Some(block.get()));
            let expected = counts.next().map_or(0, |it| it.value);
            difference += found.abs_diff(expected);
        }
        Ok(difference)
    }
}

/// Records the order of a program.
fn record(folder: &Path, session: &Path, java: &str, program: &[&str]) -> Result<()> {
    let output = varid(&["--call-order"], session)?
        .arg("--")
        .arg(format!("{JDK}/java"))
        .arg(java)
        .arg("-cp")
        .arg(folder)
        .args(program)
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!said.contains("incomplete"), "{said}");
    Ok(())
}

/// Returns the ways in which programs run: interpreted and compiled, in the long lane each for itself.
fn modes() -> &'static [&'static str] {
    match scale() {
        Scale::Long => &["-Xmixed", "-Xint", "-Xcomp"],
        _ => &["-Xmixed"],
    }
}

#[test]
fn events_are_as_many_as_calls_and_nest_as_contexts_do() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class("Contexts", folder.path())?;
    for mode in modes() {
        let session = folder.path().join(mode);
        record(folder.path(), &session, mode, &["Contexts", "25"])?;
        let replayed = replay(&session)?;
        ensure!(replayed.events > 50_000, "{} events", replayed.events);
        ensure!(replayed.order.threads().len() >= 4);
        let incomplete = |thread: &CallOrderThread| thread.incomplete.is_some();
        ensure!(!replayed.order.threads().iter().any(incomplete), "{mode}");
        let difference = replayed.difference()?;
        // Threads of the VM are still running when it ends.
        let threads = replayed.order.threads().len() as u64;
        ensure!(difference <= threads, "{mode}: {difference} differences");
    }
    Ok(())
}

/// Appends what `Order.rounds` does: names of methods that are called, and of blocks by their methods.
fn rounds(n: u32, events: &mut Vec<String>) {
    let mut add = |event: &str| events.push(event.to_owned());
    add("rounds");
    for i in 0..n {
        // The body of the loop has a remainder.
        add("block of rounds");
        // Its first block has a remainder, too: the call is its event.
        add("chosen");
        match i % 2 {
            1 => {
                add("block of chosen");
                add("half");
            }
            _ => add("checked"),
        }
        add("caught");
        for _ in 0..=i % 4 {
            add("thrown");
        }
        add("checked");
        add("block of checked");
        add("half");
    }
}

#[test]
fn the_order_is_the_program_s() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class("Order", folder.path())?;
    let session = folder.path().join("session");
    record(folder.path(), &session, "-Xmixed", &["Order", "4000"])?;
    let (replayed, names) = (replay(&session)?, names(&session)?);
    let own = |thread: &CallOrderThread| -> Result<Vec<String>> {
        let mut found = Vec::new();
        for event in replayed.order.events(thread) {
            let event = event?;
            let node = replayed.contexts.node(event.node()).context("a context")?;
            let name = names.get(&node.address.get()).context("a name")?;
            let Some(method) = name.strip_prefix("Order.") else {
                continue;
            };
            let method = method.split('(').next().unwrap_or_default();
            found.push(match event {
                CallEvent::Enter(_) => method.to_owned(),
                CallEvent::Block { .. } => format!("block of {method}"),
            });
        }
        // The order of `rounds`, without what precedes and follows it.
        let start = found.iter().position(|method| method == "rounds");
        Ok(found.split_off(start.unwrap_or(found.len())))
    };
    let threads = replayed.order.threads().iter();
    let mut found = threads.map(own).collect::<Result<Vec<_>>>()?;
    found.retain(|events| !events.is_empty());
    let expected = [4000, 2000].map(|n| {
        let mut events = Vec::new();
        rounds(n, &mut events);
        events
    });
    for (found, expected) in found.iter().zip(&expected) {
        let differ = found
            .iter()
            .zip(expected)
            .position(|(one, other)| one != other);
        let around = |events: &[String]| {
            let start = differ.unwrap_or(0).saturating_sub(8);
            events
                .iter()
                .skip(start)
                .take(16)
                .cloned()
                .collect::<Vec<_>>()
        };
        ensure!(
            found == expected,
            "{differ:?}: {:?} instead of {:?}",
            around(found),
            around(expected)
        );
    }
    ensure!(found.len() == 2, "{} threads", found.len());
    Ok(())
}

#[test]
fn a_killed_vm_has_the_first_events() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let session = folder.path().join("session");
    CONTEXTS.killed_after_its_work(folder.path(), &session, &["--call-order"])?;
    let replayed = replay(&session)?;
    ensure!(replayed.events > 50_000, "{} events", replayed.events);
    // Each thread may have recorded an event that it has not counted.
    let (difference, threads) = (replayed.difference()?, replayed.order.threads().len());
    ensure!(difference <= threads as u64, "{difference} differences");
    Ok(())
}
