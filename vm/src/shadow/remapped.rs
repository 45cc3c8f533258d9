//! The methods that remapped addresses stand for. A VM may store R = i + H0 at a call instead of an address.

use crate::described::Description;
use crate::described::dex;
use crate::seam::Method;
use crate::seam::Methods;
use varid_model::{Address, Pid};
use varid_process::open_calls;
use varid_shim::{FramePc, ManagedFrame};
use varid_tunnel::abi::{Call, REMAP_END, REMAP_FIRST};
use varid_tunnel::calls::CallsFile;

/// The table from which a VM takes remapped addresses, read as far as needed.
#[derive(Debug, Default)]
pub(super) struct Remapped {
    /// The process that owns the table.
    pid: Option<Pid>,
    file: Option<CallsFile>,
    entries: Vec<Call>,
    /// It was read in this batch: what the batch's samples have beyond its end is not an entry.
    fresh: bool,
}

impl Remapped {
    /// A table that has been read.
    pub(super) fn of(pid: Pid, entries: Vec<Call>) -> Self {
        Self {
            pid: Some(pid),
            entries,
            ..Self::default()
        }
    }

    /// Returns a table with only the entries, for when the table's file is replaced or gone. Entries are never moved.
    pub(super) fn entries_only(&self) -> Self {
        Self {
            pid: self.pid,
            entries: self.entries.clone(),
            ..Self::default()
        }
    }

    /// Ends the batch: the samples of the next one may refer to newer entries.
    pub(super) fn end_batch(&mut self) {
        self.fresh = false;
    }

    /// Replaces remapped addresses by the addresses of methods. What is not in the VM's table stays.
    pub(super) fn restore(
        &mut self,
        description: &Description,
        methods: &mut dyn Methods,
        frames: &mut [ManagedFrame],
    ) {
        let pid = methods.process().pid;
        for frame in frames {
            let FramePc::Absolute(pc) = frame.pc() else {
                continue;
            };
            let entry = pc.get();
            let Some(index) = index_of(entry) else {
                continue;
            };
            if index >= self.entries.len() && !self.fresh {
                self.read(description, pid);
            }
            // A forked child has no table until it describes itself.
            let call = self.entries.get(index).filter(|_| self.pid == Some(pid));
            let Some(call) = call.copied() else {
                continue;
            };
            if call.insns != 0 {
                frame.set_pc(FramePc::Absolute(Address::new(call.insns)));
                continue;
            }
            // A method without bytecode is identified by the entry: the pointer may be another method's by now.
            if !methods.is_known(entry) {
                let counted = dex::counted(methods.process(), &call);
                let known = counted.unwrap_or_else(|| methods.method(call.method));
                if !matches!(known, Method::Unknown | Method::Gone) {
                    methods.insert(entry, known);
                }
            }
            frame.set_pc(FramePc::Exported {
                method: Address::new(entry),
                pc: Address::new(0),
            });
        }
    }

    fn read(&mut self, description: &Description, pid: Pid) {
        let Some(calls) = description.calls(pid) else {
            return;
        };
        self.fresh = true;
        if self.file.is_none() {
            self.file = open_calls(pid, &calls).ok();
        }
        let counted = self.file.as_ref().map(CallsFile::read);
        if let Some(Ok(counted)) = counted {
            (self.pid, self.entries) = (Some(pid), counted.calls);
        }
    }
}

/// Returns the index of the entry of a remapped address. None if the address is not a remapped one.
fn index_of(address: u64) -> Option<usize> {
    (REMAP_FIRST..REMAP_END)
        .contains(&address)
        .then(|| address.wrapping_sub(REMAP_FIRST))
        .and_then(|index| usize::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tables_addresses_are_remapped_ones() {
        assert_eq!(index_of(REMAP_FIRST - 1), None);
        assert_eq!(index_of(REMAP_FIRST), Some(0));
        assert_eq!(index_of(REMAP_END - 1), Some(0xefff));
        assert_eq!(index_of(REMAP_END), None);
    }
}
