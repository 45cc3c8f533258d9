//! Are frames of AArch64 code that signs its return addresses unwound, wherever this test runs?

use super::*;
use object::{Object, ObjectSymbol};
use std::cell::RefCell;
use varid_shim::Machine;

/// `outer` calls `inner`, which keeps two registers and calls on; compiled by a compiler for AArch64.
const SOURCE: &str = "
long leaf(long, long *);
__attribute__((noinline)) long inner(long a, long b) { long c[6]; long x = leaf(a, c); return x + leaf(b, c) + a; }
long outer(long a) { return inner(a, a + 1) + 1; }
";
const BASE: u64 = 0xffff_8c00_0000;
const STACK: u64 = 0xffff_e4a0_1000;
const SIGNATURE: u64 = 0x005a_0000_0000_0000;

/// The library, if there is a compiler.
fn library() -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("varid-aarch64-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("signs.c"), folder.join("signs.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let built = Command::new("aarch64-linux-gnu-gcc")
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

#[test]
fn signed_return_addresses_lead_to_the_callers() {
    let Some(bytes) = library() else {
        println!("skipped: there is no aarch64-linux-gnu-gcc");
        return;
    };
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = |name: &str| {
        let found = file.dynamic_symbols().find(|s| s.name() == Ok(name));
        found.unwrap().address()
    };
    let module = RefCell::new(Module::of(&file));
    assert_eq!(module.borrow().machine(), Machine::Aarch64);
    let code_at = |address: u64| match address.checked_sub(BASE) {
        Some(own) if own < bytes.len() as u64 => CodeAt::Module(module.borrow_mut(), own),
        _ => CodeAt::None,
    };
    // Interrupted at the first instruction, the signature is not made yet; at the second it is.
    for (into, signature) in [(0, 0), (4, SIGNATURE)] {
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(BASE + symbol("inner") + into, STACK, 0);
        // Called by `outer`, whose own frame holds a signed address of nothing: the outermost.
        let caller = BASE + symbol("outer") + 16;
        regs.set(30, Some(caller | signature));
        let record = record(regs, STACK, vec![0; 256]);
        let stack = unwind(&record, None, code_at);
        assert_eq!(ips(&stack)[..2], [BASE + symbol("inner") + into, caller]);
    }
    // Behind the prologue both are in memory: every word of the stack is a signed address into `outer`.
    let caller = BASE + symbol("outer") + 16;
    let mut regs = Regs::unknown(Machine::Aarch64);
    regs.set_frame(BASE + symbol("inner") + 32, STACK, 0);
    regs.set(30, Some(0x1234));
    let word = (caller | SIGNATURE).to_le_bytes();
    let record = record(regs, STACK, word.repeat(64));
    let stack = unwind(&record, None, code_at);
    assert_eq!(ips(&stack)[1], caller);
    // The caller's own return address was signed, too.
    assert_eq!(ips(&stack)[2], caller);
}
