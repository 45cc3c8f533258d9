//! The weights of stacks in each counter.

use varid_model::Period;
use varid_recording::CounterId;

use crate::{
    fast_hash::FastMap,
    index::compact_index_types,
    stacks::{StackId, StackTable, bytes_of},
    tasks::TaskId,
};

varid_model::index_types! {
    /// Index of an event in the manifest.
    EventId;
}

/// The counter of a value of a weight: a column of a [`WeightTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProfileCounter {
    /// Number of samples of an event.
    Samples(EventId),
    /// Sum of the periods of an event's samples, in the event's unit, for example nanoseconds for cpu-clock.
    Period(EventId),
    /// A counter of the session's calling contexts. It is exact, not sampled.
    Context(CounterId),
}

impl ProfileCounter {
    /// The counters of an event's samples.
    #[must_use]
    pub const fn of_samples(event: EventId) -> [Self; 2] {
        [Self::Samples(event), Self::Period(event)]
    }
}

/// The most counters of a [`Weight`].
pub const MAX_COUNTERS: usize = 4;

/// The values of up to [`MAX_COUNTERS`] counters, in the order of the counters. Values of further counters are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight([u64; MAX_COUNTERS]);

impl Weight {
    /// Makes a weight from these values. Values after the first [`MAX_COUNTERS`] are ignored.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = u64>) -> Self {
        let mut weight = Self::default();
        for (place, value) in weight.0.iter_mut().zip(values) {
            *place = value;
        }
        weight
    }

    /// Returns the value of a counter, given by its index.
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or_default()
    }

    /// Adds another weight, saturating.
    pub fn add(&mut self, other: Self) {
        for (value, other) in self.0.iter_mut().zip(other.0) {
            *value = value.saturating_add(other);
        }
    }

    /// Returns what is left of the weight without another one. Values do not go below 0.
    #[must_use]
    pub fn without(mut self, other: Self) -> Self {
        for (value, other) in self.0.iter_mut().zip(other.0) {
            *value = value.saturating_sub(other);
        }
        self
    }

    /// Returns true if all values are 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0)
    }
}

/// A number of samples, and the sum of their periods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleWeight {
    samples: u64,
    period: u64,
}

impl SampleWeight {
    /// Makes a weight from a number of samples and the sum of their periods.
    #[must_use]
    pub const fn new(samples: u64, period: u64) -> Self {
        Self { samples, period }
    }

    /// Number of samples.
    #[must_use]
    pub const fn samples(self) -> u64 {
        self.samples
    }

    /// Sum of their periods.
    #[must_use]
    pub const fn period(self) -> u64 {
        self.period
    }

    /// Adds another weight, saturating.
    pub const fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.period = self.period.saturating_add(other.period);
    }

    /// Returns true if both values are 0.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.samples == 0 && self.period == 0
    }
}

/// Converts a weight of [`ProfileCounter::of_samples`].
impl From<Weight> for SampleWeight {
    fn from(weight: Weight) -> Self {
        Self::new(weight.get(0), weight.get(1))
    }
}

/// A row of a [`WeightTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightRow<W = Weight> {
    /// The thread.
    pub task: TaskId,
    /// The stack whose leaf was sampled or counted. None if no frame is known.
    pub stack: Option<StackId>,
    /// The values of the requested counters.
    pub weight: W,
}

/// The weights of stacks in tasks. It has a row for each pair of a task and a leaf's stack, and a column for each counter.
///
/// A row takes 8 bytes, plus 8 for each counter that has a value in its page of 64 rows.
#[derive(Debug, Clone, Default)]
pub struct WeightTable {
    counters: Vec<ProfileCounter>,
    /// By row.
    tasks: Vec<TaskId>,
    /// By row.
    stacks: Vec<Option<StackId>>,
    /// By counter.
    columns: Vec<Column>,
}

/// The values of a counter, by row. Pages without values are not allocated: if there are a thousand events, most have
/// no samples in most rows.
#[derive(Debug, Clone, Default)]
struct Column {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
}

/// Rows in a page.
const PAGE: usize = 64;

impl Column {
    fn get(&self, row: usize) -> u64 {
        let page = self.pages.get(row / PAGE).and_then(Option::as_ref);
        let value = page.and_then(|page| page.get(row % PAGE));
        value.copied().unwrap_or_default()
    }

    fn add(&mut self, row: usize, value: u64) {
        let page = row / PAGE;
        if self.pages.len() <= page {
            self.pages.resize(page.saturating_add(1), None);
        }
        if let Some(page) = self.pages.get_mut(page) {
            let values = page.get_or_insert_with(|| Box::new([0; PAGE]));
            if let Some(sum) = values.get_mut(row % PAGE) {
                *sum = sum.saturating_add(value);
            }
        }
    }

    fn sum(&self) -> u64 {
        let values = self.pages.iter().flatten().flat_map(|page| page.iter());
        values.fold(0, |sum, value| sum.saturating_add(*value))
    }

    fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        let pages = pages.saturating_mul(size_of::<[u64; PAGE]>());
        bytes_of(&self.pages).saturating_add(pages)
    }
}

impl WeightTable {
    /// The counters of the columns.
    #[must_use]
    pub fn counters(&self) -> &[ProfileCounter] {
        &self.counters
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Returns true if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The rows that have a value in any of these counters. Counters that are not in the table are 0.
    pub fn rows(&self, counters: &[ProfileCounter]) -> impl Iterator<Item = WeightRow> + use<'_> {
        let columns = counters.iter().map(|counter| self.column(*counter));
        let columns: Vec<_> = columns.take(MAX_COUNTERS).collect();
        let rows = self.tasks.iter().zip(&self.stacks).enumerate();
        rows.filter_map(move |(row, (&task, &stack))| {
            let value = |column: &Option<&Column>| column.map_or(0, |column| column.get(row));
            let weight = Weight::new(columns.iter().map(value));
            let row = WeightRow {
                task,
                stack,
                weight,
            };
            (!weight.is_zero()).then_some(row)
        })
    }

    /// The rows that have samples of an event.
    pub fn sample_rows(
        &self,
        event: EventId,
    ) -> impl Iterator<Item = WeightRow<SampleWeight>> + use<'_> {
        let rows = self.rows(&ProfileCounter::of_samples(event));
        rows.map(|row| WeightRow {
            task: row.task,
            stack: row.stack,
            weight: row.weight.into(),
        })
    }

    /// The sum of all rows.
    #[must_use]
    pub fn sum(&self, counters: &[ProfileCounter]) -> Weight {
        let sum = |counter: &ProfileCounter| self.column(*counter).map_or(0, Column::sum);
        Weight::new(counters.iter().map(sum))
    }

    /// The sum of an event's samples.
    #[must_use]
    pub fn sample_sum(&self, event: EventId) -> SampleWeight {
        self.sum(&ProfileCounter::of_samples(event)).into()
    }

    /// The own weight of each stack, by [`StackId`].
    #[must_use]
    pub fn by_stack(&self, stacks: &StackTable, counters: &[ProfileCounter]) -> Vec<Weight> {
        let mut weights = vec![Weight::default(); stacks.len()];
        for row in self.rows(counters) {
            let stack = row.stack.and_then(|stack| weights.get_mut(stack.index()));
            if let Some(weight) = stack {
                weight.add(row.weight);
            }
        }
        weights
    }

    /// Number of bytes allocated for the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ids = bytes_of(&self.tasks).saturating_add(bytes_of(&self.stacks));
        let columns = self.columns.iter().map(Column::bytes);
        columns.fold(ids, usize::saturating_add)
    }

    fn column(&self, counter: ProfileCounter) -> Option<&Column> {
        let place = self.counters.iter().position(|known| *known == counter);
        self.columns.get(place?)
    }
}

compact_index_types! {
    /// Index of a row of a [`WeightTable`].
    RowId;
}

/// Identifies a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey {
    task: TaskId,
    stack: Option<StackId>,
}

/// Builds a weight table.
#[derive(Debug, Default)]
pub(crate) struct WeightTableBuilder {
    table: WeightTable,
    /// Column indices of counters.
    columns: FastMap<ProfileCounter, usize>,
    /// By stack, its first row: most stacks occur in one task only, and new stacks have the highest indices.
    first_rows: Vec<Option<RowId>>,
    /// Further rows.
    rows: FastMap<RowKey, RowId>,
    last: Option<LastRow>,
}

/// The row that was used last.
#[derive(Debug, Clone, Copy)]
struct LastRow {
    key: RowKey,
    row: RowId,
}

impl WeightTableBuilder {
    /// Adds the weight of a sample.
    pub fn add_sample(
        &mut self,
        task: TaskId,
        stack: Option<StackId>,
        event: EventId,
        period: Period,
    ) {
        let [samples, periods] = ProfileCounter::of_samples(event);
        let values = [(samples, 1), (periods, period.get())];
        self.add(task, stack, values);
    }

    /// Adds values of counters to those of a stack in a task.
    pub fn add(
        &mut self,
        task: TaskId,
        stack: Option<StackId>,
        values: impl IntoIterator<Item = (ProfileCounter, u64)>,
    ) {
        let key = RowKey { task, stack };
        let row = match self.last {
            Some(last) if last.key == key => Some(last.row),
            _ => self.row(key),
        };
        let Some(row) = row else { return };
        self.last = Some(LastRow { key, row });
        for (counter, value) in values {
            let column = self.column(counter);
            if let Some(column) = self.table.columns.get_mut(column) {
                column.add(row.index(), value);
            }
        }
    }

    /// Returns the row with this key. None if there is no index left: a table has fewer rows than the recording has bytes.
    fn row(&mut self, key: RowKey) -> Option<RowId> {
        let next = RowId::at(self.table.len())?;
        let has_task = |row: RowId| self.table.tasks.get(row.index()) == Some(&key.task);
        let first = key
            .stack
            .and_then(|stack| first_row(&mut self.first_rows, stack));
        let row = match first {
            Some(first) if first.is_none_or(has_task) => *first.get_or_insert(next),
            _ => *self.rows.entry(key).or_insert(next),
        };
        if row == next {
            self.table.tasks.push(key.task);
            self.table.stacks.push(key.stack);
        }
        Some(row)
    }

    fn column(&mut self, counter: ProfileCounter) -> usize {
        let counters = &self.table.counters;
        // In most recordings there is one event, whose counters come first.
        if let Some(place) = counters.iter().take(4).position(|known| *known == counter) {
            return place;
        }
        let next = counters.len();
        let column = *self.columns.entry(counter).or_insert(next);
        if column == next {
            self.table.counters.push(counter);
            self.table.columns.push(Column::default());
        }
        column
    }

    /// Returns the table and frees the lookup structures.
    pub fn finish(self) -> WeightTable {
        let mut table = self.table;
        table.tasks.shrink_to_fit();
        table.stacks.shrink_to_fit();
        table
    }
}

/// The entry for the first row of a stack.
fn first_row(rows: &mut Vec<Option<RowId>>, stack: StackId) -> Option<&mut Option<RowId>> {
    let place = stack.index();
    if rows.len() <= place {
        rows.resize(place.saturating_add(1), None);
    }
    rows.get_mut(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{frames::FrameId, stack_table_builder::StackTableBuilder};

    #[test]
    fn events_and_exact_counts_are_columns_of_one_table() {
        let (cycles, misses) = (EventId(0), EventId(7));
        let mut stacks = StackTableBuilder::default();
        let [run, draw] =
            [vec![FrameId(1)], vec![FrameId(1), FrameId(2)]].map(|frames| stacks.intern(frames));
        let mut weights = WeightTableBuilder::default();
        for (task, stack, event) in [
            (0, run, cycles),
            (0, draw, misses),
            (1, draw, misses),
            (0, draw, misses),
        ] {
            weights.add_sample(TaskId(task), stack, event, Period::new(10));
        }
        let exact = [CounterId(0), CounterId(1)].map(ProfileCounter::Context);
        weights.add(TaskId(2), run, exact.into_iter().zip([3, 2]));
        let (stacks, table) = (stacks.finish(), weights.finish());
        assert_eq!(table.len(), 4);
        assert_eq!(table.sample_sum(cycles), SampleWeight::new(1, 10));
        assert_eq!(table.sample_sum(misses), SampleWeight::new(3, 30));
        assert_eq!(
            table.by_stack(&stacks, &ProfileCounter::of_samples(misses)),
            [Weight::default(), Weight::new([3, 30])]
        );
        assert_eq!(
            table.by_stack(&stacks, &exact),
            [Weight::new([3, 2]), Weight::default()]
        );
        let counted: Vec<_> = table
            .rows(&exact)
            .map(|row| (row.task, row.stack))
            .collect();
        assert_eq!(counted, [(TaskId(2), run)]);
        assert_eq!(table.sample_sum(EventId(3)), SampleWeight::default());
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_at_the_largest_number() {
        let mut weight = Weight::new([u64::MAX, 1]);
        weight.add(Weight::new([1, 1]));
        assert_eq!(weight, Weight::new([u64::MAX, 2]));
    }
}
