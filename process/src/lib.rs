//! A process as it is known from outside: its maps, its memory, the files that are mapped into it.
//!
//! Everything is read as hostile input: a process may lie in each of its files, change them while they are read, and keep a
//! reader waiting. So what may block or be large is read by a helper process ([`reader`]) or under a budget.
//!
//! | question | file |
//! |---|---|
//! | what is mapped where | [`AddressSpace`] |
//! | what does a mapping show | [`ProcessImage`], [`ElfImage`], [`CodeImage`] |
//! | which files are bytecode | [`BytecodeFormat`] |
//! | which file is behind a mapping | [`KernelMapping`] |
//! | which images are open already | [`Images`] |
//! | which dex file is in memory that no file shows | `anonymous` |
//! | which code does the process make while it runs | [`JitCode`] |
//! | how is the frame of the code at an address left | [`MappedCode`] |
//! | whose is it | [`Status`] |
//! | what may looking at it cost | `budget` |
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod anonymous;
mod budget;
pub mod clock;
mod code;
mod file;
mod format;
mod image;
mod images;
mod jit;
mod mapping_id;
mod maps;
pub mod reader;
mod space;
mod status;
#[cfg(test)]
mod testing;

pub use budget::raise_limit_of_files;
pub use code::MappedCode;
pub use file::KernelMapping;
pub use format::{BytecodeFormat, Formats};
pub use image::{CodeImage, ElfImage, ProcessImage};
pub use images::Images;
pub use jit::{JitCode, JitFile, Nameless, Turn};
pub use mapping_id::MappingId;
pub use maps::NewMapping;
pub use space::{AddressSpace, ProcessMapping};
pub use status::Status;

use budget::Attention;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use varid_model::Pid;
use varid_tunnel::abi::VmFile;
use varid_tunnel::calls::CallsFile;
use varid_tunnel::control::Control;
use varid_tunnel::file::Kind;

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its id in the initial pid namespace.
    pub pid: Pid,
    /// Its addresses.
    pub space: AddressSpace,
    /// Whose it is, and its ids.
    pub status: Status,
    /// Code that it makes while it runs.
    pub jit: JitCode,
    /// What looking at its mappings may cost.
    attention: Attention,
    tunnels: Vec<(u64, u64)>,
    /// Dex files that no file shows: where each ends, and when the VM described it; None: it was found there.
    memory_dexes: HashMap<u64, (u64, Option<u64>)>,
    /// Where no dex file was, when it was looked for.
    no_dex: Vec<Range<u64>>,
    /// How often there was none.
    misses: usize,
}

impl Process {
    /// A process of which nothing is known yet.
    pub fn new(pid: Pid) -> Self {
        Self {
            pid,
            space: AddressSpace::default(),
            status: Status::of(pid),
            jit: JitCode::default(),
            attention: Attention::default(),
            tunnels: Vec::new(),
            memory_dexes: HashMap::new(),
            no_dex: Vec::new(),
            misses: 0,
        }
    }

    /// Where the tunnels of VMs are mapped: address and bytes of each.
    pub fn tunnels(&self) -> &[(u64, u64)] {
        &self.tunnels
    }

    /// The ELF files that are mapped, by address; one that is mapped in several parts comes with each.
    pub fn elf_images(&self) -> impl Iterator<Item = &Rc<ElfImage>> {
        self.space.iter().filter_map(|mapped| match &mapped.image {
            ProcessImage::Elf(elf) => Some(elf),
            _ => None,
        })
    }

    /// Forgets dex files in memory by where they start, where they end, and when the VM described them.
    pub fn forget_memory_dexes(&mut self, gone: impl Fn(u64, u64, Option<u64>) -> bool) {
        let space = &mut self.space;
        self.memory_dexes.retain(|start, (end, time)| {
            let gone = gone(*start, *end, *time);
            if gone {
                space.remove(*start, *end);
            }
            !gone
        });
    }

    /// Takes in what the process has said about its own code until `now`.
    pub fn refresh_jit(&mut self, now: u64, turn: &Turn) {
        if self.jit.is_sampled() {
            for replaced in self.jit.refresh(self.pid, &self.space, now, turn) {
                self.space.renew(&replaced);
            }
        }
    }

    /// How many of its mappings were left out, because it has too many.
    pub fn mappings_left_out(&self) -> u64 {
        self.attention.left_out.get()
    }

    /// A child that has this process's memory, as fork leaves it.
    pub fn fork(&self, pid: Pid) -> Self {
        let space = self.space.fork();
        Self {
            pid,
            space,
            status: Status::of(pid),
            jit: self.jit.fork(pid),
            attention: Attention::default(),
            tunnels: self.tunnels.clone(),
            memory_dexes: self.memory_dexes.clone(),
            no_dex: Vec::new(),
            misses: self.misses,
        }
    }

    /// Its memory map as if it had just been found; not what it has said of its own code, nor what looking at it has cost.
    pub fn look_again(&mut self, images: &mut Images) {
        let before = std::mem::replace(self, Self::new(self.pid));
        (self.jit, self.attention) = (before.jit, before.attention);
        self.read_maps(images);
    }
}

/// The file in which a VM counts calls.
pub fn open_calls(pid: Pid, calls: &VmFile) -> Result<CallsFile, varid_tunnel::Error> {
    let file = reader::open_of_vm(pid, calls, Kind::Calls)?;
    Ok(CallsFile::of(file, pid.get()))
}

/// The page on which a VM is told what to do, under our lock.
pub fn take_control(pid: Pid, page: &VmFile) -> Result<Control, varid_tunnel::Error> {
    let file = reader::open_of_vm(pid, page, Kind::Control)?;
    Control::of(file, pid.get(), page)
}
