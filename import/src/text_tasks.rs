//! The threads of a text, their names, and the images of their processes.
//!
//! Their number is bounded. Threads beyond the limits count as one thread of one process.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::limits::{MAX_SHORT_NAME, cut};

/// A process and a thread of it.
pub(crate) type Task = (u32, u32);

/// Stands for all threads beyond the limits. Linux has no process with this id (`PID_MAX_LIMIT`).
pub(crate) const OTHERS: Task = (1 << 22, 1 << 22);
const OTHERS_NAME: &str = "[threads beyond the limit]";
/// The most threads.
pub(crate) const MAX_THREADS: usize = 1 << 16;
/// The most pairs of a process and one of its images.
const MAX_MAPS: usize = 1 << 18;
/// The most names of all threads, each from a time on.
const MAX_NAMES: usize = 1 << 18;

/// A thread's name, from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadName<'a> {
    pub(crate) name: &'a str,
    pub(crate) since: u64,
}

/// The names of a thread: each from its first to its last sample, keyed by the time of the first.
type Names = BTreeMap<u64, (u64, String)>;

/// The threads of a text.
#[derive(Debug, Default)]
pub(crate) struct TextTasks {
    threads: HashMap<Task, Names>,
    /// Pairs of a process and one of its images.
    maps: HashSet<(u32, usize)>,
    /// Number of names of all threads.
    names: usize,
    /// Number of samples whose thread's name is not kept.
    unnamed: u64,
}

impl TextTasks {
    /// Adds a sample: its thread, the thread's name at that time, and the images of its frames.
    pub(crate) fn add(&mut self, task: Task, name: &str, time: u64, images: &[usize]) {
        let (task, name) = match self.of(task, images) {
            OTHERS => (OTHERS, OTHERS_NAME),
            task => (task, cut(name, MAX_SHORT_NAME)),
        };
        let (pid, _) = task;
        self.maps.extend(images.iter().map(|image| (pid, *image)));
        self.name(task, name, time);
    }

    /// The thread to which a sample is assigned.
    pub(crate) fn of(&self, task: Task, images: &[usize]) -> Task {
        let (pid, _) = task;
        let has_thread = self.threads.contains_key(&task) || self.threads.len() < MAX_THREADS;
        let is_new = |image: &&usize| !self.maps.contains(&(pid, **image));
        let new = images.iter().filter(is_new).count();
        let has_maps = new == 0 || self.maps.len().saturating_add(new) <= MAX_MAPS;
        match has_thread && has_maps {
            true => task,
            false => OTHERS,
        }
    }

    /// The name of a thread at a time.
    pub(crate) fn name_at(&self, task: Task, time: u64) -> Option<ThreadName<'_>> {
        let (since, (_, name)) = self.threads.get(&task)?.range(..=time).next_back()?;
        Some(ThreadName {
            name,
            since: *since,
        })
    }

    /// All threads with their first names.
    pub(crate) fn first_names(&self) -> Vec<(Task, ThreadName<'_>)> {
        let threads = self.threads.iter().filter_map(|(task, names)| {
            let (since, (_, name)) = names.first_key_value()?;
            let since = *since;
            Some((*task, ThreadName { name, since }))
        });
        let mut threads: Vec<_> = threads.collect();
        threads.sort_unstable_by_key(|(task, _)| *task);
        threads
    }

    /// The images of all processes.
    pub(crate) fn maps(&self) -> Vec<(u32, usize)> {
        let mut maps: Vec<_> = self.maps.iter().copied().collect();
        maps.sort_unstable();
        maps
    }

    /// Number of samples whose thread had more names than are kept.
    pub(crate) const fn unnamed(&self) -> u64 {
        self.unnamed
    }

    /// Records that a thread has this name at this time. Texts need not be in order of time.
    fn name(&mut self, task: Task, name: &str, time: u64) {
        let names = self.threads.entry(task).or_default();
        if let Some((first, (last, known))) = names.range_mut(..=time).next_back() {
            if known == name {
                *last = time.max(*last);
                return;
            }
            if *first == time {
                return;
            }
        }
        if self.names >= MAX_NAMES {
            self.unnamed = self.unnamed.saturating_add(1);
            return;
        }
        let before = names.len();
        let mut last = time;
        // If this sample is between two samples with another name, that name continues after it.
        if let Some((_, (end, known))) = names.range_mut(..time).next_back()
            && *end > time
        {
            let behind = (*end, known.clone());
            *end = time.saturating_sub(1);
            names.insert(time.saturating_add(1), behind);
        }
        let next = names.range(time..).next();
        if let Some((first, (end, known))) = next
            && known == name
        {
            last = *end;
            let first = *first;
            names.remove(&first);
        }
        names.insert(time, (last, name.to_owned()));
        self.names = self
            .names
            .saturating_add(names.len().saturating_sub(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_name_of_each_time_in_whatever_order_they_come() {
        let samples = [
            (10, "a"),
            (90, "a"),
            (50, "b"),
            (70, "b"),
            (60, "c"),
            (95, "b"),
            (92, "b"),
            (5, "a"),
            (40, "b"),
        ];
        let mut tasks = TextTasks::default();
        for (time, name) in samples {
            tasks.add((1, 2), name, time, &[]);
        }
        for (time, name) in samples {
            let found = tasks.name_at((1, 2), time).unwrap();
            assert_eq!(found.name, name, "{time}");
        }
        let first = ThreadName {
            name: "a",
            since: 5,
        };
        assert_eq!(tasks.first_names(), [((1, 2), first)]);
    }

    #[test]
    fn threads_and_images_beyond_the_limits_are_one_process_s() {
        let mut tasks = TextTasks::default();
        for tid in 0..MAX_THREADS as u32 + 9 {
            tasks.add((7, tid), "name", 1, &[0]);
        }
        assert_eq!(tasks.of((7, 5), &[0]), (7, 5));
        assert_eq!(tasks.of((7, MAX_THREADS as u32), &[0]), OTHERS);
        assert_eq!(tasks.name_at(OTHERS, 9).unwrap().name, OTHERS_NAME);
        assert_eq!(tasks.maps(), [(7, 0), (OTHERS.0, 0)]);
        // A sample of a process with too many images counts for the others.
        for image in 1..MAX_MAPS + 9 {
            tasks.add((7, 5), "name", 1, &[image]);
        }
        assert_eq!(tasks.of((7, 5), &[9]), (7, 5));
        assert_eq!(tasks.of((7, 5), &[9, MAX_MAPS]), OTHERS);
        // For threads beyond the limits, there are at most as many pairs as images.
        assert!(tasks.maps().len() < MAX_MAPS + 16);
    }

    #[test]
    fn names_of_a_thread_beyond_the_limit_are_counted() {
        let mut tasks = TextTasks::default();
        for time in 0..MAX_NAMES as u64 + 5 {
            let name = ["one", "other"][(time % 2) as usize];
            tasks.add((7, 7), name, time, &[]);
        }
        assert!(tasks.unnamed() > 0 && tasks.names <= MAX_NAMES + 2);
    }
}
