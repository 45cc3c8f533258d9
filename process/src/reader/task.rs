//! The thread through which a process is read.
//!
//! The threads of a process share its memory, mappings and files, and the kernel shows them under each thread's id. A main thread that has
//! ended while others continue no longer shows them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use varid_model::{Pid, Tid};

/// The most processes without main threads that are remembered.
const MAX_PROCESSES: usize = 1 << 10;

thread_local! {
    /// The processes whose main thread has ended, each with a thread that was still alive.
    static THREADS: RefCell<HashMap<Pid, Tid>> = RefCell::default();
}

/// Returns the id under which a process's resources are shown: its own, or that of a living thread if its main thread is known to have
/// ended.
pub(crate) fn task_of(pid: Pid) -> Pid {
    match THREADS.with_borrow(|threads| threads.get(&pid).copied()) {
        None => pid,
        Some(tid) if has_memory(pid, tid) => Pid::new(tid.get()),
        Some(_) => living_task(pid).unwrap_or(pid),
    }
}

/// Looks for such a thread and remembers it. None if all threads of the process have ended.
pub(crate) fn living_task(pid: Pid) -> Option<Pid> {
    let main = pid.main_thread();
    let others = || {
        let entries = fs::read_dir(format!("/proc/{pid}/task"));
        let names = entries.into_iter().flatten().flatten();
        let tids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        tids.map(Tid::new).find(|tid| has_memory(pid, *tid))
    };
    let living = match has_memory(pid, main) {
        true => Some(main),
        false => others(),
    };
    THREADS.with_borrow_mut(|threads| {
        threads.remove(&pid);
        if let Some(tid) = living.filter(|tid| *tid != main) {
            if threads.len() >= MAX_PROCESSES {
                threads.clear();
            }
            threads.insert(pid, tid);
        }
    });
    living.map(|tid| Pid::new(tid.get()))
}

/// Returns true if a thread shows the memory of its process. A thread that has ended does not, even before it is waited for.
fn has_memory(pid: Pid, tid: Tid) -> bool {
    let sizes = fs::read_to_string(format!("/proc/{pid}/task/{tid}/statm"));
    sizes.is_ok_and(|sizes| !sizes.starts_with("0 "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Images, Process, ProcessImage, reader::ForeignMemory};
    use std::process::{Command, Stdio};
    use varid_tunnel::Memory;

    /// Its main thread ends, and another one does not until nobody holds the other end of its input.
    const PROGRAM: &str = "
        #include <pthread.h>
        #include <unistd.h>
        static void *wait_for_input(void *none) { char byte; read(0, &byte, 1); _exit(0); }
        int main(void) { pthread_t thread; pthread_create(&thread, 0, wait_for_input, 0); pthread_exit(0); }
    ";

    fn has_ended(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('Z')
    }

    #[test]
    fn a_process_without_its_main_thread_is_read_through_another() {
        let folder = tempfile::tempdir().unwrap();
        let [source, program] = ["program.c", "program"].map(|name| folder.path().join(name));
        fs::write(&source, PROGRAM).unwrap();
        let compiled = Command::new("cc")
            .args(["-pthread", "-o"])
            .args([&program, &source])
            .status();
        assert!(compiled.unwrap().success());
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::new(child.id());
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        let mut process = Process::new(pid);
        process.read_maps(&mut Images::default());
        let own = process
            .space
            .iter()
            .find(|mapped| matches!(&mapped.image, ProcessImage::Elf(elf) if elf.path == program));
        let own = own.expect("the program is mapped");
        let mut byte = [0];
        let read = ForeignMemory::new(pid).read(own.start, &mut byte);
        assert!(read.is_ok() && process.has_memory(), "{read:?}");
        // Without its last thread it has ended, whether anybody has waited for it or not.
        drop(child.stdin.take());
        while living_task(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(!process.has_memory() && task_of(pid) == pid);
        child.wait().unwrap();
    }
}
