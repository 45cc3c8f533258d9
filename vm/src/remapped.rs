//! Which method does a remapped address stand for? A VM may store R = i + H0 at a call instead of an address.

use crate::{ManagedProcess, Method, open_calls};
use varid_shim::ManagedFrame;
use varid_shim::frame_flags::EXPORTED;
use varid_tunnel::abi::{Call, LAYOUT_SHADOW, REMAP_END, REMAP_FIRST};
use varid_tunnel::calls::CallsFile;

/// The table from which a VM takes remapped addresses, as far as it was needed.
#[derive(Debug, Default)]
pub struct Remapped {
    file: Option<CallsFile>,
    entries: Vec<Call>,
    /// All that samples of this turn have was in the table by then: whatever else they have is no entry of it.
    fresh: bool,
}

impl Remapped {
    /// Other samples come.
    pub fn outdated(&mut self) {
        self.fresh = false;
    }

    /// A table that has been read.
    pub fn made_up(entries: Vec<Call>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }
}

impl ManagedProcess {
    /// Puts the addresses of methods in the place of remapped ones. What is not in the VM's table stays.
    pub fn restore(&mut self, frames: &mut [ManagedFrame]) {
        let is_shadow = |vm: &std::rc::Rc<crate::Vm>| vm.layout.kind == LAYOUT_SHADOW;
        if !self.vm.as_ref().is_some_and(is_shadow) {
            return;
        }
        for frame in frames {
            let Some(index) = index_of(frame.pc) else {
                continue;
            };
            if index >= self.remapped.entries.len() && !self.remapped.fresh {
                self.read_remapped();
            }
            let Some(call) = self.remapped.entries.get(index).copied() else {
                continue;
            };
            if call.insns != 0 {
                (frame.pc, frame.method) = (call.insns, call.method);
                continue;
            }
            // Without bytecode it is the entry's: a pointer may be another method's by now.
            let entry = frame.pc;
            if !self.methods.contains_key(&entry) {
                let known = self.counted_method(&call);
                if !matches!(known, Method::Unknown | Method::Gone) {
                    self.methods.insert(entry, known);
                }
            }
            (frame.pc, frame.method) = (0, entry);
            frame.flags |= EXPORTED;
        }
    }

    fn read_remapped(&mut self) {
        let calls = self.vm.as_ref().and_then(|vm| vm.calls(self.process.pid));
        let remapped = &mut self.remapped;
        remapped.fresh = true;
        if remapped.file.is_none() {
            remapped.file = calls.and_then(|calls| open_calls(self.process.pid, &calls).ok());
        }
        let counted = remapped.file.as_ref().map(CallsFile::read);
        if let Some(Ok(counted)) = counted {
            remapped.entries = counted.calls;
        }
    }
}

/// The entry that a remapped address is; None: it is none.
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
