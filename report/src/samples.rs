//! The individual samples of a profile, for views that need more than sums.

use std::ops::Range;

use varid_model::{MonotonicNs, Period};

use crate::{
    stacks::{StackId, bytes_of},
    tasks::TaskId,
    weights::{EventId, WeightTable, WeightTableBuilder},
};

/// A sample of a [`SampleTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSample {
    /// The time of the sample.
    pub time: MonotonicNs,
    /// The thread under its name.
    pub task: TaskId,
    /// The leaf's stack. None if no frame is known.
    pub stack: Option<StackId>,
    /// The sampled event.
    pub event: EventId,
    /// The number of events that it stands for.
    pub period: Period,
}

/// The samples of a profile in order of time, stored as columns with 28 bytes for each sample.
///
/// Exists if [`Options::sample_table`](crate::Options::sample_table) is set.
#[derive(Debug, Clone, Default)]
pub struct SampleTable {
    times: Vec<MonotonicNs>,
    tasks: Vec<TaskId>,
    stacks: Vec<Option<StackId>>,
    events: Vec<EventId>,
    periods: Vec<Period>,
}

impl SampleTable {
    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Returns true if there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// All samples in the order of the recording, which is chronological.
    pub fn iter(&self) -> impl Iterator<Item = ProfileSample> {
        let ids = self.tasks.iter().zip(&self.stacks).zip(&self.events);
        let all = self.times.iter().zip(ids).zip(&self.periods);
        all.map(
            |((&time, ((&task, &stack), &event)), &period)| ProfileSample {
                time,
                task,
                stack,
                event,
                period,
            },
        )
    }

    /// Returns the weights of the samples in a time span, for a view of that span.
    #[must_use]
    pub fn weights(&self, span: Range<MonotonicNs>) -> WeightTable {
        let mut weights = WeightTableBuilder::default();
        for sample in self.iter().filter(|sample| span.contains(&sample.time)) {
            weights.add_sample(sample.task, sample.stack, sample.event, sample.period);
        }
        weights.finish()
    }

    /// Number of bytes allocated for the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = [
            bytes_of(&self.times),
            bytes_of(&self.tasks),
            bytes_of(&self.stacks),
            bytes_of(&self.events),
            bytes_of(&self.periods),
        ];
        all.into_iter().fold(0, usize::saturating_add)
    }

    pub(crate) fn push(&mut self, sample: ProfileSample) {
        self.times.push(sample.time);
        self.tasks.push(sample.task);
        self.stacks.push(sample.stack);
        self.events.push(sample.event);
        self.periods.push(sample.period);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.times.shrink_to_fit();
        self.tasks.shrink_to_fit();
        self.stacks.shrink_to_fit();
        self.events.shrink_to_fit();
        self.periods.shrink_to_fit();
    }
}
