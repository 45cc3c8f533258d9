//! Follows how x86-64 code changes its frame: by pushes, pops, and adding to the stack pointer.

use super::{FrameRow, FrameRows, MAX_ROWS};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use varid_model::Machine;
use varid_unwind::{FixedFrame, SavedRegister};

/// Size of a register on the stack in bytes.
const WORD: u32 = 8;

/// The state of a frame at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    /// Size in bytes, including the return address.
    size: u32,
    /// DWARF numbers of the pushed registers, and the size of the frame after each push.
    pushed: Vec<(u16, u32)>,
}

impl Frame {
    fn row(&self, start: u32, whole: u32) -> FrameRow {
        let saved: Vec<SavedRegister> = self
            .pushed
            .iter()
            .map(|(dwarf, size)| SavedRegister {
                dwarf: *dwarf,
                offset: self.size.saturating_sub(*size),
            })
            .collect();
        FrameRow {
            start,
            frame: FixedFrame::new(Machine::X86_64, self.size, &saved),
            excess: self.size.checked_sub(whole),
        }
    }

    /// Applies an instruction's change of the stack pointer. Returns true if the frame has changed.
    fn execute(&mut self, instruction: &Instruction) -> bool {
        let moved = moved(instruction);
        if moved == 0 {
            return false;
        }
        let size = i64::from(self.size).saturating_sub(moved);
        self.size = u32::try_from(size.max(WORD.into())).unwrap_or(u32::MAX);
        self.pushed.retain(|(_, pushed)| *pushed <= self.size);
        let register = match instruction.code() {
            Code::Push_r64 => dwarf(instruction.op0_register()),
            _ => None,
        };
        // What the method pushes after its prologue are not registers of its caller.
        let is_new = |dwarf: u16| self.pushed.iter().all(|(pushed, _)| *pushed != dwarf);
        if let Some(dwarf) = register.filter(|dwarf| is_new(*dwarf)) {
            self.pushed.push((dwarf, self.size));
        }
        true
    }
}

/// Computes the frames of a method with this code, whose frame has `whole` bytes after the prologue.
pub(super) fn rows(code: &[u8], whole: u32) -> FrameRows {
    // For a method without a frame, the size does not include the return address either.
    let whole = whole.max(WORD);
    let mut frame = Frame {
        size: WORD,
        pushed: Vec::new(),
    };
    let mut rows = vec![frame.row(0, whole)];
    // The frame of the code that follows an epilogue.
    let mut body = (whole == WORD).then(|| frame.clone());
    let mut stored = None;
    for instruction in Decoder::new(64, code, DecoderOptions::NONE).iter() {
        let next = u32::try_from(instruction.next_ip()).unwrap_or(u32::MAX);
        let changes = match (instruction.flow_control(), &body) {
            (FlowControl::Return, Some(body)) => {
                let changes = frame.size != body.size;
                frame.clone_from(body);
                changes
            }
            _ => frame.execute(&instruction),
        };
        if frame.size == whole && body.is_none() {
            body = Some(frame.clone());
        }
        if stored.is_none() && frame.size == whole && stores_method(&instruction) {
            stored = Some(next);
        }
        if changes {
            rows.push(frame.row(next, whole));
        }
        if rows.len() > MAX_ROWS {
            return FrameRows::unknown();
        }
    }
    match body {
        Some(_) => FrameRows { rows, stored },
        // An instruction that makes the frame was not understood. The rows after it would lead to a wrong caller.
        None => FrameRows::unknown(),
    }
}

/// Returns the bytes that an instruction adds to the stack pointer. For a call it is zero: its return adds what it has pushed.
fn moved(instruction: &Instruction) -> i64 {
    let constant = || {
        let is_constant = matches!(
            instruction.op1_kind(),
            OpKind::Immediate8to64 | OpKind::Immediate32to64
        );
        let of_pointer = instruction.op0_kind() == OpKind::Register
            && instruction.op0_register() == Register::RSP;
        match is_constant && of_pointer {
            true => instruction.immediate(1).cast_signed(),
            false => 0,
        }
    };
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pushfq | Mnemonic::Pop | Mnemonic::Popfq => {
            instruction.stack_pointer_increment().into()
        }
        Mnemonic::Add => constant(),
        Mnemonic::Sub => constant().saturating_neg(),
        _ => 0,
    }
}

/// Returns true if an instruction stores the register in which a method is passed at the stack pointer.
fn stores_method(instruction: &Instruction) -> bool {
    instruction.code() == Code::Mov_rm64_r64
        && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64() == 0
        && instruction.op1_register() == Register::RDI
}

/// Returns the DWARF number of a register (System V ABI, figure 3.36).
fn dwarf(register: Register) -> Option<u16> {
    const NUMBERED: [Register; 16] = [
        Register::RAX,
        Register::RDX,
        Register::RCX,
        Register::RBX,
        Register::RSI,
        Register::RDI,
        Register::RBP,
        Register::RSP,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    let number = NUMBERED.iter().position(|numbered| *numbered == register)?;
    u16::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_unwind::CodeRule;

    /// The CFA's distance from the stack pointer.
    fn size(rows: &FrameRows, offset: u32) -> String {
        match rows.rule(offset) {
            CodeRule::Rule(rule) => format!("{:?}", rule),
            _ => panic!("a rule"),
        }
    }

    #[test]
    fn frames_grow_in_the_prologue_and_shrink_in_each_epilogue() {
        let code = [
            &[0x48, 0x85, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff][..], // 0: test %rax, -8192(%rsp)
            &[0x55],                                               // 8: push %rbp
            &[0x53],                                               // 9: push %rbx
            &[0x48, 0x83, 0xec, 0x18],                             // 10: sub $24, %rsp
            &[0x48, 0x89, 0x3c, 0x24],                             // 14: mov %rdi, (%rsp)
            &[0x85, 0xf6],                                         // 18: test %esi, %esi
            &[0x74, 0x07],                                         // 20: je 29
            &[0x48, 0x83, 0xc4, 0x18],                             // 22: add $24, %rsp
            &[0x5b],                                               // 26: pop %rbx
            &[0x5d],                                               // 27: pop %rbp
            &[0xc3],                                               // 28: ret
            &[0xff, 0x57, 0x18],                                   // 29: call *24(%rdi)
            &[0x48, 0x83, 0xc4, 0x18],                             // 32: add $24, %rsp
            &[0x5b, 0x5d, 0xc3],                                   // 36: pop, pop, ret
        ]
        .concat();
        let rows = FrameRows::of(&code, 48);
        let starts: Vec<(u32, bool)> = rows
            .rows
            .iter()
            .map(|row| (row.start, row.excess == Some(0)))
            .collect();
        assert_eq!(
            starts,
            [
                (0, false),
                (9, false),
                (10, false),
                (14, true),
                (26, false),
                (27, false),
                (28, false),
                (29, true),
                (36, false),
                (37, false),
                (38, false),
                (39, true),
            ]
        );
        assert_eq!(size(&rows, 29), size(&rows, 14));
        assert_eq!(size(&rows, 36), size(&rows, 10));
        assert_eq!(size(&rows, 38), size(&rows, 0));
        assert_ne!(size(&rows, 14), size(&rows, 10));
        let at: Vec<_> = [14, 18, 22, 26, 29].map(|at| rows.method_at(at)).into();
        assert_eq!(at, [None, Some(0), Some(0), None, Some(0)]);
    }

    #[test]
    fn below_a_stubs_frame_there_is_room_for_arguments() {
        let code = [
            &[0x53][..],               // 0: push %rbx
            &[0x48, 0x89, 0x3c, 0x24], // 1: mov %rdi, (%rsp)
            &[0x48, 0x83, 0xc4, 0xf0], // 5: add $-16, %rsp
            &[0xff, 0x50, 0x18],       // 9: call *24(%rax)
            &[0x48, 0x83, 0xc4, 0x10], // 12: add $16, %rsp
            &[0x5b, 0xc3],             // 16: pop, ret
        ]
        .concat();
        let rows = FrameRows::of(&code, 16);
        let at: Vec<_> = [1, 5, 9, 11, 16, 17].map(|at| rows.method_at(at)).into();
        assert_eq!(at, [None, Some(0), Some(16), Some(16), Some(0), None]);
    }

    #[test]
    fn a_method_without_a_frame_has_its_return_address_alone() {
        let rows = FrameRows::of(&[0x89, 0xf0, 0xc3], 0);
        assert_eq!(rows.rows.len(), 1);
        assert_eq!(rows.rows[0].excess, Some(0));
        assert_eq!(rows.method_at(2), None);
    }

    #[test]
    fn code_that_never_has_its_whole_frame_has_no_rows() {
        // push %rbx; lea -24(%rsp), %rsp; call *24(%rdi).
        let code = [0x53, 0x48, 0x8d, 0x64, 0x24, 0xe8, 0xff, 0x57, 0x18];
        let rows = FrameRows::of(&code, 48);
        assert!(matches!(rows.rule(8), CodeRule::Unknown));
    }

    #[test]
    fn code_that_pushes_without_end_has_no_rows() {
        // push %rax; push %rbx, pop %rbx.
        for code in [vec![0x50; 1 << 20], [0x53, 0x5b].repeat(1 << 19)] {
            let rows = FrameRows::of(&code, 48);
            assert!(rows.rows.is_empty());
            assert!(matches!(rows.rule(100), CodeRule::Unknown));
            assert_eq!(rows.method_at(100), None);
        }
    }

    #[test]
    fn code_that_is_none_has_rows_in_order() {
        for code in [&[0xff; 64][..], &[0x5d; 64], &[0x55; 64], &[0xc3; 9], &[]] {
            let rows = FrameRows::of(code, 16);
            assert!(rows.rows.is_sorted_by_key(|row| row.start));
        }
    }
}
