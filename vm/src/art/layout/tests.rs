use super::trace::{Event, Trace};
use super::{Fragment, LayoutError, LibraryLayout};
use varid_instructions::{Decoder, Register};
use varid_model::Machine;

/// What some code does, from address 0 on.
fn trace(machine: Machine, code: &[u8]) -> Trace {
    let decoder = Decoder::of(machine).unwrap();
    Trace::of(&Fragment(code), decoder, 0..code.len() as u64)
}

fn words(code: &[u32]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Where a function stores what another one has returned: bytes from its first argument.
fn result_stored_at(trace: &Trace) -> Vec<u16> {
    let this = trace.argument(0).unwrap();
    let stored = trace.events.iter().filter_map(|(_, event)| match *event {
        Event::Store {
            to,
            what: Some(what),
            size: 4,
        } => {
            trace.returned_by(what)?;
            trace.offset_from(to, this)
        }
        _ => None,
    });
    stored.collect()
}

#[test]
fn an_offset_is_read_off_the_code_of_each_machine() {
    // art::Thread::InitTid of Debian's ART 11.
    let aarch64 = [
        0xa9be_7bfd, // stp x29, x30, [sp, #-32]!
        0xf900_0bf3, // str x19, [sp, #16]
        0x9100_03fd, // mov x29, sp
        0xaa00_03f3, // mov x19, x0
        0x97ee_3803, // bl
        0xb900_1260, // str w0, [x19, #16]
        0xf940_0bf3, // ldr x19, [sp, #16]
        0xa8c2_7bfd, // ldp x29, x30, [sp], #32
        0xd65f_03c0, // ret
    ];
    assert_eq!(
        result_stored_at(&trace(Machine::Aarch64, &words(&aarch64))),
        [16]
    );
    let arm = [
        0xe92d_4c10, // push {r4, sl, fp, lr}
        0xe28d_b008, // add fp, sp, #8
        0xe1a0_4000, // mov r4, r0
        0xebeb_2afd, // bl
        0xe584_0010, // str r0, [r4, #16]
        0xe8bd_8c10, // pop {r4, sl, fp, pc}
    ];
    assert_eq!(result_stored_at(&trace(Machine::Arm, &words(&arm))), [16]);
    // Without the call it is the argument that is stored.
    let arm = [0xe1a0_4000, 0xe584_0010, 0xe12f_ff1e];
    assert!(result_stored_at(&trace(Machine::Arm, &words(&arm))).is_empty());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_offset_is_read_off_the_code_of_x86() {
    let code = [
        &[0x53][..],         // push %rbx
        &[0x48, 0x89, 0xfb], // mov %rdi, %rbx
        &[0xe8, 0, 0, 0, 0], // call
        &[0x89, 0x43, 0x10], // mov %eax, 0x10(%rbx)
        &[0x5b, 0xc3],       // pop %rbx; ret
    ];
    assert_eq!(
        result_stored_at(&trace(Machine::X86_64, &code.concat())),
        [16]
    );
    // push 0x18(%r10): what is pushed comes from there.
    let code = [0x41, 0xff, 0x72, 0x18, 0xc3];
    let trace = trace(Machine::X86_64, &code);
    let pushed = trace.events.iter().find_map(|(_, event)| match *event {
        Event::Store { to, what, .. } => Some((trace.on_stack(to)?, trace.loaded_from(what?)?)),
        _ => None,
    });
    let (at, (from, size)) = pushed.unwrap();
    let r10 = trace.register(Register(10)).unwrap();
    assert_eq!(
        (at, trace.offset_from(from, r10), size),
        (-8, Some(0x18), 8)
    );
}

#[test]
fn paths_lead_through_memory_and_branches() {
    let code = [
        0xf940_0408, // ldr x8, [x0, #8]
        0xb940_0509, // ldr w9, [x8, #4]
        0x3640_0069, // tbz w9, #8, +12
        0xf940_0908, // ldr x8, [x8, #16]
        0xd65f_03c0, // ret
        0xf940_0d08, // ldr x8, [x8, #24]
        0xd65f_03c0, // ret
    ];
    let trace = trace(Machine::Aarch64, &words(&code));
    let this = trace.argument(0).unwrap();
    let in_method = |from| {
        let (method, offset) = trace.split(from)?;
        let (field, _) = trace.loaded_from(method)?;
        Some((trace.offset_from(field, this)?, offset))
    };
    let loads: Vec<(u16, u16)> = trace
        .events
        .iter()
        .filter_map(|(_, event)| match *event {
            Event::Load { from, .. } => in_method(from),
            _ => None,
        })
        .collect();
    assert_eq!(loads, [(8, 4), (8, 16), (8, 24)]);
    let tested = trace.events.iter().find_map(|(_, event)| match *event {
        Event::Test { value, mask } => Some((trace.loaded_from(value)?.1, mask)),
        _ => None,
    });
    assert_eq!(tested, Some((4, 0x100)));
}

/// As Android's C library has it: a slot at the thread pointer.
#[test]
fn a_slot_at_the_thread_pointer_is_seen() {
    let aarch64 = [
        0xd53b_d048, // mrs x8, tpidr_el0
        0xf940_1d08, // ldr x8, [x8, #56]
        0xd65f_03c0, // ret
    ];
    assert_eq!(slots_read(&trace(Machine::Aarch64, &words(&aarch64))), [56]);
    #[cfg(target_arch = "x86_64")] // Only there it is understood.
    {
        let x86_64 = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, // mov %fs:0, %rax
            0x48, 0x8b, 0x40, 0x38, // mov 0x38(%rax), %rax
            0xc3, // ret
        ];
        assert_eq!(slots_read(&trace(Machine::X86_64, &x86_64)), [56]);
        // A thread-local variable, whose offset a relocation says, is at none.
        let variable = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, // mov %fs:0, %rax
            0x48, 0x03, 0x05, 0, 0, 0, 0, // add 0(%rip), %rax
            0x48, 0x8b, 0x00, // mov (%rax), %rax
            0xc3, // ret
        ];
        assert!(slots_read(&trace(Machine::X86_64, &variable)).is_empty());
    }
}

/// The words at the thread pointer that a function reads.
fn slots_read(trace: &Trace) -> Vec<i64> {
    let loads = trace.events.iter().filter_map(|(_, event)| match *event {
        Event::Load { from, .. } => trace.at_thread_pointer(from),
        _ => None,
    });
    loads.collect()
}

#[test]
fn what_lies_behind_a_call_is_another_paths_if_one_leads_there() {
    let code = [
        0xb400_0080, // cbz x0, +16
        0xaa01_03f3, // mov x19, x1
        0x9400_0100, // bl, which does not come back
        0xd420_0000, // brk
        0xaa00_03f3, // +16: mov x19, x0
        0xf900_0e62, // str x2, [x19, #24]
        0xd65f_03c0, // ret
    ];
    let without_brk = {
        let mut code = code;
        code[3] = 0xd503_201f; // nop
        code
    };
    for code in [code, without_brk] {
        let trace = trace(Machine::Aarch64, &words(&code));
        let this = trace.argument(0).unwrap();
        let stored = trace.events.iter().find_map(|(_, event)| match *event {
            Event::Store { to, .. } => trace.offset_from(to, this),
            _ => None,
        });
        assert_eq!(stored, Some(24));
    }
}

#[test]
fn what_is_no_library_is_refused() {
    assert!(matches!(
        LibraryLayout::read(b""),
        Err(LayoutError::File(_))
    ));
    // This program is a file with functions, and none of ART's.
    let own = std::fs::read("/proc/self/exe").unwrap();
    let refused = LibraryLayout::read(&own).unwrap_err();
    assert_eq!(refused, LayoutError::NoSymbol("art::Runtime::instance_"));
}
