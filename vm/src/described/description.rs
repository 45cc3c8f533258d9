//! The description of a VM of any kind: how its frames are linked, what its code does, and where this is known from.

use super::handlers::{PcRegister, pc_register_states};
use super::quick_code;
use crate::seam::CodeKind;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use varid_model::{Address, Machine, Pid};
use varid_process::reader::ForeignMemory;
use varid_process::{AddressSpace, MappedCode};
use varid_shim::{Body, CodeState, CodeStates, Target, target_flags};
use varid_tunnel::PublishedBytecode;
use varid_tunnel::abi::{
    self, CodeRange, LAYOUT_ON_NATIVE_STACK, Layout, MAX_RULES, NO_RULE, RULE_AT_SP,
    RULE_CODE_INFO, RULE_SIZED, Rule, Trace,
};
use varid_tunnel::builds::Build;
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{Memory, TunnelError};

/// The description of a process's VM.
#[derive(Debug, Clone)]
pub struct Description {
    /// How its frames are linked. Registers have their DWARF numbers.
    pub layout: Layout,
    /// The code ranges of the description, sorted and disjoint.
    described_ranges: Vec<CodeRange>,
    /// The ranges of its code, sorted and disjoint: the described ones, in more detail where the states of the code are known.
    ranges: Vec<CodeRange>,
    /// The states of the code of its quick frames. Empty if they are not known.
    states: CodeStates,
    /// 256 handlers of one size, one for each opcode.
    handlers: Range<u64>,
    /// The ranges of addresses that were looked up recently: return addresses recur.
    recent: RecentRanges,
    /// Dex files that it says it executes.
    pub codes: Vec<PublishedBytecode>,
    /// The code that its compiler has made of them, sorted.
    traces: Vec<Trace>,
    /// Where the layout comes from.
    pub layout_source: LayoutSource,
    /// The state of the pc register at each byte of the handlers.
    pc_register: std::rc::Rc<[PcRegister]>,
    /// The file from which it reads its control words and the one in which it counts calls, with the process that the tunnel belongs to.
    files: Option<(Pid, abi::VmFile, Option<abi::VmFile>)>,
    /// Its tunnel: the start, the length, and the generation at which it was read.
    tunnel: Option<(u64, u64, u32)>,
}

/// The ranges of addresses that were looked up last, in slots by some bits of the address.
#[derive(Debug, Clone)]
struct RecentRanges([Cell<(u64, Option<usize>)>; Self::SLOTS]);

impl Default for RecentRanges {
    fn default() -> Self {
        // No code is at address 0.
        Self([const { Cell::new((0, None)) }; Self::SLOTS])
    }
}

impl RecentRanges {
    const SLOTS: usize = 128;

    /// Returns the index of the range that contains an address. Calls `find` if it is not known.
    #[inline]
    fn index(&self, address: u64, find: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let slot = self.0.get((address >> 2) as usize % Self::SLOTS)?;
        let (recent, index) = slot.get();
        if recent == address {
            return index;
        }
        let found = find();
        slot.set((address, found));
        found
    }
}

/// Where the layout of a VM comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutSource {
    /// The VM's own description.
    Tunnel,
    /// The table of builds.
    Build(&'static str),
    /// The VM's library, confirmed by the process that has loaded it. The text says how it was checked.
    Library(String),
}

impl LayoutSource {
    /// Describes the VM, as far as it is known.
    pub fn vm(&self) -> String {
        match self {
            Self::Tunnel => "a VM that describes itself".to_owned(),
            Self::Build(name) => (*name).to_owned(),
            Self::Library(checks) => format!("a VM as its library describes it ({checks})"),
        }
    }
}

impl fmt::Display for LayoutSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutSource::Tunnel => f.write_str("its tunnel"),
            LayoutSource::Build(name) => write!(f, "the build table ({name})"),
            LayoutSource::Library(checks) => write!(f, "what was found in its library ({checks})"),
        }
    }
}

/// Returns the code of the handlers, one for each opcode.
fn handlers_in(ranges: &[CodeRange]) -> Range<u64> {
    let range = ranges
        .iter()
        .find(|range| range.kind == abi::RANGE_HANDLERS);
    range.map_or(0..0, |range| range.start..range.end)
}

/// The states of the pc register in a VM's handlers. Empty if the VM has no handlers, or they cannot be read.
fn pc_register_in(
    memory: &dyn Memory,
    layout: &Layout,
    ranges: &[CodeRange],
) -> std::rc::Rc<[PcRegister]> {
    /// 256 handlers of a kilobyte each.
    const MAX_CODE: u64 = 1 << 18;
    let code = || {
        let range = ranges
            .iter()
            .find(|range| range.kind == abi::RANGE_HANDLERS)?;
        let size = range.end.checked_sub(range.start)?;
        let mut code = vec![0; usize::try_from(size).ok().filter(|_| size <= MAX_CODE)?];
        memory.read(range.start, &mut code).ok()?;
        let rule = rule_of(layout, range)?;
        Some(pc_register_states(
            &code,
            Machine::of_elf(layout.machine)?,
            rule.reg_pc,
        ))
    };
    code().unwrap_or_default().into()
}

/// Returns the kind of a range of a tunnel or of the table of builds (`RANGE_*`). None if this version does not know the kind.
const fn kind_of_range(kind: u32) -> Option<CodeKind> {
    Some(match kind {
        abi::RANGE_BODY | abi::RANGE_HANDLERS => CodeKind::Loop,
        abi::RANGE_INTERPRETER => CodeKind::Interpreter,
        abi::RANGE_BRIDGE => CodeKind::Bridge,
        abi::RANGE_VM => CodeKind::Runtime,
        abi::RANGE_QUICK => CodeKind::NativeFrames,
        abi::RANGE_TRACES => CodeKind::Traces,
        _ => return None,
    })
}

/// Returns the rule whose registers a range refers to.
fn rule_of<'a>(layout: &'a Layout, range: &CodeRange) -> Option<&'a Rule> {
    layout.rules().get(usize::try_from(range.rule).ok()?)
}

/// Returns the bit of a register in a compiler's mask of saved registers: its number in the machine's instructions. None if that differs
/// from the register's DWARF number, or the machine's numbers are not known.
fn spill_bit(machine: Machine, dwarf: u8) -> Option<u16> {
    match machine {
        Machine::X86_64 => matches!(dwarf, 8..=15),
        Machine::Aarch64 => dwarf <= 30,
        Machine::X86 | Machine::Arm => false,
    }
    .then_some(dwarf.into())
}

/// Returns the address of a tunnel's generation.
fn generation_of(tunnel: u64) -> u64 {
    tunnel.wrapping_add(std::mem::offset_of!(abi::TunnelHeader, generation) as u64)
}

impl Description {
    /// Describes the VM whose library, of this build, is loaded at `load_base`.
    pub(crate) fn of_build(
        memory: &dyn Memory,
        build: &'static Build,
        layout: Layout,
        load_base: u64,
    ) -> Self {
        let ranges = build.ranges(load_base);
        Self::of_layout(memory, layout, ranges, LayoutSource::Build(build.name()))
    }

    /// Describes the VM whose library has this layout, which the process confirms.
    pub(crate) fn of_layout(
        memory: &dyn Memory,
        layout: Layout,
        ranges: Vec<CodeRange>,
        layout_source: LayoutSource,
    ) -> Self {
        Self {
            pc_register: pc_register_in(memory, &layout, &ranges),
            layout_source,
            ..Self::made_up(layout, ranges)
        }
    }

    /// Reads the description in a tunnel. `before`: the previous description of the same VM.
    pub(crate) fn read(
        pid: Pid,
        start: u64,
        len: u64,
        before: Option<&Self>,
    ) -> Result<Self, TunnelError> {
        let memory = ForeignMemory::new(pid);
        // Read first, so that a later change is noticed.
        let generation = memory.read_u32(generation_of(start))?;
        let description = read_tunnel(&memory, start, len, pid)?;
        let (layout, described_ranges) = (description.layout, description.ranges);
        // Only dex files and compiled code come and go. The interpreters stay the same.
        let (pc_register, ranges, states) = before
            .filter(|before| before.layout == layout && before.described_ranges == described_ranges)
            .map_or_else(
                || {
                    let pc_register = pc_register_in(&memory, &layout, &described_ranges);
                    (pc_register, described_ranges.clone(), CodeStates::default())
                },
                |before| {
                    let states = before.states.clone();
                    (before.pc_register.clone(), before.ranges.clone(), states)
                },
            );
        Ok(Self {
            pc_register,
            handlers: handlers_in(&described_ranges),
            layout,
            described_ranges,
            ranges,
            states,
            recent: RecentRanges::default(),
            codes: description.codes,
            traces: description.traces,
            layout_source: LayoutSource::Tunnel,
            files: description
                .control
                .filter(|_| !description.inherited)
                .map(|control| (pid, control, description.calls)),
            tunnel: Some((start, len, generation)),
        })
    }

    /// Returns the file from which the VM of this process reads its control words. None in a forked child, which has its parent's file
    /// until it has its own.
    pub fn control(&self, pid: Pid) -> Option<abi::VmFile> {
        let (owner, control, _) = self.files?;
        (owner == pid).then_some(control)
    }

    /// Returns the file in which the VM of this process counts calls.
    pub fn calls(&self, pid: Pid) -> Option<abi::VmFile> {
        let (owner, _, calls) = self.files?;
        calls.filter(|_| owner == pid)
    }

    /// Returns the address of the counter of changes of the description, if the VM describes itself.
    pub fn generation_at(&self) -> Option<u64> {
        self.tunnel.map(|(start, ..)| generation_of(start))
    }

    /// Returns true if the VM has changed its description. `generation`: the counter's value, if it has just been read.
    pub fn has_changed(&self, pid: Pid, generation: Option<u32>) -> bool {
        self.tunnel.is_some_and(|(start, _, seen)| {
            let read = || ForeignMemory::new(pid).read_u32(generation_of(start)).ok();
            let now = generation.or_else(read);
            now.is_some_and(|now| now != seen)
        })
    }

    /// Reads the description again. None if it is being written, or gone.
    pub fn reread(&self, pid: Pid) -> Option<Self> {
        let (start, len, _) = self.tunnel?;
        Self::read(pid, start, len, Some(self)).ok()
    }

    /// Returns the range that contains an address. Ranges are disjoint: only the last one that begins at or before the address can contain
    /// it.
    fn range_at(&self, address: u64) -> Option<&CodeRange> {
        let index = self.recent.index(address, || {
            let after = self.ranges.partition_point(|range| range.start <= address);
            let last = after.checked_sub(1)?;
            let range = self.ranges.get(last)?;
            (address < range.end).then_some(last)
        })?;
        self.ranges.get(index)
    }

    /// Returns what the code at an address does, if it is the VM's.
    #[inline]
    pub fn code_at(&self, address: u64) -> Option<CodeKind> {
        kind_of_range(self.range_at(address)?.kind)
    }

    /// Returns the function of the call machinery that contains an address. Such code is described function by function.
    pub fn bridge_at(&self, address: u64) -> Option<Range<u64>> {
        let range = self.range_at(address)?;
        (range.kind == abi::RANGE_BRIDGE).then_some(range.start..range.end)
    }

    /// Returns true if its frames' addresses are on the threads' native stacks.
    pub fn is_on_native_stack(&self) -> bool {
        self.layout.flags & LAYOUT_ON_NATIVE_STACK != 0
    }

    /// Returns true if nothing but compiled code was added or removed since the description `before`.
    pub fn differs_in_traces_only(&self, before: &Self) -> bool {
        self.layout == before.layout
            && self.ranges == before.ranges
            && self.codes == before.codes
            && self.traces != before.traces
    }

    /// Returns the start of the bytecode that the compiled code at an address was made from.
    pub fn trace(&self, address: u64) -> Option<u64> {
        let after = self.traces.partition_point(|trace| trace.start <= address);
        let trace = self.traces.get(after.checked_sub(1)?)?;
        Some(trace.pc)
    }

    /// Returns the opcode of the handler at an address, and the state of the pc register there.
    pub fn handler(&self, address: u64) -> Option<(u8, PcRegister)> {
        const OPCODES: u64 = 256;
        let handlers = Some(&self.handlers).filter(|handlers| handlers.contains(&address))?;
        let into = address.wrapping_sub(handlers.start);
        let size = handlers
            .end
            .wrapping_sub(handlers.start)
            .checked_div(OPCODES)?;
        let opcode = u8::try_from(into.checked_div(size)?).ok()?;
        let state = self.pc_register.get(usize::try_from(into).ok()?);
        Some((opcode, state.copied().unwrap_or_default()))
    }

    /// Returns the rule of frames of the VM's code at an address.
    pub fn rule_at(&self, address: u64) -> Option<&Rule> {
        rule_of(&self.layout, self.range_at(address)?)
    }

    /// Returns true if frames of the code at an address are native frames with their method at the stack pointer.
    pub fn is_at_sp(&self, address: u64) -> bool {
        self.rule_at(address)
            .is_some_and(|rule| rule.kind == RULE_AT_SP)
    }

    /// Returns the body of a rule's interpreter loop. If there are several, it is the first one.
    fn body(&self, rule: usize) -> Body {
        let mut body = Body::default();
        for range in &self.ranges {
            if range.rule as usize != rule
                || !matches!(range.kind, abi::RANGE_BODY | abi::RANGE_HANDLERS)
            {
                continue;
            }
            if body.start == body.end {
                (body.start, body.end) = (range.start, range.end);
            } else if body.end == range.start {
                body.end = range.end;
            }
        }
        body
    }

    /// Returns true if any of the VM's code lies between these addresses.
    pub fn has_code_in(&self, start: u64, end: u64) -> bool {
        self.ranges
            .iter()
            .any(|range| range.start < end && range.end > start)
    }

    /// Returns the shim's target for a process without compiled code.
    pub fn target(&self, flags: u32) -> Target {
        let mut layout = self.layout;
        layout.rule_count = self.compiled_rule().unwrap_or(layout.rule_count);
        self.target_of(&layout, flags)
    }

    /// Returns the shim's target for a process with compiled code, all of which is between these addresses. Its frames are walked, which
    /// costs more.
    pub(crate) fn target_with_compiled_code(&self, flags: u32, code: &Range<u64>) -> Target {
        let mut layout = self.layout;
        let Some(compiled) = self.compiled_rule() else {
            return self.target_of(&layout, flags);
        };
        // Where the whole stack is unwound, or nothing of it, the innermost frames are.
        let is_walked = flags & (target_flags::FULL_STACK | target_flags::NO_STACK) == 0;
        if self.layout.has_rule(RULE_CODE_INFO) && !is_walked {
            return self.target_of_list(flags);
        }
        let interpreter = layout.rules().get(usize::from(layout.quick_rule)).copied();
        if interpreter.is_none() {
            layout.quick_rule = compiled;
        }
        let Some(rule) = layout.rules.get_mut(usize::from(compiled)) else {
            return self.target_of_list(flags);
        };
        if is_walked {
            (rule.code_start, rule.code_end) = (code.start, code.end);
        }
        if let Some(interpreter) = interpreter {
            let bit = |register| spill_bit(self.machine(), register);
            let (Some(pc), Some(frame)) = (bit(interpreter.reg_pc), bit(interpreter.reg_frame))
            else {
                return self.target_of_list(flags);
            };
            (rule.saved_pc, rule.saved_frame) = (pc, frame);
        }
        self.target_of(&layout, flags)
    }

    /// Returns the shim's target for walking linked frames only.
    fn target_of_list(&self, flags: u32) -> Target {
        let mut layout = self.layout;
        (layout.rule_count, layout.quick_rule) = (1, NO_RULE);
        Target::ready(&layout, &[self.body(0)], self.machine(), flags)
    }

    /// Returns the index of the rule of compiled frames: the last one, if it is such a rule. Only a process with compiled code is given it.
    fn compiled_rule(&self) -> Option<u8> {
        let last = self.layout.rule_count.checked_sub(1)?;
        let rule = self.layout.rules().get(usize::from(last))?;
        let is_compiled = matches!(rule.kind, RULE_SIZED | RULE_CODE_INFO);
        (is_compiled && self.layout.quick_rule != last).then_some(last)
    }

    fn target_of(&self, layout: &Layout, flags: u32) -> Target {
        let bodies: [Body; MAX_RULES] = std::array::from_fn(|rule| self.body(rule));
        Target {
            states: self.states.clone(),
            ..Target::ready(layout, &bodies, self.machine(), flags)
        }
    }

    /// The machine of its layout.
    fn machine(&self) -> Machine {
        Machine::of_elf(self.layout.machine).unwrap_or(Machine::NATIVE)
    }

    /// Adds the states of the code of its quick frames, if the unwind information of its library shows them. Where frames are complete, the
    /// code is a loop; elsewhere no register leads to a frame.
    pub(crate) fn with_states(mut self, space: &AddressSpace) -> Self {
        if !self.states.is_empty() {
            return self;
        }
        let Some(rule) = self.layout.rules().get(usize::from(self.layout.quick_rule)) else {
            return self;
        };
        let code = rule.code_start..rule.code_end;
        let addresses = Address::new(code.start)..Address::new(code.end);
        let Some((rows, bias)) = MappedCode::new(space).rows(addresses) else {
            return self;
        };
        let states = quick_code::states(rule, &rows, bias)
            .filter(|states| states.iter().any(CodeState::has_pc));
        let Some(states) = states else {
            tracing::debug!(
                "the unwind information of the VM's interpreter marks no complete frame"
            );
            return self;
        };
        let index = u32::from(self.layout.quick_rule);
        self.ranges
            .retain(|range| range.end <= code.start || range.start >= code.end);
        self.ranges
            .extend(quick_code::ranges(&states, &code, index));
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.recent = RecentRanges::default();
        self.states = CodeStates::new(&states, self.machine());
        self
    }
}

impl Description {
    /// A description such as a tunnel might contain.
    #[doc(hidden)]
    pub fn made_up(layout: Layout, ranges: Vec<CodeRange>) -> Self {
        Self {
            layout,
            handlers: handlers_in(&ranges),
            described_ranges: ranges.clone(),
            ranges,
            states: CodeStates::default(),
            recent: RecentRanges::default(),
            codes: Vec::new(),
            traces: Vec::new(),
            layout_source: LayoutSource::Tunnel,
            pc_register: std::rc::Rc::default(),
            files: None,
            tunnel: None,
        }
    }

    /// Sets what its compiler has made, sorted.
    #[doc(hidden)]
    pub fn set_traces(&mut self, traces: Vec<Trace>) {
        self.traces = traces;
    }
}
