//! Unwinds the copy of the stack in a sample.
//!
//! perf's `--call-graph dwarf` records the user's registers and a copy of the stack, and unwinds in its report. That needs the files that
//! were mapped. A file is used if it is the recorded one according to its build-id.

use std::{collections::HashMap, os::unix::fs::MetadataExt, path::PathBuf, time::SystemTime};

use object::{Object, ReadCache};
use varid_model::{Address, IntervalMap, Machine, Marker, Reason, Regs};
use varid_recording::{Host, RecordedFile, open_regular, remap::address_of};
use varid_symbolizer::parse_elf;
use varid_unwind::{CodeRule, Module, NativeStack, StackSlice, UnwindError, UnwindInfo};

use crate::{
    perfdata::{SourceMapping, SourceSample},
    spaces::{Access, FilePlace, Spaces},
};

/// `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// A file that was mapped. It is read when it is first needed.
#[derive(Debug)]
struct MappedFile {
    path: PathBuf,
    build_id: Vec<u8>,
    /// The identity of the recorded file, if the recording has it.
    recorded: Option<RecordedFile>,
    module: Option<Option<Module>>,
}

/// Unwinds the user stacks of a recording.
#[derive(Debug)]
pub(crate) struct Unwinder {
    machine: Option<Machine>,
    /// Files without a build-id are accepted as the recorded ones if they are older than this.
    trusted_before: Option<SystemTime>,
    spaces: Spaces,
    files: Files,
    stack: NativeStack,
    unwound: u64,
}

#[derive(Debug, Default)]
struct Files {
    /// Indices by path, build-id and inode.
    ids: HashMap<(Vec<u8>, Vec<u8>, u64), usize>,
    all: Vec<MappedFile>,
}

impl Unwinder {
    /// Makes an unwinder for a recording from `host`. `trusted_before` is the end of the recording, if it was made on this machine.
    pub(crate) fn new(host: &Host, trusted_before: Option<SystemTime>) -> Self {
        let machine = match host.arch.as_str() {
            "x86_64" => Some(Machine::X86_64),
            "aarch64" | "arm64" => Some(Machine::Aarch64),
            _ => None,
        };
        Self {
            machine,
            trusted_before,
            spaces: Spaces::default(),
            files: Files::default(),
            stack: NativeStack::default(),
            unwound: 0,
        }
    }

    /// How many stacks were unwound.
    pub(crate) const fn unwound(&self) -> u64 {
        self.unwound
    }

    /// Returns a note if mappings are missing.
    pub(crate) fn note(&self) -> Option<String> {
        let refused =
            Some(self.spaces.refused()).filter(|refused| *refused > 0 && self.unwound > 0)?;
        Some(format!(
            "{refused} mappings of processes are not known to the unwinder, which keeps a million at a time: stacks in them end early"
        ))
    }

    /// Adds a mapping.
    pub(crate) fn map(&mut self, mapping: &SourceMapping) {
        if mapping.kernel || mapping.len == 0 {
            return;
        }
        let inode = mapping.file.map_or(0, |(_, inode)| inode);
        let key = (mapping.path.clone(), mapping.build_id.clone(), inode);
        let files = &mut self.files;
        let file = *files.ids.entry(key).or_insert_with(|| {
            files.all.push(MappedFile {
                path: PathBuf::from(String::from_utf8_lossy(&mapping.path).into_owned()),
                build_id: mapping.build_id.clone(),
                recorded: mapping.recorded_file(),
                module: None,
            });
            files.all.len().saturating_sub(1)
        });
        let end = mapping.start.saturating_add(mapping.len);
        let range = Address::new(mapping.start)..Address::new(end);
        let place = FilePlace {
            file,
            offset: mapping.pgoff,
            access: match mapping.access {
                Some((prot, _)) if prot & PROT_EXEC == 0 => Access::Data,
                _ => Access::Code,
            },
        };
        self.spaces.map(mapping.task.pid.get(), range, place);
    }

    /// Handles the fork of a process.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        self.spaces.fork(parent, child);
    }

    /// Handles the exit of a thread. A process is assumed to end with its main thread.
    pub(crate) fn end(&mut self, pid: u32, tid: u32) {
        if pid == tid {
            self.spaces.end(pid);
        }
    }

    /// Handles an exec: another program runs in the process.
    pub(crate) fn clear(&mut self, pid: u32) {
        self.spaces.remove(pid);
    }

    /// Adds the frames of a sample's stack copy. If they end early, a marker gives the reason. `leaf` is the instruction, if the sample is
    /// from user code.
    pub(crate) fn unwind(
        &mut self,
        pid: u32,
        sample: &SourceSample<'_>,
        mask: u64,
        leaf: Option<Address>,
        user: &mut Vec<Address>,
    ) {
        user.clear();
        let (Some((abi @ 1.., words)), Some(stack)) = (sample.registers, sample.stack) else {
            user.extend(leaf);
            return;
        };
        let missing = address_of(Marker::Reason(Reason::NoUnwindInfo));
        let registers = self
            .machine
            .and_then(|machine| registers(machine, abi, words, mask));
        let Some((registers, sp)) = registers.and_then(|regs| Some((regs, regs.sp()?))) else {
            user.extend(leaf);
            user.push(missing);
            return;
        };
        let mut code = ProcessCode {
            space: self.spaces.of(pid),
            files: &mut self.files.all,
            trusted_before: self.trusted_before,
        };
        let stack = StackSlice::new(Address::new(sp), stack);
        self.stack.unwind(&registers, stack, None, &mut code);
        self.unwound = self.unwound.saturating_add(1);
        let frames = self.stack.frames.iter();
        user.extend(frames.map(|frame| frame.address.recorded()));
        let reason = self.stack.stopped.as_ref().map(UnwindError::reason);
        user.extend(reason.map(|reason| address_of(Marker::Reason(reason))));
    }
}

/// Returns a sample's registers, if all necessary ones were recorded.
fn registers(machine: Machine, abi: u64, words: &[[u8; 8]], mask: u64) -> Option<Regs> {
    let mut needed = Vec::new();
    for bit in 0..u64::BITS {
        let is = |mask: u64| mask.checked_shr(bit).is_some_and(|rest| rest & 1 != 0);
        if !is(machine.perf_mask()) {
            continue;
        }
        let lower = mask & 1u64.checked_shl(bit)?.saturating_sub(1);
        let word = words.get(usize::try_from(lower.count_ones()).ok()?);
        needed.push(u64::from_le_bytes(*word.filter(|_| is(mask))?));
    }
    Some(Regs::from_perf(machine, abi, &needed))
}

/// The code that a process has mapped.
struct ProcessCode<'a> {
    /// None if no mapping of the process is known.
    space: Option<&'a IntervalMap<FilePlace>>,
    files: &'a mut Vec<MappedFile>,
    trusted_before: Option<SystemTime>,
}

impl ProcessCode<'_> {
    /// Returns the module at an address, and the address in that module. The inner None means that there is code, but no usable file for
    /// it.
    fn module(&mut self, pc: Address) -> Option<Option<(&mut Module, Address)>> {
        let mapped = self.space?.get(pc)?;
        if mapped.value.access == Access::Data {
            return None;
        }
        let into = pc.offset_from(mapped.start)?;
        let offset = mapped.value.offset.wrapping_add(into);
        let trusted_before = self.trusted_before;
        let file = self.files.get_mut(mapped.value.file)?;
        if file.module.is_none() {
            file.module = Some(open(file, trusted_before));
        }
        let Some(module) = file.module.as_mut().and_then(Option::as_mut) else {
            return Some(None);
        };
        let address = module.address_of_offset(offset)?;
        Some(Some((module, address)))
    }
}

impl UnwindInfo for ProcessCode<'_> {
    fn rule(&mut self, pc: Address) -> CodeRule {
        match self.module(pc) {
            None => CodeRule::NoCode,
            Some(None) => CodeRule::Unknown,
            Some(Some((module, address))) => module.rule(address),
        }
    }

    fn begins_threads(&mut self, pc: Address) -> bool {
        let module = self.module(pc).flatten();
        module.is_some_and(|(module, address)| module.begins_threads(address))
    }

    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let (module, address) = self.module(pc)??;
        let into = address.offset_from(module.function_start(address)?)?;
        Some(Address::new(pc.get().checked_sub(into)?))
    }
}

/// Reads the unwind information of a file, if it is the recorded one.
fn open(mapped: &MappedFile, trusted_before: Option<SystemTime>) -> Option<Module> {
    let build_id = mapped.build_id.as_slice();
    let file = open_regular(&mapped.path).ok()?;
    let metadata = file.metadata().ok()?;
    if build_id.is_empty() {
        let recorded = mapped.recorded.as_ref();
        recorded
            .is_none_or(|recorded| recorded.is(&metadata))
            .then_some(())?;
        let changed = u64::try_from(metadata.ctime()).unwrap_or_default();
        let changed = SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(changed));
        trusted_before.filter(|end| changed.is_some_and(|changed| changed <= *end))?;
    }
    let cache = ReadCache::new(&file);
    let elf = parse_elf(&cache).ok()?;
    if !build_id.is_empty() && elf.build_id().ok().flatten() != Some(build_id) {
        return None;
    }
    Some(Module::new(&elf))
}
