//! A process: its address space, its status, and the code that it generates.

use crate::budget::LookBudget;
use crate::code::MappedCode;
use crate::image::{ElfImage, ProcessImage};
use crate::images::Images;
use crate::jit::{JitCode, ReadBudget};
use crate::reader::{self, ForeignMemory};
use crate::space::AddressSpace;
use crate::status::Status;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use varid_model::{FrameAddress, MonotonicNs, Pid};
use varid_unwind::{CodeRule, NativeFrame, StackSlice, UnwindInfo};

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its id in the initial pid namespace.
    pub pid: Pid,
    /// Its address space.
    pub space: AddressSpace,
    /// Its user and its ids.
    pub status: Status,
    /// The code that it generates while it runs.
    pub jit: JitCode,
    /// The budget for reading its mapped files.
    pub(crate) budget: LookBudget,
    pub(crate) tunnels: Vec<(u64, u64)>,
    /// Dex files in anonymous memory, by first address: the first address after each, and the time at which the VM described it. None: it
    /// was found in memory.
    pub(crate) memory_dexes: HashMap<u64, (u64, Option<MonotonicNs>)>,
    /// Memory that was searched for a dex file without success.
    pub(crate) no_dex: Vec<Range<u64>>,
    /// The number of failed searches.
    pub(crate) misses: usize,
}

impl Process {
    /// A process of which nothing is known yet.
    pub fn new(pid: Pid) -> Self {
        Self {
            pid,
            space: AddressSpace::default(),
            status: Status::of(pid),
            jit: JitCode::default(),
            budget: LookBudget::default(),
            tunnels: Vec::new(),
            memory_dexes: HashMap::new(),
            no_dex: Vec::new(),
            misses: 0,
        }
    }

    /// Returns where the tunnels of VMs are mapped: the address and the size in bytes of each.
    pub fn tunnels(&self) -> &[(u64, u64)] {
        &self.tunnels
    }

    /// Returns the mapped ELF files by address. A file that is mapped in several parts is returned for each.
    pub fn elf_images(&self) -> impl Iterator<Item = &Rc<ElfImage>> {
        self.space.iter().filter_map(|mapped| match &mapped.image {
            ProcessImage::Elf(elf) => Some(elf),
            _ => None,
        })
    }

    /// Forgets dex files in memory. `gone` is called with the start, the end, and the time at which the VM described the file.
    pub fn forget_memory_dexes(&mut self, gone: impl Fn(u64, u64, Option<MonotonicNs>) -> bool) {
        let space = &mut self.space;
        self.memory_dexes.retain(|start, (end, time)| {
            let gone = gone(*start, *end, *time);
            if gone {
                space.remove(*start, *end);
            }
            !gone
        });
    }

    /// Reads the names of generated code (perf map, jitdump, GDB's interface) that were published until `now`.
    pub fn refresh_jit(&mut self, now: MonotonicNs, budget: &ReadBudget) {
        if self.jit.needs_names() {
            self.jit.refresh(self.pid, &self.space, now, budget);
        }
    }

    /// Returns how a frame of generated code is unwound. `time`: the time of the frame's sample. `stack`: its stack.
    pub fn generated_rule(
        &self,
        frame: &NativeFrame,
        time: MonotonicNs,
        stack: StackSlice<'_>,
    ) -> Option<CodeRule> {
        let mapped = self.space.at(frame.lookup().get())?;
        if !matches!(mapped.image, ProcessImage::Other(_)) {
            return None;
        }
        self.jit.described_rule(frame, time).or_else(|| {
            let mut adapter = self.jit.adapter(&ForeignMemory::new(self.pid), frame)?;
            let returns = FrameAddress::Return(adapter.return_address(frame, stack)?);
            MappedCode::new(&self.space)
                .is_code(returns.lookup())
                .then(|| adapter.rule(frame.lookup()))
        })
    }

    /// Gives generated code that has replaced other code until `time` mappings of its own. It is called before a sample of that time is
    /// attributed.
    pub fn replace_code(&mut self, time: MonotonicNs) {
        for replaced in self.jit.replaced_until(time) {
            self.space.renew(&replaced);
        }
    }

    /// Returns how many of its mappings were left out because there are too many.
    pub fn mappings_left_out(&self) -> u64 {
        self.budget.left_out.get()
    }

    /// Returns a forked child, which has this process's memory.
    pub fn fork(&self, pid: Pid) -> Self {
        let space = self.space.fork();
        Self {
            pid,
            space,
            status: Status::of(pid),
            jit: self.jit.fork(pid),
            budget: LookBudget::default(),
            tunnels: self.tunnels.clone(),
            memory_dexes: self.memory_dexes.clone(),
            no_dex: Vec::new(),
            misses: self.misses,
        }
    }

    /// Returns true if the process has memory. A process that has ended has none, even before its parent waits for it.
    pub fn has_memory(&self) -> bool {
        reader::has_memory(self.pid)
    }

    /// Returns true if the process's mappings can be read, and there are any.
    pub fn has_readable_mappings(&self) -> bool {
        reader::contents(self.pid, "maps").is_ok_and(|maps| !maps.is_empty())
    }

    /// Reads the mappings again, as those of a new process. The names of generated code and the spent budget are kept.
    pub fn reread_mappings(&mut self, images: &mut Images) {
        let before = std::mem::replace(self, Self::new(self.pid));
        (self.jit, self.budget) = (before.jit, before.budget);
        self.read_maps(images);
    }
}
