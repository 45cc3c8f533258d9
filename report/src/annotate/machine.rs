//! Disassembles machine code.
//!
//! x86 is decoded by iced-x86, ARM by yaxpeax-arm, RISC-V by varid-riscv. Instructions that they cannot decode are shown
//! as bytes: `.byte 0x06`, `.inst 0xeeb00a40`.

use std::fmt::Write;

use iced_x86::{Decoder as X86Decoder, DecoderOptions, Formatter, IntelFormatter};
use varid_model::Address;
use varid_riscv::{Xlen, decode};
use varid_symbolizer::elf::{CodeKind, InstructionSet, MachineCode};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::{armv7, armv8::a64};

use super::instruction::CodeInstruction;

/// Disassembles `most` instructions at most, up to the first address without bytes. Also returns the instruction set at
/// the start.
pub fn disassemble(code: &MachineCode, most: usize) -> (Vec<CodeInstruction>, &'static str) {
    let mut found = Vec::new();
    let mut address = code.start;
    let mut name = "data";
    while found.len() < most {
        let kind = code.kind_at(address);
        let end = code.kind_end(address);
        let Some(bytes) = bytes_between(code, address, end).filter(|bytes| !bytes.is_empty())
        else {
            break;
        };
        if let CodeKind::Instructions(set) = kind
            && found.is_empty()
        {
            name = set_name(set);
        }
        match kind {
            CodeKind::Data => data(address, bytes, &mut found),
            CodeKind::Instructions(InstructionSet::X64) => x86(64, address, bytes, &mut found),
            CodeKind::Instructions(InstructionSet::X86) => x86(32, address, bytes, &mut found),
            CodeKind::Instructions(InstructionSet::A64) => {
                arm(address, bytes, 0, one_a64, &mut found)
            }
            CodeKind::Instructions(InstructionSet::A32) => {
                arm(address, bytes, 8, one_a32, &mut found)
            }
            CodeKind::Instructions(InstructionSet::T32) => {
                arm(address, bytes, 4, one_t32, &mut found)
            }
            CodeKind::Instructions(InstructionSet::Rv32) => {
                riscv(address, bytes, Xlen::Rv32, &mut found)
            }
            CodeKind::Instructions(InstructionSet::Rv64) => {
                riscv(address, bytes, Xlen::Rv64, &mut found)
            }
        }
        address = end;
    }
    found.truncate(most);
    (found, name)
}

const fn set_name(set: InstructionSet) -> &'static str {
    match set {
        InstructionSet::X64 => "x86-64",
        InstructionSet::X86 => "x86",
        InstructionSet::A64 => "arm64",
        InstructionSet::A32 => "arm",
        InstructionSet::T32 => "thumb",
        InstructionSet::Rv32 => "riscv32",
        InstructionSet::Rv64 => "riscv64",
    }
}

fn bytes_between(code: &MachineCode, start: u64, end: u64) -> Option<&[u8]> {
    let from = usize::try_from(start.checked_sub(code.start)?).ok()?;
    let to = usize::try_from(end.checked_sub(code.start)?).ok()?;
    code.bytes.get(from..to)
}

/// Adds constants between instructions, as words.
fn data(start: u64, bytes: &[u8], found: &mut Vec<CodeInstruction>) {
    let mut address = start;
    for word in bytes.chunks(4) {
        let text = match word {
            [a, b, c, d] => format!(".word {:#010x}", u32::from_le_bytes([*a, *b, *c, *d])),
            _ => {
                let bytes: Vec<_> = word.iter().map(|byte| format!("{byte:#04x}")).collect();
                format!(".byte {}", bytes.join(", "))
            }
        };
        address = push(address, word.len(), text, found);
    }
}

/// Adds an instruction. Returns the address of the next one.
fn push(address: u64, len: usize, text: String, found: &mut Vec<CodeInstruction>) -> u64 {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    found.push(CodeInstruction { address, len, text });
    address.saturating_add(len.into())
}

fn x86(bits: u32, start: u64, bytes: &[u8], found: &mut Vec<CodeInstruction>) {
    let mut decoder = X86Decoder::with_ip(bits, bytes, start, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_space_after_operand_separator(true);
    let mut address = start;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let mut text = String::new();
        if instruction.is_invalid() {
            let at = usize::try_from(address.saturating_sub(start)).unwrap_or(usize::MAX);
            let byte = bytes.get(at).copied().unwrap_or_default();
            text = format!(".byte {byte:#04x}");
            address = push(address, 1, text, found);
            let next = usize::try_from(address.saturating_sub(start)).unwrap_or(usize::MAX);
            if decoder.set_position(next).is_err() {
                return;
            }
            decoder.set_ip(address);
            continue;
        }
        formatter.format(&instruction, &mut text);
        address = push(address, instruction.len(), text, found);
    }
}

/// Decodes the first instruction of a byte slice. Returns its disassembly, or None if it is unknown, and its size.
type OneOfArm = fn(&[u8]) -> (Option<String>, usize);

/// `ahead` is the offset that the program counter has relative to an instruction that reads it.
fn arm(start: u64, bytes: &[u8], ahead: u64, one: OneOfArm, found: &mut Vec<CodeInstruction>) {
    let mut address = start;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (text, len) = one(rest);
        let (own, others) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        let text = match text {
            Some(text) => with_targets(&text, address, ahead),
            None => match own {
                // A 32-bit Thumb instruction is shown as two halfwords.
                [a, b, c, d] if ahead == 4 => format!(".inst.w 0x{b:02x}{a:02x}{d:02x}{c:02x}"),
                _ => word(own),
            },
        };
        address = push(address, own.len(), text, found);
        rest = others;
    }
}

fn one_a64(bytes: &[u8]) -> (Option<String>, usize) {
    let decoder = a64::InstDecoder::default();
    let found = decoder.decode(&mut U8Reader::new(bytes));
    (found.ok().map(|found| renamed(&found.to_string())), 4)
}

fn one_a32(bytes: &[u8]) -> (Option<String>, usize) {
    // yaxpeax-arm 0.5 panics on a register pair that starts at the last register, which is invalid.
    if let [a, b, c, d, ..] = bytes {
        let word = u32::from_le_bytes([*a, *b, *c, *d]);
        if word & 0x0e10_f0d0 == 0x0000_f0d0 {
            return (None, 4);
        }
    }
    let decoder = armv7::InstDecoder::default();
    let found = decoder.decode(&mut U8Reader::new(bytes));
    (found.ok().map(|found| found.to_string()), 4)
}

fn one_t32(bytes: &[u8]) -> (Option<String>, usize) {
    /// First halfwords with this or a larger high byte start a 32-bit instruction.
    const WIDE: u8 = 0xe8;
    let len = match bytes {
        [_, high, ..] if *high >= WIDE => 4,
        _ => 2,
    };
    let decoder = armv7::InstDecoder::default_thumb();
    let found = decoder.decode(&mut U8Reader::new(bytes));
    (found.ok().map(|found| found.to_string()), len)
}

fn riscv(start: u64, bytes: &[u8], xlen: Xlen, found: &mut Vec<CodeInstruction>) {
    let mut address = start;
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (text, len) = match decode(rest, xlen) {
            Ok(instruction) => {
                let text = instruction.text(Address::new(address)).to_string();
                (Some(text), instruction.length.bytes() as usize)
            }
            // The lowest bits say how long an instruction is.
            Err(_) if first & 3 == 3 => (None, 4),
            Err(_) => (None, 2),
        };
        let (own, others) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        let text = text.unwrap_or_else(|| word(own));
        address = push(address, own.len(), text, found);
        rest = others;
    }
}

/// Converts conditions and hints to objdump's syntax.
fn renamed(text: &str) -> String {
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let mnemonic = match (mnemonic, operands) {
        ("b.lo", _) => "b.cc",
        ("b.hs", _) => "b.cs",
        ("hint", "#0x20") => return "bti".to_owned(),
        ("hint", "#0x22") => return "bti c".to_owned(),
        ("hint", "#0x24") => return "bti j".to_owned(),
        ("hint", "#0x26") => return "bti jc".to_owned(),
        _ => return text.to_owned(),
    };
    format!("{mnemonic} {operands}")
}

/// Replaces offsets relative to the program counter, `$+0x1c`, by addresses.
fn with_targets(text: &str, address: u64, ahead: u64) -> String {
    let Some((before, rest)) = text.split_once('$') else {
        return text.to_owned();
    };
    let (sign, digits) = match rest.split_at_checked(3) {
        Some((sign @ ("+0x" | "-0x"), digits)) => (sign, digits),
        _ => return text.to_owned(),
    };
    let end = digits.find(|digit: char| !digit.is_ascii_hexdigit());
    let (digits, behind) = digits.split_at(end.unwrap_or(digits.len()));
    let Ok(distance) = u64::from_str_radix(digits, 16) else {
        return text.to_owned();
    };
    let base = match before.split(' ').next() {
        // `adrp` is relative to the page, `blx` to the aligned word.
        Some("adrp") => address & !0xfff,
        Some("blx" | "blx.w") => address.saturating_add(ahead) & !3,
        _ => address.saturating_add(ahead),
    };
    let target = match sign {
        "+0x" => base.wrapping_add(distance),
        _ => base.wrapping_sub(distance),
    };
    format!("{before}{target:#x}{behind}")
}

/// Formats the bytes of an unknown instruction as a number.
fn word(bytes: &[u8]) -> String {
    let mut text = ".inst 0x".to_owned();
    for byte in bytes.iter().rev() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(set: InstructionSet, bytes: &[u8]) -> Vec<(u64, u32, String)> {
        let code = MachineCode {
            start: 0x1000,
            bytes: bytes.to_vec(),
            kinds: vec![(0x1000, CodeKind::Instructions(set))],
        };
        let (found, _) = disassemble(&code, 1000);
        found
            .into_iter()
            .map(|found| (found.address, found.len, found.text))
            .collect()
    }

    #[test]
    fn instructions_read_as_objdump_has_them_and_unknown_ones_are_bytes() {
        let expected = |rows: &[(u64, u32, &str)]| -> Vec<(u64, u32, String)> {
            let row =
                |(address, len, text): &(u64, u32, &str)| (*address, *len, (*text).to_owned());
            rows.iter().map(row).collect()
        };
        assert_eq!(
            texts(
                InstructionSet::X64,
                b"\xf3\x0f\x1e\xfa\x06\xe8\x10\x00\x00\x00\xc3"
            ),
            expected(&[
                (0x1000, 4, "endbr64"),
                (0x1004, 1, ".byte 0x06"),
                (0x1005, 5, "call 0x101a"),
                (0x100a, 1, "ret"),
            ])
        );
        // b.cc, bti c, adrp of the next page, all ones.
        assert_eq!(
            texts(
                InstructionSet::A64,
                b"\xe3\x00\x00\x54\x5f\x24\x03\xd5\x00\x00\x00\xb0\xff\xff\xff\xff"
            ),
            expected(&[
                (0x1000, 4, "b.cc 0x101c"),
                (0x1004, 4, "bti c"),
                (0x1008, 4, "adrp x0, 0x2000"),
                (0x100c, 4, ".inst 0xffffffff"),
            ])
        );
        // b.n over 2, vldr s0, [sp]: floating point is not decoded.
        assert_eq!(
            texts(InstructionSet::T32, b"\x01\xe0\x9d\xed\x00\x0a\x70"),
            expected(&[
                (0x1000, 2, "b 0x1006"),
                (0x1002, 4, ".inst.w 0xed9d0a00"),
                (0x1006, 1, ".inst 0x70"),
            ])
        );
        // beqz a0 over 8, c.lw, zeros and ones, which are no instructions, and a part of one.
        assert_eq!(
            texts(
                InstructionSet::Rv32,
                b"\x63\x04\x05\x00\x08\x41\x00\x00\xff\xff\xff\xff\x13"
            ),
            expected(&[
                (0x1000, 4, "beqz a0, 0x1008"),
                (0x1004, 2, "lw a0, 0(a0)"),
                (0x1006, 2, ".inst 0x0000"),
                (0x1008, 4, ".inst 0xffffffff"),
                (0x100c, 1, ".inst 0x13"),
            ])
        );
        // c.addiw, which is a jump in RV32.
        assert_eq!(
            texts(InstructionSet::Rv64, b"\x05\x25"),
            expected(&[(0x1000, 2, "addw a0, a0, 1")])
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(0..=u8::MAX, 0..200)) {
            for set in [
                InstructionSet::X64,
                InstructionSet::X86,
                InstructionSet::A64,
                InstructionSet::A32,
                InstructionSet::T32,
                InstructionSet::Rv32,
                InstructionSet::Rv64,
            ] {
                let found = texts(set, &bytes);
                let sizes: Vec<u32> = found.iter().map(|(_, len, _)| *len).collect();
                let read: u32 = sizes.iter().sum();
                proptest::prop_assert!(sizes.iter().all(|size| *size > 0), "{set:?} {found:?}");
                proptest::prop_assert_eq!(read as usize, bytes.len(), "{:?}", set);
            }
        }
    }

    #[test]
    fn a_pair_of_registers_that_does_not_exist_is_a_word() {
        let word = 0x71eb_f3f2_u32 & !0x0e10_f0d0 | 0x0000_f0d0;
        let found = texts(InstructionSet::A32, &word.to_le_bytes());
        assert_eq!(found, [(0x1000, 4, format!(".inst {word:#010x}"))]);
    }

    #[test]
    fn constants_among_instructions_are_words() {
        let code = MachineCode {
            start: 0x1000,
            bytes: vec![0x70, 0x47, 0, 0, 1, 2, 3, 4, 5],
            kinds: vec![
                (0x1000, CodeKind::Instructions(InstructionSet::T32)),
                (0x1004, CodeKind::Data),
            ],
        };
        let (found, name) = disassemble(&code, 100);
        let texts: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(name, "thumb");
        assert_eq!(
            texts,
            ["bx lr", "movs r0, r0", ".word 0x04030201", ".byte 0x05"]
        );
    }
}
