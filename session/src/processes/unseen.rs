//! Explains why a profile does not show a process's methods.

use super::tracked::Tracked;
use varid_process::MissingNames;
use varid_vm::ManagedProcess;

/// Returns the reason why nothing that a process executed in a VM has names, or None if nothing is known to be missing.
pub fn why_unseen(managed: &ManagedProcess) -> Option<String> {
    if managed.vm().is_some() || managed.is_marked() {
        return None;
    }
    if let Some(problem) = &managed.vm_problem {
        return Some(format!("its methods are not seen: {problem}"));
    }
    if managed.awaits_vm() {
        return Some(
            "its methods are not seen: its VM was not up, or not long enough to be read, while it was recorded"
                .to_owned(),
        );
    }
    let why = match managed.process.jit.missing_names(&managed.process.space)? {
        MissingNames::Absent => {
            "it ran code that it had made and that nothing names: a perf map, a jitdump file or GDB's JIT interface would; of Java's, from 17 on, -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        }
        MissingNames::Ambiguous => {
            "it gave the code that it had made other names faster than they are read: its samples may be of either, and have none; a jitdump file would say at what time each was there"
        }
    };
    Some(why.to_owned())
}

impl Tracked {
    /// Returns the reasons why its methods, or files that it has mapped, are missing, as notes for the recording.
    pub fn unseen(&self) -> Vec<String> {
        if self.awaits_name() || self.awaits_exec() {
            return Vec::new();
        }
        let why = why_unseen(&self.managed).filter(|why| self.inherited_problem() != Some(why));
        let left_out = match self.managed.process.mappings_left_out() {
            0 => None,
            count => Some(format!(
                "{count} of its mappings are not known: it maps more, or faster, than is looked at"
            )),
        };
        let partly = self.managed.process.jit.has_unread().then(|| {
            "it says more of the code that it has made than is read in a second: some of it has no names"
                .to_owned()
        });
        let full = self.managed.process.jit.is_full().then(|| {
            "it names more functions that it has made than are kept of a process: some have no names"
                .to_owned()
        });
        let (pid, name) = (self.pid(), &self.names.own);
        let reasons = why.into_iter().chain(left_out).chain(partly).chain(full);
        reasons
            .map(|why| format!("process {pid} ({name}): {why}"))
            .collect()
    }
}
