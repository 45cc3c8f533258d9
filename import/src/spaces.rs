//! The files that processes have mapped.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    rc::Rc,
};

use varid_model::{Address, IntervalMap, IntervalValue};

/// The most mappings of all processes together.
const MAX_MAPPINGS: usize = 1 << 20;

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePlace {
    /// The index of the file.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    /// Whether the process may execute the mapping.
    pub(crate) access: Access,
}

/// What a process may do with a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Execute it.
    Code,
    /// Read or write it only.
    Data,
}

impl IntervalValue for FilePlace {
    fn part(&self, offset: u64) -> Self {
        Self {
            offset: self.offset.wrapping_add(offset),
            ..*self
        }
    }
}

/// The mappings of a process. A child shares those of its parent until one of them changes.
type Mappings = Rc<IntervalMap<FilePlace>>;

#[derive(Debug, Default)]
struct Space {
    mappings: Mappings,
    /// The number of the process's exit. None if it is running.
    ended: Option<u64>,
}

/// The mappings of all processes.
#[derive(Debug)]
pub(crate) struct Spaces {
    by_pid: HashMap<u32, Space>,
    /// Total number of mappings. Shared ones are counted once.
    len: usize,
    /// The most mappings.
    max: usize,
    /// Processes in the order of their exits. Their mappings are kept while there is room, because other threads may still run.
    ended: VecDeque<(u64, u32)>,
    ends: u64,
    /// Number of mappings for which there was no room.
    refused: u64,
}

impl Default for Spaces {
    fn default() -> Self {
        Self::with_room(MAX_MAPPINGS)
    }
}

impl Spaces {
    fn with_room(max: usize) -> Self {
        Self {
            by_pid: HashMap::new(),
            len: 0,
            max,
            ended: VecDeque::new(),
            ends: 0,
            refused: 0,
        }
    }

    /// The mappings of a process.
    pub(crate) fn of(&self, pid: u32) -> Option<&IntervalMap<FilePlace>> {
        self.by_pid.get(&pid).map(|space| &*space.mappings)
    }

    /// Number of mappings for which there was no room.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Handles a mapping of a file.
    pub(crate) fn map(&mut self, pid: u32, range: Range<Address>, place: FilePlace) {
        while self.len >= self.max {
            let Some((end, ended)) = self.ended.pop_front() else {
                self.refused = self.refused.saturating_add(1);
                return;
            };
            let space = self.by_pid.get(&ended);
            if space.is_some_and(|space| space.ended == Some(end)) {
                self.remove(ended);
            }
        }
        let mappings = &mut self.by_pid.entry(pid).or_default().mappings;
        // A child's first own mapping makes a copy of the shared ones.
        let before = match Rc::get_mut(mappings) {
            Some(mappings) => mappings.len(),
            None => 0,
        };
        let mappings = Rc::make_mut(mappings);
        mappings.insert(range, place);
        self.len = self
            .len
            .saturating_sub(before)
            .saturating_add(mappings.len());
    }

    /// Handles the fork of a process.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            return;
        }
        // An earlier process with this id has ended.
        self.remove(child);
        if let Some(Space { mappings, .. }) = self.by_pid.get(&parent) {
            let mappings = Rc::clone(mappings);
            let ended = None;
            self.by_pid.insert(child, Space { mappings, ended });
        }
    }

    /// Handles the exit of a process.
    pub(crate) fn end(&mut self, pid: u32) {
        if let Some(space) = self.by_pid.get_mut(&pid)
            && space.ended.is_none()
        {
            self.ends = self.ends.saturating_add(1);
            space.ended = Some(self.ends);
            self.ended.push_back((self.ends, pid));
        }
    }

    /// Removes all mappings of a process.
    pub(crate) fn remove(&mut self, pid: u32) {
        let space = self.by_pid.remove(&pid);
        let alone = space.and_then(|space| Rc::into_inner(space.mappings));
        self.len = self.len.saturating_sub(alone.map_or(0, |it| it.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(spaces: &mut Spaces, pid: u32, start: u64) {
        let place = FilePlace {
            file: 1,
            offset: 0,
            access: Access::Code,
        };
        spaces.map(
            pid,
            Address::new(start)..Address::new(start + 0x1000),
            place,
        );
    }

    fn has(spaces: &Spaces, pid: u32, start: u64) -> bool {
        let space = spaces.of(pid);
        space.is_some_and(|space| space.get(Address::new(start)).is_some())
    }

    #[test]
    fn processes_that_have_ended_make_room_for_others() {
        let mut spaces = Spaces::with_room(4);
        for pid in 10..1_000 {
            for start in [0x1000, 0x2000] {
                map(&mut spaces, pid, start);
            }
            assert!(has(&spaces, pid, 0x2000), "{pid}");
            // Other threads may still run, so the mappings are kept while there is room.
            spaces.end(pid);
            spaces.end(pid);
            assert!(has(&spaces, pid, 0x1000), "{pid}");
        }
        assert_eq!((spaces.refused(), spaces.by_pid.len()), (0, 2));
        assert_eq!(spaces.len, 4);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_until_a_process_ends() {
        let mut spaces = Spaces::with_room(2);
        for start in [0x1000, 0x2000, 0x3000] {
            map(&mut spaces, 1, start);
        }
        map(&mut spaces, 2, 0x1000);
        assert_eq!(spaces.refused(), 2);
        assert!(!has(&spaces, 1, 0x3000) && !has(&spaces, 2, 0x1000));
        spaces.end(1);
        map(&mut spaces, 2, 0x1000);
        assert!(has(&spaces, 2, 0x1000) && !has(&spaces, 1, 0x1000));
        // A program that is replaced by exec frees its mappings.
        spaces.remove(2);
        assert_eq!(spaces.len, 0);
    }

    #[test]
    fn a_child_has_its_parent_s_mappings_which_count_once_until_they_differ() {
        let mut spaces = Spaces::with_room(8);
        for start in [0x1000, 0x2000] {
            map(&mut spaces, 1, start);
        }
        spaces.fork(1, 2);
        assert_eq!(spaces.len, 2);
        map(&mut spaces, 2, 0x3000);
        assert_eq!(spaces.len, 5);
        assert!(has(&spaces, 2, 0x1000) && !has(&spaces, 1, 0x3000));
        // A mapping that replaces another one does not add to the count.
        map(&mut spaces, 2, 0x3000);
        assert_eq!(spaces.len, 5);
        spaces.end(2);
        // A new process with the same id does not end with the old one.
        spaces.fork(1, 2);
        assert_eq!(spaces.len, 2);
        for start in [0x4000, 0x5000, 0x6000, 0x7000, 0x8000, 0x9000, 0xa000] {
            map(&mut spaces, 1, start);
        }
        assert!(has(&spaces, 2, 0x1000) && !has(&spaces, 2, 0x4000));
        assert_eq!((spaces.len, spaces.refused()), (8, 3));
    }
}
