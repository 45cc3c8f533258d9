//! How much does each stack weigh, in how many counters?

use varid_model::Period;

use crate::{
    fast_hash::FastMap,
    stacks::{NONE, StackId, StackTable, bytes_of, place},
    tasks::TaskId,
};

/// An event of a recording, by its place among the manifest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u32);

impl EventId {
    /// Its place among the manifest's events.
    #[must_use]
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What a part of a weight counts.
///
/// Sampled and exactly counted profiles differ in their counters only: the same tables and views show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProfileCounter {
    /// Samples of an event.
    Samples(EventId),
    /// The sum of the periods of an event's samples, in the event's unit: nanoseconds for cpu-clock.
    Period(EventId),
    /// Calls of a method. Exact: every one was counted.
    Invokes,
    /// Returns of a method. Exact.
    Returns,
    /// Times that a method was left by an exception. Exact.
    Unwinds,
}

impl ProfileCounter {
    /// What is counted of a sampled event, in the order of a [`SampleWeight`].
    #[must_use]
    pub const fn of_samples(event: EventId) -> [Self; 2] {
        [Self::Samples(event), Self::Period(event)]
    }

    /// What is counted of calls, in the order of a [`CallWeight`].
    pub const CALLS: [Self; 3] = [Self::Invokes, Self::Returns, Self::Unwinds];
}

/// The values of some counters, in the order in which they were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight<const N: usize>(pub [u64; N]);

/// Samples and the sum of their periods: [`ProfileCounter::of_samples`].
pub type SampleWeight = Weight<2>;

/// Calls, returns and exits by exception: [`ProfileCounter::CALLS`].
pub type CallWeight = Weight<3>;

impl<const N: usize> Weight<N> {
    /// Adds another. A sum that does not fit stays at the largest number.
    pub fn add(&mut self, other: Self) {
        for (value, other) in self.0.iter_mut().zip(other.0) {
            *value = value.saturating_add(other);
        }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0)
    }
}

impl<const N: usize> Default for Weight<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl SampleWeight {
    /// Samples.
    #[must_use]
    pub const fn samples(self) -> u64 {
        let [samples, _] = self.0;
        samples
    }

    /// The sum of their periods.
    #[must_use]
    pub const fn period(self) -> u64 {
        let [_, period] = self.0;
        period
    }
}

impl CallWeight {
    /// Calls.
    #[must_use]
    pub const fn invokes(self) -> u64 {
        let [invokes, ..] = self.0;
        invokes
    }

    /// Returns.
    #[must_use]
    pub const fn returns(self) -> u64 {
        let [_, returns, _] = self.0;
        returns
    }

    /// Exits by exception.
    #[must_use]
    pub const fn unwinds(self) -> u64 {
        let [.., unwinds] = self.0;
        unwinds
    }
}

/// A row of a [`WeightTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightRow<const N: usize> {
    /// Whose it is; none: of a whole process.
    pub task: Option<TaskId>,
    /// The stack whose leaf was sampled or counted; none: no frame is known.
    pub stack: Option<StackId>,
    /// The values of the counters that were asked for.
    pub weight: Weight<N>,
}

/// The weights of stacks in tasks: a row for each pair of a task and a leaf's stack, a column for each counter.
///
/// A row takes 8 bytes, and 8 for each counter that has a value in it or in one of the 63 rows around it.
#[derive(Debug, Clone, Default)]
pub struct WeightTable {
    counters: Vec<ProfileCounter>,
    /// By row; [`NONE`] of a whole process.
    tasks: Vec<u32>,
    /// By row; [`NONE`] for no stack.
    stacks: Vec<u32>,
    /// By counter.
    columns: Vec<Column>,
}

/// The values of a counter, by row. A page of rows without values is not there: most of a thousand events have no samples in
/// most rows.
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
    /// What the columns count.
    #[must_use]
    pub fn counters(&self) -> &[ProfileCounter] {
        &self.counters
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The rows that have a value in any of these counters. A counter that the table does not have is 0.
    pub fn rows<const N: usize>(
        &self,
        counters: [ProfileCounter; N],
    ) -> impl Iterator<Item = WeightRow<N>> {
        let columns = counters.map(|counter| self.column(counter));
        let known = |number: u32| Some(number).filter(|number| *number != NONE);
        let rows = self.tasks.iter().zip(&self.stacks).enumerate();
        rows.filter_map(move |(row, (&task, &stack))| {
            let value = |column: Option<&Column>| column.map_or(0, |column| column.get(row));
            let weight = Weight(columns.map(value));
            let row = WeightRow {
                task: known(task).map(TaskId),
                stack: known(stack).map(StackId::from_number),
                weight,
            };
            (!weight.is_zero()).then_some(row)
        })
    }

    /// The sum of all rows.
    #[must_use]
    pub fn sum<const N: usize>(&self, counters: [ProfileCounter; N]) -> Weight<N> {
        Weight(counters.map(|counter| self.column(counter).map_or(0, Column::sum)))
    }

    /// The weight of each stack by itself, by [`StackId`].
    #[must_use]
    pub fn by_stack<const N: usize>(
        &self,
        stacks: &StackTable,
        counters: [ProfileCounter; N],
    ) -> Vec<Weight<N>> {
        let mut weights = vec![Weight::default(); stacks.len()];
        for row in self.rows(counters) {
            let stack = row.stack.and_then(|stack| weights.get_mut(stack.index()));
            if let Some(weight) = stack {
                weight.add(row.weight);
            }
        }
        weights
    }

    /// Bytes that the table has allocated.
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

/// A weight table that grows.
#[derive(Debug, Default)]
pub(crate) struct WeightTableBuilder {
    table: WeightTable,
    /// The columns of counters.
    columns: FastMap<ProfileCounter, usize>,
    /// By stack, its first row, or [`NONE`]: most stacks are of one task, and new ones have the latest numbers.
    first_rows: Vec<u32>,
    /// Further rows by task and stack.
    rows: FastMap<(u32, u32), u32>,
    /// The row that was used last.
    last: Option<((u32, u32), u32)>,
}

impl WeightTableBuilder {
    /// Adds the weight of a sample.
    pub fn add_sample(
        &mut self,
        task: TaskId,
        stack: Option<StackId>,
        (event, period): (EventId, Period),
    ) {
        let counters = ProfileCounter::of_samples(event);
        self.add(Some(task), stack, counters, Weight([1, period.get()]));
    }

    /// Adds a weight to that of a stack in a task.
    pub fn add<const N: usize>(
        &mut self,
        task: Option<TaskId>,
        stack: Option<StackId>,
        counters: [ProfileCounter; N],
        weight: Weight<N>,
    ) {
        let key = (
            task.map_or(NONE, |task| task.0),
            stack.map_or(NONE, StackId::number),
        );
        let row = match self.last {
            Some((last, row)) if last == key => row,
            _ => self.row(key),
        };
        self.last = Some((key, row));
        for (counter, value) in counters.into_iter().zip(weight.0) {
            let column = self.column(counter);
            if let (Some(column), Ok(row)) =
                (self.table.columns.get_mut(column), usize::try_from(row))
            {
                column.add(row, value);
            }
        }
    }

    fn row(&mut self, key: (u32, u32)) -> u32 {
        let (task, stack) = key;
        // There are fewer rows than bytes in the recording.
        let next = u32::try_from(self.table.len()).unwrap_or(NONE);
        let task_of = |row: u32| self.table.tasks.get(place(row)?);
        let row = match first_row(&mut self.first_rows, stack) {
            Some(first) if *first == NONE => {
                *first = next;
                next
            }
            Some(first) if task_of(*first) == Some(&task) => *first,
            _ => *self.rows.entry(key).or_insert(next),
        };
        if row == next {
            self.table.tasks.push(task);
            self.table.stacks.push(stack);
        }
        row
    }

    fn column(&mut self, counter: ProfileCounter) -> usize {
        let counters = &self.table.counters;
        // Mostly there is one event: its counters come first.
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

    /// The table; nothing can be added any more, which frees what finds rows.
    pub fn finish(self) -> WeightTable {
        let mut table = self.table;
        table.tasks.shrink_to_fit();
        table.stacks.shrink_to_fit();
        table
    }
}

/// Where the first row of a stack is kept; none of no stack.
fn first_row(rows: &mut Vec<u32>, stack: u32) -> Option<&mut u32> {
    let place = place(stack)?;
    if rows.len() <= place {
        rows.resize(place.saturating_add(1), NONE);
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
            weights.add_sample(TaskId(task), stack, (event, Period::new(10)));
        }
        weights.add(None, run, ProfileCounter::CALLS, Weight([3, 2, 1]));
        let (stacks, table) = (stacks.finish(), weights.finish());
        assert_eq!(table.len(), 4);
        let of = ProfileCounter::of_samples;
        assert_eq!(table.sum(of(cycles)), Weight([1, 10]));
        assert_eq!(table.sum(of(misses)), Weight([3, 30]));
        assert_eq!(
            table.by_stack(&stacks, of(misses)),
            [Weight([0, 0]), Weight([3, 30])]
        );
        assert_eq!(
            table.by_stack(&stacks, ProfileCounter::CALLS),
            [Weight([3, 2, 1]), Weight([0; 3])]
        );
        let calls: Vec<_> = table
            .rows(ProfileCounter::CALLS)
            .map(|row| (row.task, row.stack))
            .collect();
        assert_eq!(calls, [(None, run)]);
        assert_eq!(table.sum(of(EventId(3))), Weight([0, 0]));
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_at_the_largest_number() {
        let mut weight = Weight([u64::MAX, 1]);
        weight.add(Weight([1, 1]));
        assert_eq!(weight, Weight([u64::MAX, 2]));
    }
}
