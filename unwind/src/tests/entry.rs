//! Does unwinding end where a process begins, in code that no unwind information covers?

use super::*;
use object::{Object, ObjectSymbol};

const LINKER: &str = r#"
    .text
    .globl _start
    .type _start, @function
_start:
    mov %rsp, %rdi
    call described
    jmp *%r12
    .size _start, . - _start

    .globl described
    .type described, @function
described:
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .size described, . - described

    .skip 256
    .globl elsewhere
    .type elsewhere, @function
elsewhere:
    ret
    .size elsewhere, . - elsewhere

    .skip 256
calls_main:
    call elsewhere
    hlt
    .globl __libc_start_main
    .type __libc_start_main, @function
__libc_start_main:
    jmp calls_main
    .size __libc_start_main, . - __libc_start_main
"#;

#[test]
fn nobody_has_called_what_is_at_the_entry_point() {
    let compiled = Compiled::new("entry.s", LINKER);
    let bytes = std::fs::read(compiled.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut module = Module::new(&file);
    let mut rule_at = |name: &str, distance| {
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(name)).unwrap();
        module.rule(Address::new(symbol.address().wrapping_add_signed(distance)))
    };
    // musl's code that calls main is not exported, and lies before what is.
    let main = "__libc_start_main";
    for (name, distance) in [("_start", 0), ("_start", 7), (main, 0), (main, -2)] {
        let rule = rule_at(name, distance);
        assert!(matches!(rule, CodeRule::Rule(rule) if rule.is_outermost()));
    }
    let described = rule_at("described", 0);
    assert!(matches!(described, CodeRule::Rule(rule) if !rule.is_outermost()));
    assert!(matches!(rule_at("elsewhere", 0), CodeRule::Unknown));
}

/// musl's code in a static program.
const STATIC: &str = r#"
    .text
    .globl _start
    .type _start, @function
_start:
    jmp libc_start_main_stage2
    .size _start, . - _start

    .skip 256
    .globl main
    .type main, @function
main:
    .cfi_startproc
    call *%rdx
    mov %eax, %edi
    call main
    ret
    .cfi_endproc
    .size main, . - main

    .type libc_start_main_stage2, @function
libc_start_main_stage2:
    call *%rbx
    .globl returns
returns:
    mov %eax, %edi
    call main
    .size libc_start_main_stage2, . - libc_start_main_stage2
    .skip 256
    .globl elsewhere
    .type elsewhere, @function
elsewhere:
    call *%rbx
    mov %eax, %esi
    call main
    .size elsewhere, . - elsewhere
"#;

#[test]
fn a_static_program_of_musl_begins_where_main_is_called() {
    let compiled = Compiled::new("static.s", STATIC);
    for is_stripped in [false, true] {
        if is_stripped {
            let strip = std::process::Command::new("strip")
                .arg(compiled.path())
                .status();
            assert!(strip.unwrap().success());
        }
        let bytes = std::fs::read(compiled.path()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(file.symbols().next().is_none(), is_stripped);
        let mut module = Module::new(&file);
        let mut rule_before = |name: &str, distance: u64| {
            let mut symbols = file.dynamic_symbols();
            let symbol = symbols.find(|symbol| symbol.name() == Ok(name)).unwrap();
            let returns = Address::new(symbol.address().wrapping_add(distance));
            module.rule(FrameAddress::Return(returns).lookup())
        };
        let begins = rule_before("returns", 0);
        assert!(matches!(begins, CodeRule::Rule(rule) if rule.is_outermost()));
        assert!(matches!(rule_before("main", 2), CodeRule::Rule(rule) if !rule.is_outermost()));
        assert!(matches!(rule_before("elsewhere", 2), CodeRule::Unknown));
    }
}

/// A file of Go has no unwind information.
const GO: &str = r#"
    .section .gopclntab, "a"
    .byte 0
    .text
    .globl goexit
    .type goexit, @function
goexit:
    nop
    call goexit
    .size goexit, . - goexit
"#;

#[test]
fn a_goroutine_begins_where_its_frame_pointer_is_zero() {
    for (name, content, ends) in [("go.s", GO, true), ("entry.s", LINKER, false)] {
        let compiled = Compiled::new(name, content);
        let bytes = std::fs::read(compiled.path()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let mut module = Module::new(&file);
        let symbol = if ends { "goexit" } else { "elsewhere" };
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|found| found.name() == Ok(symbol)).unwrap();
        let own = Address::new(symbol.address());
        let mut is_outermost = |address: fn(Address) -> FrameAddress, fp| {
            let mut regs = Regs::unknown(Machine::X86_64);
            regs.set_frame(own.get(), 0x7000, fp);
            let frame = NativeFrame {
                address: address(own),
                sp: Address::new(0x7000),
                regs,
                reached: Reached::Unwound,
            };
            let rule = module.rule_of_frame(own, &frame);
            matches!(rule, CodeRule::Rule(rule) if rule.is_outermost())
        };
        assert_eq!(is_outermost(FrameAddress::Return, 0), ends);
        assert!(!is_outermost(FrameAddress::Return, 0x7010));
        // What it has called, and what it has kept of its caller's, is not known yet.
        assert!(!is_outermost(FrameAddress::Instruction, 0));
    }
}

/// Go's functions keep frame pointers where they change stacks, too: the callee's frame lies in the thread's own stack, the caller's in a
/// goroutine's, further down.
#[test]
fn a_frame_pointer_of_go_leads_to_another_stack() {
    const BASE: u64 = 0x40_0000;
    const THREAD: u64 = 0x7fff_0000_0000;
    const GOROUTINE: u64 = 0xc0_0000_1000;
    const MORE: &str = ".globl after\n.type after, @function\nafter:\nnop\nnop\nnop\nnop\n.size after, . - after\n";
    for (name, content, switches) in [("go.s", GO, true), ("other.s", "    .text\n", false)] {
        let compiled = Compiled::new(name, &[content, MORE].concat());
        let bytes = std::fs::read(compiled.path()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let module = RefCell::new(Module::new(&file));
        let mut symbols = file.dynamic_symbols();
        let own = symbols.find(|found| found.name() == Ok("after")).unwrap();
        let code = BASE + own.address();
        let unwound = |links: &[(u64, u64, u64)]| {
            let words = [GOROUTINE, code + 1, 0, 0];
            let stack = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut regs = Regs::unknown(Machine::X86_64);
            regs.set_frame(code, THREAD, THREAD);
            let record = Record {
                beyond: beyond(links, &[]),
                ..record(regs, THREAD, stack)
            };
            let found = unwind(&record, None, |pc| {
                match pc.checked_sub(BASE).filter(|own| *own < 0x10_0000) {
                    Some(own) => CodeAt::Module(module.borrow_mut(), own),
                    None => CodeAt::None,
                }
            });
            let frames = found.frames.iter().map(|frame| frame.address.recorded());
            (frames.map(Address::get).collect::<Vec<_>>(), found.stopped)
        };
        let no_info = |at| Some(UnwindError::NoInfo(Address::new(at)));
        let caller = (GOROUTINE, GOROUTINE + 64, code + 2);
        let found = unwound(&[caller, (GOROUTINE + 64, 0, code + 3)]);
        let expected = match switches {
            true => (vec![code, code + 1, code + 2, code + 3], no_info(code + 3)),
            false => (vec![code, code + 1], no_info(code + 1)),
        };
        assert_eq!(found, expected);
        // Stacks that lead to one another are left.
        let (frames, _) = unwound(&[(GOROUTINE, THREAD, code + 2)]);
        assert!(frames.len() < 30, "{}", frames.len());
        // What was not read leads nowhere.
        let expected = (vec![code, code + 1], no_info(code + 1));
        assert_eq!(unwound(&[]), expected);
    }
}

/// A C library as musl is: nothing but `thread` is described. `clone` is what a new thread comes out of.
const THREADS: &str = r#"
    .text
    .globl _start
    .type _start, @function
_start:
    hlt
    .size _start, . - _start

    .globl thread
    .type thread, @function
thread:
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .size thread, . - thread

    .skip 256
    .globl start
    .type start, @function
start:
    call thread
    hlt
    .size start, . - start

    .globl clone
    .type clone, @function
clone:
    call *%r9
    mov %eax, %edi
    xor %eax, %eax
    mov $60, %al
    syscall
    hlt
    .size clone, . - clone

    .globl clone_of_aarch64
    .type clone_of_aarch64, @function
clone_of_aarch64:
    # blr x1; mov x8, #93; svc #0
    .long 0xd63f0020
    .long 0xd2800ba8
    .long 0xd4000001
    .size clone_of_aarch64, . - clone_of_aarch64
"#;

#[test]
fn a_thread_begins_behind_the_system_call_that_made_it() {
    const BASE: u64 = 0x5555_0000_0000;
    const STACK: u64 = 0x7fff_0000_0000;
    let compiled = Compiled::new("threads.s", THREADS);
    let mut bytes = std::fs::read(compiled.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let own = |name| {
        let mut symbols = file.dynamic_symbols();
        let found = symbols.find(|symbol| symbol.name() == Ok(name));
        found.unwrap().address()
    };
    let [thread, start, clone] = ["thread", "start", "clone"].map(|name| BASE + own(name));
    let aarch64 = own("clone_of_aarch64") + 4;
    let (start, clone) = (start + 5, clone + 3);
    let module = RefCell::new(Module::new(&file));
    // The frame of `start` keeps a register; what lies above that of `clone` is of nobody.
    let unwound = |words: &[u64]| {
        let stack = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut regs = Regs::unknown(Machine::X86_64);
        regs.set_frame(thread, STACK, 0);
        let found = unwind(&record(regs, STACK, stack), None, |pc| {
            match pc.checked_sub(BASE).filter(|own| *own < 0x10_0000) {
                Some(own) => CodeAt::Module(module.borrow_mut(), own),
                None => CodeAt::None,
            }
        });
        let frames = found.frames.iter().map(|frame| frame.address.recorded());
        (frames.map(Address::get).collect::<Vec<_>>(), found.stopped)
    };
    let whole = unwound(&[start, 0, 0x1234, 0, clone, thread]);
    assert_eq!(whole, (vec![thread, start, clone], None));
    // Another function has called `start`, or whoever has is not in the copy.
    let no_info = Some(UnwindError::NoInfo(Address::new(start)));
    for words in [
        &[start, 0, start, 0, clone][..],
        &[start, 0, thread + 1, clone],
        &[start, 0],
    ] {
        assert_eq!(unwound(words), (vec![thread, start], no_info.clone()));
    }
    // The same file for another machine, which has another system call.
    let machine = bytes.get_mut(18..20).unwrap();
    machine.copy_from_slice(&object::elf::EM_AARCH64.to_le_bytes());
    let file = object::File::parse(&*bytes).unwrap();
    let mut module = Module::new(&file);
    let rule = module.rule(Address::new(aarch64 - 1));
    assert!(matches!(rule, CodeRule::Rule(rule) if rule.is_outermost()));
    let rule = module.rule(Address::new(clone - BASE - 1));
    assert!(matches!(rule, CodeRule::Unknown));
}

/// What glibc has for clone3(2): none of the code between the system call and the thread's own beginning is described.
const CLONE: &str = r#"
    .text
    .globl clone3
    .type clone3, @function
clone3:
    .cfi_startproc
    mov $435, %eax
    .cfi_endproc
    syscall
behind:
    test %rax, %rax
    je begins
    ret
begins:
    .cfi_startproc
    .cfi_undefined rip
    call *%rdx
    .cfi_endproc
    .size clone3, . - clone3

    .globl undescribed
    .type undescribed, @function
undescribed:
    .skip 64
    .size undescribed, . - undescribed
    .cfi_startproc
    .cfi_undefined rip
    hlt
    .cfi_endproc
"#;

#[test]
fn a_new_thread_begins_behind_the_system_call_that_made_it() {
    const BASE: u64 = 0x40_0000;
    const SP: u64 = 0x7fff_0000_0000;
    /// From the function's start: `mov` has 5 bytes, `syscall` 2.
    const BEHIND: u64 = 7;
    let compiled = Compiled::new("clone.s", CLONE);
    let bytes = std::fs::read(compiled.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let module = RefCell::new(Module::new(&file));
    let start_of = |name| {
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|found| found.name() == Ok(name)).unwrap();
        BASE + symbol.address()
    };
    let (start, undescribed) = (start_of("clone3"), start_of("undescribed"));
    let unwound = |ip, stack: &[u64]| {
        let stack = stack.iter().flat_map(|word| word.to_le_bytes());
        let mut regs = Regs::unknown(Machine::X86_64);
        regs.set_frame(ip, SP, 0);
        let record = record(regs, SP, stack.collect());
        let found = unwind(&record, None, |pc| {
            match pc.checked_sub(BASE).filter(|own| *own < 0x10_0000) {
                Some(own) => CodeAt::Module(module.borrow_mut(), own),
                None => CodeAt::None,
            }
        });
        (found.frames.len(), found.stopped)
    };
    for into in [BEHIND, BEHIND + 3] {
        assert_eq!(unwound(start + into, &[SP, 0]), (1, None));
    }
    // The thread that made it has a caller, which is not known where nothing of its stack is.
    let (frames, _) = unwound(start + BEHIND, &[start + 1, 0]);
    assert!(frames > 1);
    let is_ended = |ip, stack| {
        let (frames, stopped) = unwound(ip, stack);
        frames == 1 && stopped.is_none()
    };
    assert!(!is_ended(start + BEHIND, &[]));
    // A function without unwind information that lies before such code has callers.
    assert!(!is_ended(undescribed + 60, &[SP, 0]));
}
