//! The service of each process, and its records.

use crate::output::Output;
use std::sync::Arc;
use varid_model::{ById, MonotonicNs, Pid};
use varid_recording::Membership;

/// Maximum number of memberships in a recording.
const MAX_MEMBERSHIPS: usize = 1 << 16;

/// The service of each process that belongs to one.
#[derive(Debug, Default)]
pub struct Memberships(ById<Pid, Arc<str>>);

impl Memberships {
    /// Assigns a process to a service, or to none, from a time on. Records the assignment if it is new.
    pub fn assign(
        &mut self,
        pid: Pid,
        time: MonotonicNs,
        service: Option<&Arc<str>>,
        output: &mut Output,
    ) {
        if self.0.get(&pid) == service {
            return;
        }
        match service {
            Some(service) => drop(self.0.insert(pid, service.clone())),
            None => drop(self.0.remove(&pid)),
        }
        let memberships = &mut output.recorder.changed_manifest().memberships;
        if memberships.len() < MAX_MEMBERSHIPS {
            memberships.push(Membership {
                pid,
                since_ns: time,
                service: service.map(|service| service.as_ref().to_owned()),
            });
        } else {
            output.note(format!(
                "processes came to services or left them more than {MAX_MEMBERSHIPS} times: later samples count for what their process was by then"
            ));
        }
    }
}
