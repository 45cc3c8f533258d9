//! Does unwinding find the callers and registers that were there?

mod aarch64;
#[cfg(target_arch = "x86_64")]
mod entry;
mod fixed_frame;
mod hostile;
#[cfg(target_arch = "x86_64")]
mod rows;
mod unwound_stack;

use super::*;
use crate::walk::MAX_FRAMES;
use procfs::process::MMapPath;
use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use varid_model::{Address, BeyondCopy, FrameAddress, FrameLink, Holes, Machine, Regs, Resumption};
use varid_testing::Compiled;

/// DWARF numbers of the registers that `struct registers` of chain.c holds, in its order.
const SHOWN: [u16; 8] = [3, 6, 12, 13, 14, 15, 7, 16];

/// What the chain showed of itself when it stopped.
struct Shown {
    record: Record,
    /// Return addresses as backtrace(3) finds them, from the frame that stopped on.
    truth: Vec<u64>,
}

/// What a test has at an address.
enum CodeAt<'m> {
    /// A module's code, at this address of the module.
    Module(RefMut<'m, Module>, u64),
    /// Code without rules.
    Unknown,
    /// Code without rules that keeps frame pointers.
    Linked,
    /// Code whose callers are not on the stack.
    Thawing,
    /// Code whose rules have not been read.
    NotRead,
    /// No code.
    None,
}

/// The code of a test's process, by a function from addresses.
struct Code<F>(F);

impl<'m, F: FnMut(u64) -> CodeAt<'m>> UnwindInfo for Code<F> {
    fn rule(&mut self, pc: Address) -> CodeRule {
        match self.0(pc.get()) {
            CodeAt::Module(mut module, own) => module.rule(Address::new(own)),
            CodeAt::Unknown | CodeAt::Linked => CodeRule::Unknown,
            CodeAt::Thawing => CodeRule::Elsewhere,
            CodeAt::NotRead => CodeRule::NotRead,
            CodeAt::None => CodeRule::NoCode,
        }
    }

    fn is_code(&mut self, pc: Address) -> bool {
        !matches!(self.0(pc.get()), CodeAt::None)
    }

    fn keeps_frame_pointers(&mut self, pc: Address) -> bool {
        match self.0(pc.get()) {
            CodeAt::Module(mut module, own) => module.keeps_frame_pointers(Address::new(own)),
            CodeAt::Linked => true,
            CodeAt::Unknown | CodeAt::Thawing | CodeAt::NotRead | CodeAt::None => false,
        }
    }

    fn begins_threads(&mut self, pc: Address) -> bool {
        match self.0(pc.get()) {
            CodeAt::Module(mut module, own) => module.begins_threads(Address::new(own)),
            CodeAt::Unknown | CodeAt::Linked | CodeAt::Thawing | CodeAt::NotRead | CodeAt::None => {
                false
            }
        }
    }

    fn function_start(&mut self, pc: Address) -> Option<Address> {
        match self.0(pc.get()) {
            CodeAt::Module(mut module, own) => {
                let start = module.function_start(Address::new(own))?;
                Some(start.wrapping_add(pc.get().wrapping_sub(own)))
            }
            CodeAt::Unknown | CodeAt::Linked | CodeAt::Thawing | CodeAt::NotRead | CodeAt::None => {
                None
            }
        }
    }
}

fn unwind<'m>(
    record: &Record,
    until: Option<u64>,
    code_at: impl FnMut(u64) -> CodeAt<'m>,
) -> NativeStack {
    // What another record has left there means nothing.
    let mut stack = NativeStack {
        frames: vec![NativeFrame {
            address: FrameAddress::Return(Address::new(1)),
            sp: Address::new(1),
            regs: Regs::default(),
            reached: Reached::Unwound,
        }],
        end: Some(Address::new(1)),
        stopped: Some(UnwindError::NoStack),
    };
    let until = until.map(Address::new);
    stack.unwind(&record.regs, record.slice(), until, &mut Code(code_at));
    stack
}

/// What a sample has of a thread.
struct Record {
    regs: Regs,
    stack_addr: u64,
    stack: Vec<u8>,
    /// What a signal interrupted whose handler runs on an alternate stack.
    interrupted: Option<(u64, Vec<u8>)>,
    /// What frame pointers lead to outside of these.
    beyond: BeyondCopy,
}

impl Record {
    fn slice(&self) -> StackSlice<'_> {
        let slice =
            StackSlice::new(Address::new(self.stack_addr), &self.stack).and_beyond(&self.beyond);
        match &self.interrupted {
            Some((start, stack)) => {
                slice.interrupting(Address::new(*start), stack, Holes::default())
            }
            None => slice,
        }
    }
}

fn record(regs: Regs, stack_addr: u64, stack: Vec<u8>) -> Record {
    Record {
        regs,
        stack_addr,
        stack,
        interrupted: None,
        beyond: BeyondCopy::default(),
    }
}

/// The memory of this process from an address to the end of its mapping.
fn copy_to_end(start: u64) -> Vec<u8> {
    let maps = procfs::process::Process::myself().unwrap().maps().unwrap();
    let map = maps
        .iter()
        .find(|map| (map.address.0..map.address.1).contains(&start))
        .unwrap();
    let mut bytes = vec![0; usize::try_from(map.address.1 - start).unwrap()];
    let memory = File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, start).unwrap();
    bytes
}

/// chain.c's `stop`: copies the thread's stack, as a sample does, and asks libgcc's unwinder.
unsafe extern "C" fn stop(context: *mut c_void, registers: *const [u64; 8]) {
    // SAFETY: chain.c hands back the context of `show`, and its own registers.
    let (shown, registers) = unsafe { (&mut *context.cast::<Option<Shown>>(), &*registers) };
    let mut regs = Regs::default();
    SHOWN
        .iter()
        .zip(registers)
        .for_each(|(dwarf, value)| regs.set(*dwarf, Some(*value)));
    let sp = regs.sp().unwrap();
    let stack = copy_to_end(sp);
    // The context lies further out on the ordinary stack.
    let context = std::ptr::from_mut(shown) as u64;
    let is_on_it = (sp..sp + stack.len() as u64).contains(&context);
    let interrupted = (!is_on_it).then(|| (context - BELOW, copy_to_end(context - BELOW)));
    let mut truth = [std::ptr::null_mut(); 256];
    // SAFETY: the buffer has room for as many addresses as are asked for.
    let found = unsafe { libc::backtrace(truth.as_mut_ptr(), truth.len() as c_int) };
    let truth = truth[..found as usize]
        .iter()
        .map(|address| *address as u64);
    let truth = truth
        .skip_while(|address| Some(*address) != regs.ip())
        .collect();
    let mut record = record(regs, sp, stack);
    record.interrupted = interrupted;
    *shown = Some(Shown { record, truth });
}

/// Bytes of the stack that the functions between a test and a signal take at most.
const BELOW: u64 = 0x4000;

type Stop = unsafe extern "C" fn(*mut c_void, *const [u64; 8]);

/// chain.c, loaded into this process.
struct Chain {
    handle: *mut c_void,
    /// Its files are needed as long as it is mapped.
    _compiled: Compiled,
}

impl Chain {
    fn load() -> Self {
        let compiled = Compiled::new("chain.c", include_str!("chain.c"));
        let path = CString::new(compiled.path().to_str().unwrap()).unwrap();
        // SAFETY: the library has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self {
            handle,
            _compiled: compiled,
        }
    }

    fn symbol(&self, name: &std::ffi::CStr) -> *mut c_void {
        // SAFETY: the handle is of a library that stays loaded.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!symbol.is_null());
        symbol
    }

    fn with_values(&self, values: &[u64; 6], depth: c_int) -> Shown {
        type WithValues = unsafe extern "C" fn(*const [u64; 6], c_int, Stop, *mut c_void);
        // SAFETY: this is the function's type in chain.c.
        let function: WithValues = unsafe { std::mem::transmute(self.symbol(c"with_values")) };
        let mut shown: Option<Shown> = None;
        // SAFETY: `stop` gets the context that it expects, alive through the call.
        unsafe { function(values, depth, stop, (&raw mut shown).cast()) };
        shown.unwrap()
    }

    fn in_signal(&self, alternate: &mut [u8]) -> Shown {
        type InSignal = unsafe extern "C" fn(Stop, *mut c_void, *mut u8, usize) -> c_int;
        // SAFETY: as above.
        let function: InSignal = unsafe { std::mem::transmute(self.symbol(c"in_signal")) };
        let mut shown: Option<Shown> = None;
        let (start, size) = match alternate {
            [] => (std::ptr::null_mut(), 0),
            some => (some.as_mut_ptr(), some.len()),
        };
        // SAFETY: as above; nothing else uses the alternate stack through the call.
        let result = unsafe { function(stop, (&raw mut shown).cast(), start, size) };
        assert_eq!(result, 0);
        shown.unwrap()
    }
}

/// The ELF files that are mapped into this process, by their addresses.
struct Modules(Vec<(Range<u64>, u64, Rc<RefCell<Module>>)>);

fn this_process() -> Modules {
    let mut files: HashMap<PathBuf, Rc<RefCell<Module>>> = HashMap::new();
    let mut modules = Vec::new();
    for map in procfs::process::Process::myself().unwrap().maps().unwrap() {
        let MMapPath::Path(path) = &map.pathname else {
            continue;
        };
        let read = || {
            let bytes = std::fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            Some(Rc::new(RefCell::new(Module::new(&file))))
        };
        let module = match files.get(path) {
            Some(module) => Some(module.clone()),
            None => read().inspect(|module| {
                files.insert(path.clone(), module.clone());
            }),
        };
        if let Some(module) = module {
            modules.push((map.address.0..map.address.1, map.offset, module));
        }
    }
    Modules(modules)
}

fn code_at(process: &Modules, address: u64) -> CodeAt<'_> {
    let found = process
        .0
        .iter()
        .find(|(range, ..)| range.contains(&address));
    let Some((range, pgoff, module)) = found else {
        return CodeAt::Unknown;
    };
    let module = module.borrow_mut();
    match module.address_of_offset(address - range.start + pgoff) {
        Some(address) => CodeAt::Module(module, address.get()),
        None => CodeAt::Unknown,
    }
}

fn ip(frame: &NativeFrame) -> u64 {
    frame.address.recorded().get()
}

fn ips(stack: &NativeStack) -> Vec<u64> {
    stack.frames.iter().map(ip).collect()
}

const VALUES: [u64; 6] = [
    0x1111_2222_3333_4444,
    0xb0b0,
    0x1212,
    0x1313_0000_0000_1313,
    0x1414,
    u64::MAX,
];

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn callers_are_those_that_backtrace_finds() {
    let chain = Chain::load();
    let process = this_process();
    for depth in [0, 1, 50] {
        let Shown { record, truth } = chain.with_values(&VALUES, depth);
        let stack = unwind(&record, None, |address| code_at(&process, address));
        assert_eq!(stack.stopped, None);
        assert!(truth.len() > depth as usize + 4, "{truth:x?}");
        assert_eq!(ips(&stack), truth);
        assert!(stack.frames.windows(2).all(|pair| pair[0].sp < pair[1].sp));
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn registers_that_callees_saved_come_back() {
    let chain = Chain::load();
    let process = this_process();
    let Shown { record, .. } = chain.with_values(&VALUES, 3);
    let stack = unwind(&record, None, |address| code_at(&process, address));
    let called = chain.symbol(c"with_values_called") as u64;
    let frame = stack
        .frames
        .iter()
        .find(|frame| ip(frame) == called)
        .unwrap();
    let found = SHOWN[..6].iter().map(|dwarf| frame.regs.get(*dwarf));
    assert_eq!(found.collect::<Vec<_>>(), VALUES.map(Some));
    // They are what its callees saved: where the chain stopped, they were others.
    assert_ne!(record.regs.get(3), Some(VALUES[0]));
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn a_signals_frame_is_no_barrier() {
    let chain = Chain::load();
    let process = this_process();
    let Shown { record, truth } = chain.in_signal(&mut []);
    let stack = unwind(&record, None, |address| code_at(&process, address));
    assert_eq!(stack.stopped, None);
    assert_eq!(ips(&stack), truth);
}

/// Memory far below all stacks of this process, or above this thread's.
fn alternate_stack(is_below: bool) -> &'static mut [u8] {
    const SIZE: usize = 1 << 20;
    let here = (&raw const is_below) as usize;
    let places: Vec<usize> = match is_below {
        true => (1..64).map(|at| at << 32).collect(),
        false => (1..4096).map(|at| here + (at << 24)).collect(),
    };
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
    );
    let mapped = places.into_iter().find_map(|place| {
        let place = std::ptr::without_provenance_mut(place & !0xfff);
        // SAFETY: what is mapped already is not replaced.
        let mapped = unsafe { libc::mmap(place, SIZE, access, kind, -1, 0) };
        (mapped == place).then_some(mapped)
    });
    // SAFETY: the mapping is new, of this size, and stays.
    unsafe { std::slice::from_raw_parts_mut(mapped.unwrap().cast(), SIZE) }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn an_alternate_stack_is_no_barrier_where_the_interrupted_one_is_copied_too() {
    let chain = Chain::load();
    for is_below in [true, false] {
        let alternate = alternate_stack(is_below);
        let process = this_process();
        let Shown { mut record, truth } = chain.in_signal(alternate);
        let code_at = |address| code_at(&process, address);
        let whole = unwind(&record, None, code_at);
        assert_eq!(whole.stopped, None);
        assert_eq!(ips(&whole), truth);
        let descends = !whole.frames.is_sorted_by_key(|frame| frame.sp);
        assert_eq!(descends, !is_below);
        // Frames of the handler do not enclose an address of the interrupted stack.
        let outermost = whole.frames[truth.len() - 2].sp;
        let part = unwind(&record, Some(outermost.get() + 1), code_at);
        assert_eq!(part.stopped, None);
        assert_eq!(ips(&part), truth[..truth.len() - 1]);
        // perf copies the stack that the handler runs on alone.
        record.interrupted = None;
        let cut = unwind(&record, None, code_at);
        assert_eq!(cut.stopped, Some(UnwindError::NoStack));
        assert_eq!(ips(&cut), truth[..cut.frames.len()]);
        let interrupted = cut.frames.last().unwrap();
        assert!(cut.frames.len() > 1 && interrupted.address.is_instruction());
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn a_stack_that_is_cut_anywhere_gives_the_frames_below_the_cut() {
    let chain = Chain::load();
    let process = this_process();
    let Shown { mut record, truth } = chain.with_values(&VALUES, 5);
    let whole = record.stack.clone();
    let mut fewest = 1;
    for len in (0..2048.min(whole.len())).step_by(4) {
        record.stack = whole[..len].to_vec();
        let stack = unwind(&record, None, |address| code_at(&process, address));
        let found = ips(&stack);
        assert_eq!(found, truth[..found.len()], "{len} bytes");
        assert!(found.len() >= fewest);
        assert_eq!(
            stack.stopped,
            (found.len() < truth.len()).then_some(UnwindError::NoStack)
        );
        fewest = found.len();
    }
    assert!(fewest > 5);
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn unwinding_ends_with_the_frame_that_encloses_the_address() {
    let chain = Chain::load();
    let process = this_process();
    let Shown { record, .. } = chain.with_values(&VALUES, 5);
    let whole = unwind(&record, None, |address| code_at(&process, address)).frames;
    for (index, pair) in whole.windows(2).enumerate() {
        for until in [pair[0].sp.get(), pair[1].sp.get() - 8] {
            let stack = unwind(&record, Some(until), |address| code_at(&process, address));
            assert_eq!(stack.frames, whole[..=index]);
            assert_eq!((stack.end, stack.stopped), (Some(pair[1].sp), None));
        }
    }
}

#[test]
fn a_frame_that_begins_at_the_address_encloses_it_even_where_its_end_is_beyond_the_copy() {
    // A leaf that has pushed nothing, its caller's frame, and nothing more.
    let record = words(CODE, 0, 1, &[CODE + 8]);
    let until = SP + 8;
    let stack = unwind(&record, Some(until), unknown_code);
    assert_eq!(ips(&stack), [CODE, CODE + 8]);
    assert_eq!((stack.end, stack.stopped), (None, None));
    let stack = unwind(&record, Some(until + 8), unknown_code);
    assert_eq!(stack.frames.len(), 2);
    assert!(stack.stopped.is_some());
}

/// Where the stacks below are said to lie.
const SP: u64 = 0x7fff_0000_0000;
const CODE: u64 = 0x5000;

/// A stack of words, and sp and fp as offsets into it.
fn words(ip: u64, sp: usize, fp: usize, words: &[u64]) -> Record {
    let mut regs = Regs::default();
    regs.set_frame(ip, SP + 8 * sp as u64, SP + 8 * fp as u64);
    record(
        regs,
        SP,
        words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    )
}

/// What frame pointers lead to outside of a copy: their addresses, the words there, and bytes from the first on.
fn beyond(links: &[(u64, u64, u64)], words: &[u64]) -> BeyondCopy {
    let link = |(at, caller_fp, return_address): &(u64, u64, u64)| FrameLink {
        at: Address::new(*at),
        caller_fp: *caller_fp,
        return_address: *return_address,
    };
    let mut beyond = BeyondCopy::default();
    beyond.links.extend(links.iter().map(link));
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    beyond.bytes.extend(bytes);
    beyond
}

/// Code without unwind information between two addresses; nothing elsewhere.
fn unknown_code(address: u64) -> CodeAt<'static> {
    if (CODE..CODE + 0x1000).contains(&address) {
        CodeAt::Unknown
    } else {
        CodeAt::None
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn code_without_rules_is_left_by_its_frame_pointer() {
    // The leaf has pushed nothing; its caller and that one's caller keep frame pointers.
    let stack = [CODE + 0x10, 0, SP + 8 * 5, CODE + 0x20, 0, 0, 0];
    let found = unwind(&words(CODE, 0, 2, &stack), None, unknown_code);
    assert_eq!(ips(&found), [CODE, CODE + 0x10, CODE + 0x20]);
    assert_eq!(found.frames[2].sp, Address::new(SP + 8 * 4));
    // A return address of zero: the outermost frame.
    assert_eq!(found.stopped, None);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn a_frame_pointer_that_leads_nowhere_is_no_information() {
    let misaligned = words(CODE, 0, 2, &[CODE + 0x10, 0, SP + 3, CODE + 0x20, 0, 0]);
    let below = words(CODE, 0, 2, &[CODE + 0x10, 0, SP, CODE + 0x20, 0, 0]);
    for record in [misaligned, below] {
        let found = unwind(&record, None, unknown_code);
        assert_eq!(ips(&found), [CODE, CODE + 0x10, CODE + 0x20]);
        assert_eq!(
            found.stopped,
            Some(UnwindError::NoInfo(Address::new(CODE + 0x20)))
        );
        assert_eq!(found.end, None);
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn frames_go_on_where_the_record_says_what_has_called_unknown_ones() {
    let resumption = |from: u64, sp: u64, returns: u64| Resumption {
        from: Address::new(from),
        sp: Address::new(sp),
        fp: 0,
        returns: Address::new(returns),
    };
    // The caller's own caller is unknown. So is that of the frame that called it, and there is another stretch behind that one.
    let mut record = words(CODE, 0, 2, &[CODE + 0x10, 0]);
    record.beyond.resumptions.extend([
        resumption(0, SP + 0x9000, CODE + 0x20),
        resumption(SP + 0x9000, SP + 0xa000, CODE + 0x30),
        // Nothing has this stack pointer.
        resumption(SP + 0xb000, SP + 0xc000, CODE + 0x40),
    ]);
    let found = unwind(&record, None, unknown_code);
    assert_eq!(ips(&found), [CODE, CODE + 0x10, CODE + 0x20, CODE + 0x30]);
    let reached: Vec<_> = found.frames.iter().map(|frame| frame.reached).collect();
    use Reached::{Resumed, Unwound};
    assert_eq!(reached, [Unwound, Unwound, Resumed, Resumed]);
    assert_eq!(found.frames[2].sp, Address::new(SP + 0x9000));
    assert_eq!(
        found.stopped,
        Some(UnwindError::NoInfo(Address::new(CODE + 0x30)))
    );
    // It ends there if no code is there.
    record.beyond.resumptions[1].returns = Address::new(0x1234);
    let found = unwind(&record, None, unknown_code);
    assert_eq!(
        found.stopped,
        Some(UnwindError::NoCode(Address::new(0x1234)))
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn a_return_address_that_is_no_code_is_refused() {
    // Not what lies at sp, then: the frame pointer is the other way on, and leads to no code either. Without rules it may be anything.
    let found = unwind(
        &words(CODE, 0, 2, &[0x1234, 0, 0, 0x9999]),
        None,
        unknown_code,
    );
    assert_eq!(ips(&found), [CODE]);
    assert_eq!(found.stopped, Some(UnwindError::NoInfo(Address::new(CODE))));
    let found = unwind(
        &words(CODE, 0, 2, &[0x1234, 0, 0, CODE + 0x10]),
        None,
        unknown_code,
    );
    assert_eq!(ips(&found), [CODE, CODE + 0x10]);
    let lost = unwind(&words(0x1234, 0, 2, &[CODE, 0, 0, 0]), None, unknown_code);
    assert_eq!(
        lost.stopped,
        Some(UnwindError::NoCode(Address::new(0x1234)))
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn code_that_puts_frames_on_the_stack_is_where_it_ends() {
    let record = words(
        CODE,
        0,
        1,
        &[0x1234, SP + 0x18, CODE + 0x10, 0, CODE + 0x20],
    );
    let found = unwind(&record, None, |pc| match pc {
        pc if pc < CODE => CodeAt::None,
        pc if pc < CODE + 0x18 => CodeAt::Linked,
        _ => CodeAt::Thawing,
    });
    assert_eq!(ips(&found), [CODE, CODE + 0x10]);
    assert_eq!(
        found.stopped,
        Some(UnwindError::Elsewhere(Address::new(SP + 0x28)))
    );
}

/// The frame pointers of code that has unwind information may be any words.
#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn what_has_not_been_read_yet_is_not_guessed() {
    let linked = |end| {
        move |pc| match pc {
            pc if pc < CODE => CodeAt::None,
            pc if pc < end => CodeAt::Linked,
            _ => CodeAt::NotRead,
        }
    };
    let record = words(CODE, 0, 1, &[0x1234, SP + 0x18, CODE + 0x10, 0, 0, 0]);
    let read = unwind(&record, None, linked(CODE + 0x20));
    assert_eq!(
        (&*ips(&read), read.stopped),
        (&[CODE, CODE + 0x10][..], None)
    );
    for (end, known) in [(CODE, 1), (CODE + 1, 2)] {
        let found = unwind(&record, None, linked(end));
        let unread = [CODE, CODE + 0x10][known - 1];
        assert_eq!(ips(&found), [CODE, CODE + 0x10][..known]);
        assert_eq!(
            found.stopped,
            Some(UnwindError::NotRead(Address::new(unread)))
        );
    }
}

#[test]
fn registers_that_are_not_there_give_no_frames() {
    let found = unwind(&record(Regs::default(), SP, Vec::new()), None, unknown_code);
    assert_eq!(found, NativeStack::default());
}
