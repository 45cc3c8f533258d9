//! The samples of each method, line, call and thread of an event.

use std::collections::HashMap;

use varid_model::{MonotonicNs, Period};

use super::tally::{Clock, Counted, LiveShare, LiveSpan, Tally, scale};
use crate::{
    frames::{FrameId, SymbolId},
    tasks::TaskId,
};

/// The most distinct calls that are counted, which limits memory. An app has some 10,000.
const MAX_CALLS: usize = 1 << 20;

/// A frame of a sample.
#[derive(Debug, Clone, Copy)]
pub struct LiveFrame {
    pub frame: FrameId,
    /// The first symbol with the name of the frame's symbol.
    pub symbol: SymbolId,
}

/// The sums of an event's samples.
#[derive(Debug, Default)]
pub struct EventTables {
    clock: Clock,
    all: Tally,
    /// By [`SymbolId`], [`FrameId`] and [`TaskId`].
    symbols: Vec<Tally>,
    frames: Vec<Tally>,
    tasks: Vec<Tally>,
    /// Pairs of caller and callee.
    calls: HashMap<(SymbolId, SymbolId), Tally>,
}

impl EventTables {
    /// Adds a sample with its frames and symbols, leaf first.
    pub fn add(&mut self, time: MonotonicNs, period: Period, task: TaskId, stack: &[LiveFrame]) {
        let (sample, factor) = self.clock.count(time, period.get());
        if let Some(factor) = factor {
            let rows = [&mut self.symbols, &mut self.frames, &mut self.tasks];
            scale(rows.into_iter().flatten(), factor);
            scale(self.calls.values_mut(), factor);
            scale([&mut self.all], factor);
        }
        add(&mut self.all, sample);
        if let Some(row) = at(&mut self.tasks, task.0) {
            add(row, sample);
        }
        for (depth, LiveFrame { frame, symbol }) in stack.iter().enumerate() {
            let rows = [
                at(&mut self.frames, frame.0),
                at(&mut self.symbols, symbol.0),
            ];
            for row in rows.into_iter().flatten() {
                row.add_total(sample);
                if depth == 0 {
                    row.add_own(sample);
                }
            }
        }
        for (callee, caller) in stack.iter().zip(stack.iter().skip(1)) {
            let call = (callee.symbol, caller.symbol);
            if self.calls.len() < MAX_CALLS || self.calls.contains_key(&call) {
                self.calls.entry(call).or_default().add_total(sample);
            }
        }
    }

    /// The time of the latest sample.
    pub const fn latest(&self) -> MonotonicNs {
        self.clock.latest()
    }

    /// All samples.
    pub fn all(&self, span: LiveSpan, now: MonotonicNs) -> LiveShare {
        self.clock.share(&self.all, span, now)
    }

    /// The symbols that were sampled.
    pub fn symbols(
        &self,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = (SymbolId, LiveShare)> {
        self.rows(&self.symbols, span, now)
            .map(|(number, share)| (SymbolId(number), share))
    }

    /// The lines that were sampled.
    pub fn frames(
        &self,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = (FrameId, LiveShare)> {
        self.rows(&self.frames, span, now)
            .map(|(number, share)| (FrameId(number), share))
    }

    /// The threads that were sampled.
    pub fn tasks(
        &self,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = (TaskId, LiveShare)> {
        self.rows(&self.tasks, span, now)
            .map(|(number, share)| (TaskId(number), share))
    }

    /// The callers of a symbol.
    pub fn callers(
        &self,
        callee: SymbolId,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = (SymbolId, LiveShare)> {
        let of_callee = self.calls.iter().filter(move |((of, _), _)| *of == callee);
        of_callee.map(move |((_, caller), tally)| (*caller, self.clock.share(tally, span, now)))
    }

    fn rows(
        &self,
        tallies: &[Tally],
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = (u32, LiveShare)> {
        let shares = tallies
            .iter()
            .map(move |tally| self.clock.share(tally, span, now));
        (0..)
            .zip(shares)
            .filter(|(_, share)| share.total.samples > 0.0)
    }
}

fn add(tally: &mut Tally, sample: Counted) {
    tally.add_own(sample);
    tally.add_total(sample);
}

/// Returns the row at an index. Adds rows if necessary.
fn at(tallies: &mut Vec<Tally>, number: u32) -> Option<&mut Tally> {
    // Each table has fewer rows than the recording has bytes.
    let index = usize::try_from(number).ok()?;
    if tallies.len() <= index {
        tallies.resize(index.saturating_add(1), Tally::default());
    }
    tallies.get_mut(index)
}
