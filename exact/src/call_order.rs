//! The order of calls of a VM in the session.

use std::collections::HashMap;

use varid_exact_agent::record::ThreadRecord;
use varid_instrument::{Executions, node};
use varid_model::{ById, CodeUnits, Pid, Tid};
use varid_recording::{CallEvent, CallOrderWriter, NodeId};

use crate::{
    context::Node,
    error::Result,
    order::{Order, Word},
    tables::CountedMethod,
    tree::Tree,
};

/// The order of calls of a VM, and what its events are in the session.
#[derive(Debug)]
pub(crate) struct CallOrder {
    pid: Pid,
    order: Order,
    /// By the words of the tree.
    events: ById<Word, Counted>,
}

/// A word of the tree whose increments are events.
#[derive(Debug, Clone, Copy)]
struct Counted {
    event: CallEvent,
    /// Its value.
    value: u64,
    /// The events so far.
    events: u64,
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) events: u64,
    /// Why events are missing.
    pub(crate) incomplete: Vec<String>,
}

impl CallOrder {
    pub(crate) fn new(pid: Pid, order: Order) -> Self {
        Self {
            pid,
            order,
            events: ById::default(),
        }
    }

    /// Adds a context of the session.
    pub(crate) fn add(&mut self, node: &Node, method: &CountedMethod, id: NodeId) {
        self.add_word(node, node::CALLS, CallEvent::Enter(id), node.calls);
        for block in &method.table.blocks {
            if let Executions::Ordered(counter) = block.executions {
                let event = CallEvent::Block {
                    node: id,
                    start: CodeUnits::new(block.start.0.into()),
                };
                let value = node.counters.get(usize::from(counter));
                let at = node::counter(counter.into());
                self.add_word(node, at, event, value.copied().unwrap_or(0));
            }
        }
    }

    fn add_word(&mut self, node: &Node, at: i64, event: CallEvent, value: u64) {
        let word = node.offset.checked_add_signed(at);
        let word = word.and_then(|offset| offset.checked_div(node::WORD));
        if let Some(word) = word.and_then(|word| Word::try_from(word).ok()) {
            let events = 0;
            self.events.insert(
                word,
                Counted {
                    event,
                    value,
                    events,
                },
            );
        }
    }

    /// Writes the events of all threads of a tree, which was visited.
    pub(crate) fn write(
        mut self,
        tree: &mut Tree,
        threads: &HashMap<u64, ThreadRecord>,
        writer: &mut CallOrderWriter,
    ) -> Result<Written> {
        let mut written = Written::default();
        let chunks = tree.chunks(&self.order)?;
        let roots = tree.roots().to_vec();
        for root in &roots {
            let thread = threads.get(root);
            let tid = thread.map(|thread| Tid::new(thread.tid));
            writer.start_thread(self.pid, tid)?;
            let ended = self.write_thread(tree, *root, chunks.get(root), &mut written, writer);
            let reason = match ended {
                Err(error @ crate::Error::Recording(_)) => return Err(error),
                Err(error) => Some(error.to_string()),
                Ok(()) => None,
            };
            writer.end_thread(reason.as_deref())?;
            written.incomplete.extend(reason);
        }
        if tree.has_lost_events()? {
            written.incomplete.push(
                "events of the call order had no room on the disk or in the tree: --nodes makes that larger".to_owned(),
            );
        } else if written.incomplete.is_empty() {
            written.incomplete.extend(self.difference(roots.len()));
        }
        Ok(written)
    }

    /// Writes the events of a thread.
    fn write_thread(
        &mut self,
        tree: &mut Tree,
        root: u64,
        chunks: Option<&Vec<u64>>,
        written: &mut Written,
        writer: &mut CallOrderWriter,
    ) -> Result<()> {
        let Self { order, events, .. } = self;
        let mut add = |words: &[Word]| {
            for word in words {
                let Some(counted) = events.get_mut(word) else {
                    return Err(crate::Error::Event { word: *word });
                };
                counted.events = counted.events.saturating_add(1);
                writer.add(counted.event)?;
                written.events = written.events.saturating_add(1);
            }
            Ok(())
        };
        order.visit(root, &mut add)?;
        for chunk in chunks.into_iter().flatten() {
            add(&tree.events(*chunk)?)?;
        }
        Ok(())
    }

    /// Compares the events with the counts. Each thread that was killed may have recorded an event that it did not count.
    fn difference(&self, threads: usize) -> Option<String> {
        let words = self.events.values();
        let differences = words.map(|it| it.events.abs_diff(it.value));
        let difference = differences.fold(0, u64::saturating_add);
        (difference > threads as u64).then(|| {
            format!("the order of calls and the counts differ by {difference} calls and blocks")
        })
    }
}
