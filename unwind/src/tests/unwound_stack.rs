//! Are frames of before taken only where nothing has changed?

use super::*;

/// A record's frames after those of another, and how many rules were asked for.
fn unwind_after(before: &Record, record: &Record) -> (NativeStack, usize) {
    let process = this_process();
    let mut native = unwind(before, None, |address| code_at(&process, address));
    let mut kept = UnwoundStack::default();
    let mut stack = before.stack.clone();
    let mut beyond = before.beyond.clone();
    let copy = (&mut stack, &mut beyond);
    kept.replace(&mut native, Address::new(before.stack_addr), copy);
    let mut asked = 0;
    let mut code = Code(|address| {
        asked += 1;
        code_at(&process, address)
    });
    native.unwind_after(&kept, &record.regs, record.slice(), &mut code);
    (native, asked)
}

fn copy(record: &Record) -> Record {
    let beyond = record.beyond.clone();
    Record {
        beyond,
        ..super::record(record.regs, record.stack_addr, record.stack.clone())
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn the_frames_are_those_of_a_stack_that_is_unwound_whole() {
    let chain = Chain::load();
    let process = this_process();
    let whole = |record: &Record| unwind(record, None, |address| code_at(&process, address));
    let Shown { record: first, .. } = chain.with_values(&VALUES, 20);
    let frames = whole(&first);
    let (same, asked) = unwind_after(&first, &first);
    assert_eq!(same, frames);
    assert!(asked < 4, "{asked}");
    // One after the other, words of the stack change: a frame is taken if it lies above.
    let mut taken = 0;
    for at in (0..first.stack.len()).step_by(72) {
        let mut changed = copy(&first);
        changed.stack[at] ^= 0x40;
        let truth = whole(&changed);
        let (found, asked) = unwind_after(&first, &changed);
        assert_eq!(found, truth, "word at {at}");
        taken += usize::from(asked < truth.frames.len());
    }
    assert!(taken > 2, "{taken}");
    // Other registers, which the callers' are taken from.
    for value in [0, 7] {
        let mut values = VALUES;
        values[1] = value;
        let Shown { record: other, .. } = chain.with_values(&values, 20);
        assert_eq!(unwind_after(&first, &other).0, whole(&other));
    }
    // A stack of another depth has the frames above in common.
    let Shown { record: deeper, .. } = chain.with_values(&VALUES, 30);
    assert_eq!(unwind_after(&first, &deeper).0, whole(&deeper));
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "chain.c is x86-64 code")]
fn nothing_is_taken_from_a_stack_that_was_not_unwound_to_its_end() {
    let chain = Chain::load();
    let process = this_process();
    let Shown { record: whole, .. } = chain.with_values(&VALUES, 20);
    let mut cut = copy(&whole);
    cut.stack.truncate(400);
    let truth = unwind(&whole, None, |address| code_at(&process, address));
    assert_eq!(unwind_after(&cut, &whole).0, truth);
    let truth = unwind(&cut, None, |address| code_at(&process, address));
    assert_eq!(truth.stopped, Some(UnwindError::NoStack));
    assert_eq!(unwind_after(&whole, &cut).0, truth);
    let (again, asked) = unwind_after(&cut, &cut);
    assert_eq!(again, truth);
    assert!(asked >= truth.frames.len());
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the stack is laid out as x86-64 does"
)]
fn frames_beyond_the_copy_are_those_to_which_frame_pointers_lead() {
    const BEYOND: u64 = SP + 0x10_0000;
    let mut stack = [0; 16];
    stack[..4].copy_from_slice(&[CODE + 0x10, 0, BEYOND, CODE + 0x20]);
    let with = |links: &[(u64, u64, u64)], bytes: &[u64]| Record {
        beyond: beyond(links, bytes),
        ..words(CODE, 0, 2, &stack)
    };
    let called_by = |caller| with(&[(BEYOND, BEYOND + 32, caller), (BEYOND + 32, 0, 0)], &[]);
    let linked = |address| match unknown_code(address) {
        CodeAt::Unknown => CodeAt::Linked,
        other => other,
    };
    let whole = |record: &Record| unwind(record, None, linked);
    let (one, other) = (called_by(CODE + 0x30), called_by(CODE + 0x40));
    let mut native = whole(&one);
    let expected = [CODE, CODE + 0x10, CODE + 0x20, CODE + 0x30];
    assert_eq!(
        (ips(&native), native.stopped.clone()),
        (expected.to_vec(), None)
    );
    // The copies are the same, and what lies beyond is not.
    let mut kept = UnwoundStack::default();
    let copy = (&mut one.stack.clone(), &mut one.beyond.clone());
    kept.replace(&mut native, Address::new(SP), copy);
    native.unwind_after(&kept, &other.regs, other.slice(), &mut Code(linked));
    assert_eq!(native, whole(&other));
    assert_eq!(ips(&native)[3], CODE + 0x40);
    native.unwind_after(&kept, &one.regs, one.slice(), &mut Code(linked));
    assert_eq!(native, whole(&one));
    // What lies behind the first link is there, too, whatever leads to it.
    let words = [BEYOND + 32, CODE + 0x30, 0, 0, 0, 0];
    let behind = with(&[(BEYOND, BEYOND + 32, CODE + 0x30)], &words);
    assert_eq!(whole(&behind), whole(&one));
    let cut = with(&[(BEYOND, BEYOND + 32, CODE + 0x30)], &words[..5]);
    assert_eq!(ips(&whole(&cut)), expected);
    assert!(whole(&cut).stopped.is_some());
    // Code that keeps no frame pointer has any word in its register: no heap is a stack.
    assert_eq!(ips(&unwind(&one, None, unknown_code)), expected[..3]);
    // Half of a link is none, and a frame pointer leads to its own words only.
    let apart = with(
        &[(BEYOND + 4, 0, CODE + 0x30), (BEYOND + 16, 0, CODE + 0x30)],
        &[],
    );
    assert_eq!(ips(&whole(&apart)), expected[..3]);
}
