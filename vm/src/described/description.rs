//! What is known of a VM, whatever its kind: how its frames are linked, what its code does, who says so.

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

/// What is known of a process's VM.
#[derive(Debug, Clone)]
pub struct Description {
    /// How its frames are linked; registers by DWARF number.
    pub layout: Layout,
    /// What its description says of its code, sorted, disjoint.
    described_ranges: Vec<CodeRange>,
    /// What its code does, sorted, disjoint: the same, and more exactly where its states are known.
    ranges: Vec<CodeRange>,
    /// The states of the code of its quick frames; empty: they are not known.
    states: CodeStates,
    /// 256 handlers of one size, one for each opcode.
    handlers: Range<u64>,
    /// Which of its ranges addresses are in that were asked for: return addresses come again and again.
    recent: RecentRanges,
    /// Dex files that it says it executes.
    pub codes: Vec<PublishedBytecode>,
    /// What its compiler has made of them, sorted.
    traces: Vec<Trace>,
    /// Where the layout comes from.
    pub layout_source: LayoutSource,
    /// The state of the pc register at each byte of the handlers.
    pc_register: std::rc::Rc<[PcRegister]>,
    /// Where it reads what is wanted of it, and where it counts calls, of the process whose tunnel this is.
    files: Option<(Pid, abi::VmFile, Option<abi::VmFile>)>,
    /// Its tunnel: where it is, and how often it had changed when it was read.
    tunnel: Option<(u64, u64, u32)>,
}

/// The ranges of addresses that were asked for last, by some bits of the address.
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

    /// The index of the range that an address is in; `find`: if that is not known.
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
    /// The VM's library, and the process that has loaded it; in words, how that was checked.
    Library(String),
}

impl LayoutSource {
    /// The VM, as far as that is known.
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

/// The code of the handlers, one for each opcode.
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

/// The kind of a range of a tunnel or of the table of builds (`RANGE_*`); None: of one that this version does not know.
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

/// The rule whose registers a range speaks of.
fn rule_of<'a>(layout: &'a Layout, range: &CodeRange) -> Option<&'a Rule> {
    layout.rules().get(usize::try_from(range.rule).ok()?)
}

/// The bit of a register in what a compiler notes down of those that a frame keeps: its number in the machine's instructions. None: it differs from
/// the register's DWARF number, or the machine's are not known.
fn spill_bit(machine: Machine, dwarf: u8) -> Option<u16> {
    match machine {
        Machine::X86_64 => matches!(dwarf, 8..=15),
        Machine::Aarch64 => dwarf <= 30,
        Machine::X86 | Machine::Arm => false,
    }
    .then_some(dwarf.into())
}

/// Address of a tunnel's generation.
fn generation_of(tunnel: u64) -> u64 {
    tunnel.wrapping_add(std::mem::offset_of!(abi::TunnelHeader, generation) as u64)
}

impl Description {
    /// The VM whose library, of this build, is loaded at `load_base`.
    pub(crate) fn of_build(
        memory: &dyn Memory,
        build: &'static Build,
        layout: Layout,
        load_base: u64,
    ) -> Self {
        let ranges = build.ranges(load_base);
        Self::of_layout(memory, layout, ranges, LayoutSource::Build(build.name()))
    }

    /// The VM whose library says this of itself, as the process agrees.
    pub(crate) fn of_layout(
        memory: &dyn Memory,
        layout: Layout,
        ranges: Vec<CodeRange>,
        layout_source: LayoutSource,
    ) -> Self {
        Self {
            pc_register: pc_register_in(memory, &layout, &ranges),
            handlers: handlers_in(&ranges),
            layout,
            described_ranges: ranges.clone(),
            ranges,
            states: CodeStates::default(),
            recent: RecentRanges::default(),
            codes: Vec::new(),
            traces: Vec::new(),
            layout_source,
            files: None,
            tunnel: None,
        }
    }

    /// The VM that a tunnel describes; `before`: the same VM as it was known.
    pub(crate) fn read(
        pid: Pid,
        start: u64,
        len: u64,
        before: Option<&Self>,
    ) -> Result<Self, TunnelError> {
        let memory = ForeignMemory::new(pid);
        // Read first: a change after this is seen as one.
        let generation = memory.read_u32(generation_of(start))?;
        let description = read_tunnel(&memory, start, len, pid)?;
        let (layout, described_ranges) = (description.layout, description.ranges);
        // What comes and goes is dex files and compiled code: the interpreters stay what they are.
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

    /// Where the VM of this process reads what is wanted of it; a forked child's is its parent's, until it has
    /// its own.
    pub fn control(&self, pid: Pid) -> Option<abi::VmFile> {
        let (owner, control, _) = self.files?;
        (owner == pid).then_some(control)
    }

    /// Where the VM of this process counts calls.
    pub fn calls(&self, pid: Pid) -> Option<abi::VmFile> {
        let (owner, _, calls) = self.files?;
        calls.filter(|_| owner == pid)
    }

    /// Where the VM counts the changes of its description, if it describes itself.
    pub fn generation_at(&self) -> Option<u64> {
        self.tunnel.map(|(start, ..)| generation_of(start))
    }

    /// Whether the VM has changed its description since. `generation`: what it counts, if that has just been read.
    pub fn has_changed(&self, pid: Pid, generation: Option<u32>) -> bool {
        self.tunnel.is_some_and(|(start, _, seen)| {
            let read = || ForeignMemory::new(pid).read_u32(generation_of(start)).ok();
            let now = generation.or_else(read);
            now.is_some_and(|now| now != seen)
        })
    }

    /// What the description says now; None: it is being written, or gone.
    pub fn reread(&self, pid: Pid) -> Option<Self> {
        let (start, len, _) = self.tunnel?;
        Self::read(pid, start, len, Some(self)).ok()
    }

    /// They are disjoint: the one that begins last before an address is the only one that it may be in.
    fn range_at(&self, address: u64) -> Option<&CodeRange> {
        let index = self.recent.index(address, || {
            let after = self.ranges.partition_point(|range| range.start <= address);
            let last = after.checked_sub(1)?;
            let range = self.ranges.get(last)?;
            (address < range.end).then_some(last)
        })?;
        self.ranges.get(index)
    }

    /// What the code at an address does, if it is the VM's.
    #[inline]
    pub fn code_at(&self, address: u64) -> Option<CodeKind> {
        kind_of_range(self.range_at(address)?.kind)
    }

    /// The function of the machinery of calls that an address is in: such code is described function by function.
    pub fn bridge_at(&self, address: u64) -> Option<Range<u64>> {
        let range = self.range_at(address)?;
        (range.kind == abi::RANGE_BRIDGE).then_some(range.start..range.end)
    }

    /// Its frames are addresses on the threads' native stacks.
    pub fn is_on_native_stack(&self) -> bool {
        self.layout.flags & LAYOUT_ON_NATIVE_STACK != 0
    }

    /// Nothing but compiled code came or went since it was described as `before`.
    pub fn differs_in_traces_only(&self, before: &Self) -> bool {
        self.layout == before.layout
            && self.ranges == before.ranges
            && self.codes == before.codes
            && self.traces != before.traces
    }

    /// Where the bytecode starts that its compiler has made the code at an address of.
    pub fn trace(&self, address: u64) -> Option<u64> {
        let after = self.traces.partition_point(|trace| trace.start <= address);
        let trace = self.traces.get(after.checked_sub(1)?)?;
        Some(trace.pc)
    }

    /// The opcode of the handler at an address, and the state of the pc register there.
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

    /// The rule that frames of the VM's code at an address follow.
    pub fn rule_at(&self, address: u64) -> Option<&Rule> {
        rule_of(&self.layout, self.range_at(address)?)
    }

    /// Whether frames of the code at an address are native frames with their method at the stack pointer.
    pub fn is_at_sp(&self, address: u64) -> bool {
        self.rule_at(address)
            .is_some_and(|rule| rule.kind == RULE_AT_SP)
    }

    /// The body of the interpreter loop of a rule: the first one, where there are several.
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

    /// Whether any of the VM's code lies between these addresses.
    pub fn has_code_in(&self, start: u64, end: u64) -> bool {
        self.ranges
            .iter()
            .any(|range| range.start < end && range.end > start)
    }

    /// What the shim is told about a process without compiled code.
    pub fn target(&self, flags: u32) -> Target {
        let mut layout = self.layout;
        layout.rule_count = self.compiled_rule().unwrap_or(layout.rule_count);
        self.target_of(&layout, flags)
    }

    /// The same of a process with compiled code, all of which is between these addresses: its frames are walked, which costs more.
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

    /// What the shim is told where it walks linked frames only.
    fn target_of_list(&self, flags: u32) -> Target {
        let mut layout = self.layout;
        (layout.rule_count, layout.quick_rule) = (1, NO_RULE);
        Target::ready(&layout, &[self.body(0)], self.machine(), flags)
    }

    /// Index of the rule of compiled frames, which only a process with compiled code is given: the last one, if it is one.
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

    /// The same, where the unwind information of its library tells the states of the code of its quick frames: where frames are complete
    /// that is a loop, elsewhere no register leads to a frame.
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
    /// A VM as its tunnel might describe it.
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

    /// What its compiler has made, sorted.
    #[doc(hidden)]
    pub fn set_traces(&mut self, traces: Vec<Trace>) {
        self.traces = traces;
    }
}
