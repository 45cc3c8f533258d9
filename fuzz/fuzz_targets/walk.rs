//! The walker, C that also runs in the kernel, over memory that lies: it reads what it has room for, and no chain is a cycle.
//!
//! Input: a layout, where to start, then the memory, repeated below 4 GiB; nothing is readable above.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_shim::{Step, Walk};
use varid_tunnel::abi::{LAYOUT_LIST, LAYOUT_SHADOW, Layout};
use varid_tunnel::layout;

/// walker.h's buffers are no larger.
const WINDOW: usize = 72;
/// A user of the walker bounds its own loop.
const MAX_STEPS: usize = 1024;

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    fn layout(&mut self) -> Option<Layout> {
        Some(Layout {
            kind: self.u32()?,
            flags: self.u32()?,
            machine: self.u16()?,
            word: self.u8()?,
            reference: self.u8()?,
            reg_pc: self.u8()?,
            reg_frame: self.u8()?,
            reg_frame_bias: self.u16()? as i16,
            tls_offset: self.u64()? as i64,
            thread_tid: self.u16()?,
            thread_fragment: self.u16()?,
            fragment_quick: self.u16()?,
            fragment_link: self.u16()?,
            fragment_top: self.u16()?,
            frame_link: self.u16()?,
            frame_method: self.u16()?,
            frame_pc: self.u16()?,
            frame_insns: self.u16()?,
            frame_index: self.u16()?,
            method_class: self.u16()?,
            method_code: self.u16()?,
            method_index: self.u16()?,
            class_dex_cache: self.u16()?,
            dex_cache_dex_file: self.u16()?,
            dex_file_begin: self.u16()?,
            frame_caller_pc: self.u16()?,
            method_name: self.u16()?,
            method_proto: self.u16()?,
            class_descriptor: self.u16()?,
        })
    }
}

fn steps<R: FnMut(u64, &mut [u8]) -> bool>(mut walk: Walk<'_, R>, layout: &Layout) {
    let mut below = None;
    for _ in 0..MAX_STEPS {
        let Step::Frame(frame) = walk.step() else {
            return;
        };
        if layout.kind == LAYOUT_SHADOW || frame.is_quick() {
            continue;
        }
        assert!(
            below.is_none_or(|below| below < frame.addr),
            "a caller's frame that does not lie above"
        );
        // Fragments lie anywhere; areas are one list.
        below = (layout.kind != LAYOUT_LIST || !frame.is_outermost()).then_some(frame.addr);
    }
}

fn run(bytes: &[u8]) -> Option<()> {
    let mut input = Input(bytes);
    let layout = input.layout()?;
    let (base, tid) = (input.u64()?, input.u32()?);
    let (sp, frame, pc) = (input.u64()?, input.u64()?, input.u64()?);
    let memory = input.0;
    let read = |address: u64, to: &mut [u8]| {
        assert!(to.len() <= WINDOW, "a read of {} bytes", to.len());
        if memory.is_empty() || address >= 1 << 32 {
            return false;
        }
        for (at, byte) in to.iter_mut().enumerate() {
            *byte = memory[(address as usize + at) % memory.len()];
        }
        true
    };
    if layout::check(&layout).is_err() {
        return None;
    }
    for registers in [None, Some((frame, pc))] {
        if let Some(walk) = Walk::from_base(&layout, base, tid, sp, registers, read) {
            steps(walk, &layout);
        }
    }
    if layout.kind != LAYOUT_SHADOW {
        steps(Walk::from_frame(&layout, frame, pc, read), &layout);
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    run(bytes);
});
