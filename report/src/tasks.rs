//! The threads, processes and services of a profile.

use std::{collections::HashMap, sync::Arc};

use varid_model::{MonotonicNs, Pid, Tid};
use varid_recording::{Membership, SessionRecord};

use crate::fast_hash::FastMap;

varid_model::index_types! {
    /// Index of a task in a [`TaskTable`].
    TaskId;
    /// Index of a service, which is a set of processes, in a [`TaskTable`].
    ServiceId;
    /// Index of a program in a [`TaskTable`].
    ProgramId;
}

/// The task name for counts of all threads of a process together.
const ALL_THREADS: &str = "[all threads]";

/// A program that a process executes: from its fork or exec to the next exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedProgram {
    /// The process.
    pub pid: Pid,
    /// The last name of the process while it executed this program. None if unknown.
    pub name: Option<Arc<str>>,
}

/// A thread under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The program of its process at that time.
    pub program: ProgramId,
    /// The thread name at the time of the sample; `:TID` if unknown.
    pub name: Arc<str>,
    /// The service of its process at that time.
    pub service: Option<ServiceId>,
}

/// The tasks of a profile, and the names of their processes and services.
#[derive(Debug, Clone, Default)]
pub struct TaskTable {
    /// By [`TaskId`].
    pub tasks: Vec<Task>,
    /// Names by [`ServiceId`].
    pub services: Vec<String>,
    /// By [`ProgramId`].
    pub programs: Vec<ExecutedProgram>,
}

impl TaskTable {
    /// A task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.index())
    }

    /// The process name of a task. None if unknown.
    #[must_use]
    pub fn process_name(&self, task: &Task) -> Option<&str> {
        let program = self.programs.get(task.program.index())?;
        program.name.as_deref()
    }

    /// The name of a service.
    #[must_use]
    pub fn service(&self, id: ServiceId) -> Option<&str> {
        let name = self.services.get(id.index());
        name.map(String::as_str)
    }
}

/// Tracks the names of threads and processes up to the current record, and collects the sampled tasks.
#[derive(Debug)]
pub(crate) struct TaskTracker {
    table: TaskTable,
    ids: HashMap<Task, TaskId>,
    threads: FastMap<ThreadKey, Thread>,
    processes: FastMap<Pid, Process>,
    memberships: Memberships,
}

/// Identifies a running thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    pub pid: Pid,
    pub tid: Tid,
}

/// The current state of a thread.
#[derive(Debug)]
struct Thread {
    name: Arc<str>,
    /// The task of its last sample with the current name.
    task: Option<SampledTask>,
}

#[derive(Debug, Clone, Copy)]
struct SampledTask {
    id: TaskId,
    /// The service at the time of the sample.
    service: Option<ServiceId>,
}

/// The current state of a process.
#[derive(Debug, Default)]
struct Process {
    name: Option<Arc<str>>,
    /// The current program, if it was sampled.
    program: Option<ProgramId>,
}

impl Thread {
    const fn new(name: Arc<str>) -> Self {
        Self { name, task: None }
    }
}

impl TaskTracker {
    /// Makes a tracker with the services of a manifest.
    pub fn new(memberships: &[Membership]) -> Self {
        let (memberships, services) = Memberships::new(memberships);
        Self {
            table: TaskTable {
                services,
                ..TaskTable::default()
            },
            ids: HashMap::new(),
            threads: FastMap::default(),
            processes: FastMap::default(),
            memberships,
        }
    }

    /// Applies a record that changes names.
    pub fn follow(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Comm {
                pid,
                tid,
                exec,
                name,
                ..
            } => {
                if *exec {
                    self.exec(*pid);
                }
                let thread = ThreadKey {
                    pid: *pid,
                    tid: *tid,
                };
                self.set_name(thread, name.as_str().into());
            }
            SessionRecord::Fork {
                pid,
                ppid,
                tid,
                ptid,
                ..
            } => {
                let parent = ThreadKey {
                    pid: *ppid,
                    tid: *ptid,
                };
                let child = ThreadKey {
                    pid: *pid,
                    tid: *tid,
                };
                self.fork(parent, child);
            }
            _ => {}
        }
    }

    /// Sets the name of a thread.
    pub fn set_name(&mut self, thread: ThreadKey, name: Arc<str>) {
        let ThreadKey { pid, tid } = thread;
        if tid.is_main_thread_of(pid) {
            let process = self.processes.entry(pid).or_default();
            process.name = Some(Arc::clone(&name));
            let programs = &mut self.table.programs;
            let program = process.program.and_then(|id| programs.get_mut(id.index()));
            if let Some(program) = program {
                program.name = Some(Arc::clone(&name));
            }
        }
        self.threads.insert(thread, Thread::new(name));
    }

    /// Handles an exec: the new name is not known yet, and the other threads have ended.
    fn exec(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// Handles a fork: the new thread inherits the name.
    pub fn fork(&mut self, parent: ThreadKey, child: ThreadKey) {
        let ThreadKey { pid, tid } = child;
        if tid.is_main_thread_of(pid) {
            // The pid is reused: drop the state of the earlier process.
            self.processes.remove(&pid);
        }
        match self.threads.get(&parent).map(|thread| &thread.name) {
            Some(name) => self.set_name(child, Arc::clone(name)),
            // The tid is reused: drop the name of the earlier thread.
            None => _ = self.threads.remove(&child),
        }
    }

    /// The current name of a thread.
    pub fn name(&mut self, thread: ThreadKey) -> &str {
        &self.thread(thread).name
    }

    fn thread(&mut self, thread: ThreadKey) -> &mut Thread {
        let unnamed = || Thread::new(format!(":{}", thread.tid).into());
        self.threads.entry(thread).or_insert_with(unnamed)
    }

    /// The current name of a process.
    pub fn process_name(&self, pid: Pid) -> Option<&str> {
        self.processes.get(&pid)?.name.as_deref()
    }

    /// The current program of a process.
    fn program(&mut self, pid: Pid) -> ProgramId {
        let process = self.processes.entry(pid).or_default();
        *process.program.get_or_insert_with(|| {
            let programs = &mut self.table.programs;
            let id = ProgramId::at(programs.len());
            programs.push(ExecutedProgram {
                pid,
                name: process.name.clone(),
            });
            id
        })
    }

    /// The task for counts of all threads of a process together.
    pub fn process_task(&mut self, pid: Pid, time: MonotonicNs) -> TaskId {
        let task = Task {
            pid,
            tid: Tid::new(pid.get()),
            program: self.program(pid),
            name: ALL_THREADS.into(),
            service: self.memberships.at(pid, time),
        };
        self.intern(task)
    }

    /// The task of a sample.
    pub fn task(&mut self, key: ThreadKey, time: MonotonicNs) -> TaskId {
        let ThreadKey { pid, tid } = key;
        let service = self.memberships.at(pid, time);
        let thread = self.thread(key);
        if let Some(known) = thread.task
            && known.service == service
        {
            return known.id;
        }
        let name = Arc::clone(&thread.name);
        let task = Task {
            pid,
            tid,
            program: self.program(pid),
            name,
            service,
        };
        let id = self.intern(task);
        self.thread(key).task = Some(SampledTask { id, service });
        id
    }

    fn intern(&mut self, task: Task) -> TaskId {
        let tasks = &mut self.table.tasks;
        let next = TaskId::at(tasks.len());
        *self.ids.entry(task).or_insert_with_key(|task| {
            tasks.push(task.clone());
            next
        })
    }

    /// The tasks that have been sampled so far.
    pub const fn table(&self) -> &TaskTable {
        &self.table
    }

    /// The tasks that were sampled.
    pub fn finish(self) -> TaskTable {
        self.table
    }
}

/// The service of each process over time.
#[derive(Debug, Clone, Default)]
struct Memberships {
    /// For each process in order of time.
    by_process: FastMap<Pid, Vec<ServiceChange>>,
}

/// From when on a process is in a service, or in none.
#[derive(Debug, Clone, Copy)]
struct ServiceChange {
    since: MonotonicNs,
    service: Option<ServiceId>,
}

impl Memberships {
    /// Converts the memberships of a manifest. Also returns the service names by [`ServiceId`].
    fn new(memberships: &[Membership]) -> (Self, Vec<String>) {
        let mut found = Self::default();
        let (mut ids, mut names) = (HashMap::new(), Vec::new());
        for Membership {
            pid,
            since_ns,
            service,
        } in memberships
        {
            let mut id = |name: &String| {
                *ids.entry(name.clone()).or_insert_with(|| {
                    let id = ServiceId::at(names.len());
                    names.push(name.clone());
                    id
                })
            };
            let change = ServiceChange {
                since: *since_ns,
                service: service.as_ref().map(&mut id),
            };
            let process = found.by_process.entry(*pid);
            process.or_default().push(change);
        }
        // The manifest is not trusted to be sorted.
        let all = found.by_process.values_mut();
        all.for_each(|changes| changes.sort_by_key(|change| change.since));
        (found, names)
    }

    /// The service of a process at a time.
    fn at(&self, pid: Pid, time: MonotonicNs) -> Option<ServiceId> {
        let changes = self.by_process.get(&pid)?;
        let after = changes.partition_point(|change| change.since <= time);
        changes.get(after.checked_sub(1)?)?.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: u32, since_ns: u64, service: Option<&str>) -> Membership {
        Membership {
            pid: Pid::new(pid),
            since_ns: MonotonicNs::new(since_ns),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn a_process_counts_for_its_service_of_the_time() {
        let (memberships, names) = Memberships::new(&[
            member(7, 100, Some("media")),
            member(8, 100, Some("video")),
            member(7, 200, None),
            member(7, 300, Some("video")),
        ]);
        let at = |pid, time| {
            let id = memberships.at(Pid::new(pid), MonotonicNs::new(time))?;
            Some(names[id.index()].as_str())
        };
        for (time, expected) in [
            (99, None),
            (100, Some("media")),
            (199, Some("media")),
            (200, None),
            (299, None),
            (300, Some("video")),
        ] {
            assert_eq!(at(7, time), expected, "{time}");
        }
        assert_eq!(at(8, u64::MAX), Some("video"));
        assert_eq!(at(9, 0), None);
    }
}
