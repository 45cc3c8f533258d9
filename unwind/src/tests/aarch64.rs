//! Are frames of AArch64 code that signs its return addresses unwound, wherever this test runs?

use super::*;
use object::{Object, ObjectSymbol};
use std::cell::RefCell;
use std::sync::OnceLock;
use varid_model::Machine;

/// `outer` calls `inner`, which keeps two registers and calls on; compiled by a compiler for AArch64.
const SOURCE: &str = "
long leaf(long, long *);
__attribute__((noinline)) long inner(long a, long b) { long c[6]; long x = leaf(a, c); return x + leaf(b, c) + a; }
long outer(long a) { return inner(a, a + 1) + 1; }
__asm__(\".globl first\\n.type first, %function\\nfirst:\\n.cfi_startproc\\n.cfi_undefined x30\\n\"
	\"nop\\nbl outer\\nnop\\n.cfi_endproc\\n.size first, . - first\\n\"
	\".globl bare\\n.type bare, %function\\nbare:\\nnop\\nbl bare_leaf\\nnop\\nnop\\n.size bare, . - bare\\n\"
	\".globl bare_leaf\\n.type bare_leaf, %function\\nbare_leaf:\\nnop\\nret\\n.size bare_leaf, . - bare_leaf\\n\"
	\".globl framed\\n.type framed, %function\\nframed:\\n.cfi_startproc\\nsub sp, sp, 96\\nstp x29, x30, [sp, 32]\\n\"
	\"add x29, sp, 32\\n.cfi_def_cfa_offset 96\\n.cfi_offset 29, -64\\n.cfi_offset 30, -56\\nbl bare\\nnop\\n\"
	\".cfi_endproc\\n.size framed, . - framed\\n\"
	\".globl trampoline\\n.type trampoline, %function\\n.cfi_startproc\\n.cfi_signal_frame\\n.cfi_def_cfa x29, 0\\n\"
	\".cfi_offset x29, 0\\n.cfi_offset x30, 8\\nnop\\ntrampoline:\\nmov x8, 139\\nsvc 0\\n.cfi_endproc\\n\"
	\".size trampoline, . - trampoline\\n\"
	\".globl undescribed\\n.type undescribed, %function\\nnop\\nundescribed:\\nmov x8, 139\\nsvc 0\\n\"
	\".size undescribed, . - undescribed\\n\");
";
const BASE: u64 = 0xffff_8c00_0000;
const STACK: u64 = 0xffff_e4a0_1000;
const SIGNATURE: u64 = 0x005a_0000_0000_0000;

/// The library, if there is a compiler.
fn library() -> Option<&'static [u8]> {
    static LIBRARY: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    LIBRARY.get_or_init(compile).as_deref()
}

fn compile() -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("varid-aarch64-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("signs.c"), folder.join("signs.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let built = std::process::Command::new("aarch64-linux-gnu-gcc")
        .args(["-O2", "-mbranch-protection=pac-ret", "-shared", "-fPIC"])
        .args(["-fasynchronous-unwind-tables", "-fomit-frame-pointer"])
        .args(["-nostdlib", "-o"])
        .args([&library, &source])
        .status();
    let bytes = built
        .is_ok_and(|status| status.success())
        .then(|| std::fs::read(&library).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    bytes
}

/// The library as it is mapped at [`BASE`]; code without unwind information lies at [`CODE`].
struct Compiled {
    bytes: &'static [u8],
    file: object::File<'static>,
    module: RefCell<Module>,
}

impl Compiled {
    /// None, and said: there is no compiler.
    fn new() -> Option<Self> {
        let Some(bytes) = library() else {
            println!("skipped: there is no aarch64-linux-gnu-gcc");
            return None;
        };
        let file = object::File::parse(bytes).unwrap();
        let module = RefCell::new(Module::new(&file));
        Some(Self {
            bytes,
            file,
            module,
        })
    }

    /// Where a function is mapped.
    fn symbol(&self, name: &str) -> u64 {
        let mut symbols = self.file.dynamic_symbols();
        BASE + symbols.find(|s| s.name() == Ok(name)).unwrap().address()
    }

    fn at(&self, address: u64) -> CodeAt<'_> {
        match address.checked_sub(BASE) {
            Some(own) if own < self.bytes.len() as u64 => {
                CodeAt::Module(self.module.borrow_mut(), own)
            }
            _ => unknown_code(address),
        }
    }
}

#[test]
fn signed_return_addresses_lead_to_the_callers() {
    let Some(code) = Compiled::new() else {
        return;
    };
    let symbol = |name| code.symbol(name);
    assert_eq!(code.module.borrow().machine(), Machine::Aarch64);
    let code_at = |address| code.at(address);
    // Interrupted at the first instruction, the signature is not made yet; at the second it is.
    for (into, signature) in [(0, 0), (4, SIGNATURE)] {
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(symbol("inner") + into, STACK, 0);
        // Called by `outer`, whose own frame holds a signed address of nothing: the outermost.
        let caller = symbol("outer") + 16;
        regs.set(30, Some(caller | signature));
        let record = record(regs, STACK, vec![0; 256]);
        let stack = unwind(&record, None, code_at);
        assert_eq!(ips(&stack)[..2], [symbol("inner") + into, caller]);
    }
    // Behind the prologue both are in memory: every word of the stack is a signed address into `outer`.
    let caller = symbol("outer") + 16;
    let mut regs = Regs::unknown(Machine::Aarch64);
    regs.set_frame(symbol("inner") + 32, STACK, 0);
    regs.set(30, Some(0x1234));
    let word = (caller | SIGNATURE).to_le_bytes();
    let record = record(regs, STACK, word.repeat(64));
    let stack = unwind(&record, None, code_at);
    assert_eq!(ips(&stack)[1], caller);
    // The caller's own return address was signed, too.
    assert_eq!(ips(&stack)[2], caller);
}

#[test]
fn a_function_that_nobody_called_ends_the_stack_although_it_has_pushed_nothing() {
    let Some(code) = Compiled::new() else {
        return;
    };
    let symbol = |name| code.symbol(name);
    let mut regs = Regs::unknown(Machine::Aarch64);
    regs.set_frame(symbol("outer"), STACK, 0);
    let first = symbol("first") + 8;
    regs.set(30, Some(first));
    let stack = unwind(&record(regs, STACK, vec![0; 256]), None, |address| {
        code.at(address)
    });
    assert_eq!(ips(&stack), [symbol("outer"), first]);
    assert_eq!(stack.stopped, None);
}

/// Interrupted code without unwind information, its link register, and the stack from sp on: two words, then those that its
/// frame pointer shows.
fn interrupted(ip: u64, link: u64) -> Record {
    let mut regs = Regs::unknown(Machine::Aarch64);
    regs.set_frame(ip, STACK, STACK + 16);
    regs.set(30, Some(link));
    let words = [0, 0, STACK + 40, (CODE + 0x10) | SIGNATURE, 0, 0, 0];
    record(
        regs,
        STACK,
        words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    )
}

#[test]
fn the_link_register_is_the_callers_unless_a_call_of_the_same_function_left_it() {
    let Some(code) = Compiled::new() else {
        return;
    };
    let symbol = |name| code.symbol(name);
    let (bare, leaf) = (symbol("bare"), symbol("bare_leaf"));
    let after_call = (bare + 8) | SIGNATURE;
    for (ip, link, expected) in [
        // Behind a call of its own: the frame pointer is its own.
        (bare + 12, after_call, vec![bare + 12, CODE + 0x10]),
        // The return address is still there, and in the frame.
        (bare, CODE + 0x10, vec![bare, CODE + 0x10]),
        (CODE, CODE + 0x10, vec![CODE, CODE + 0x10]),
        // A leaf without a frame: the frame pointer is the caller's.
        (leaf, after_call, vec![leaf, bare + 8, CODE + 0x10]),
        // Nobody knows where functions begin.
        (CODE, CODE + 0x30, vec![CODE, CODE + 0x30, CODE + 0x10]),
    ] {
        let stack = unwind(&interrupted(ip, link), None, |address| code.at(address));
        assert_eq!(ips(&stack), expected);
        assert_eq!(stack.stopped, None);
        // The two words may be anywhere in a frame: its size is not known.
        assert_eq!(stack.frames.last().unwrap().regs.sp(), None);
    }
}

#[test]
fn behind_a_frame_of_unknown_size_the_frame_pointer_tells_where_a_ruled_frame_ends() {
    let Some(code) = Compiled::new() else {
        return;
    };
    let symbol = |name| code.symbol(name);
    let after_call = symbol("framed") + 16;
    // The leaf's two words, and what else its frame has; then `framed`'s, with its own two in the middle.
    let mut words = [0u64; 48];
    words[..2].copy_from_slice(&[STACK + 8 * 12, after_call]);
    words[12..14].copy_from_slice(&[STACK + 8 * 40, CODE + 0x10]);
    let unwound = |words: &[u64]| {
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(CODE, STACK, STACK);
        regs.set(30, Some(after_call));
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        unwind(&record(regs, STACK, bytes), None, |address| {
            code.at(address)
        })
    };
    let stack = unwound(&words);
    assert_eq!(ips(&stack), [CODE, after_call, CODE + 0x10]);
    assert_eq!(stack.frames[2].regs.sp(), Some(STACK + 8 * 12 + 64));
    // It has something else in that register: nothing tells where its frame is.
    words[13] = 1;
    let stack = unwound(&words);
    assert_eq!(ips(&stack), [CODE, after_call]);
    assert_eq!(
        stack.stopped,
        Some(UnwindError::NoInfo(Address::new(after_call)))
    );
}

#[test]
fn what_a_signal_has_interrupted_is_in_the_frame_that_the_kernel_has_pushed() {
    const RECORD: u64 = 0x1200;
    let Some(code) = Compiled::new() else {
        return;
    };
    let symbol = |name| code.symbol(name);
    let (interrupted, caller) = (symbol("outer"), symbol("first") + 8);
    let frame_pointer = STACK + 0x2000;
    let unwound = |trampoline: &'static str, fp: u64, saved_link: u64| {
        let mut words = vec![0; 0x280];
        for (at, word) in [
            (RECORD, frame_pointer),
            (RECORD + 8, caller),
            // x19, x29, x30, the stack pointer and the instruction.
            (312 + 19 * 8, 19),
            (312 + 29 * 8, frame_pointer),
            (312 + 30 * 8, saved_link),
            (312 + 31 * 8, STACK + 0x1800),
            (312 + 32 * 8, interrupted),
            // Floating-point registers, of 528 bytes.
            (592, 528 << 32 | 0x4650_8001),
        ] {
            words[at as usize / 8] = word;
        }
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(symbol(trampoline), STACK, fp);
        let record = record(regs, STACK, words.collect());
        unwind(&record, None, |address| code.at(address))
    };
    // That of Linux 6.1 has no unwind information.
    // The frame pointer leads to the kernel's record, or is that of the interrupted code already.
    let pointers = [STACK + RECORD, frame_pointer];
    for (trampoline, fp) in ["trampoline", "undescribed"]
        .into_iter()
        .flat_map(|name| pointers.map(|fp| (name, fp)))
    {
        let stack = unwound(trampoline, fp, caller);
        assert_eq!(ips(&stack), [symbol(trampoline), interrupted, caller]);
        let frame = &stack.frames[1];
        assert!(frame.address.is_instruction());
        assert_eq!(frame.sp.get(), STACK + 0x1800);
        assert_eq!(frame.regs.get(19), Some(19));
    }
    // What has another link register is no such frame.
    let other = unwound("trampoline", STACK + RECORD, 0x1234);
    assert_eq!(ips(&other)[..2], [symbol("trampoline"), caller]);
}
