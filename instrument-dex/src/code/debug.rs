//! The debug information of a method: moved to the new code units.

use crate::error::Result;
use crate::file::{Cursor, Order, put_sleb, put_uleb};

/// The opcodes of debug information.
mod opcode {
    pub(super) const END: u8 = 0x00;
    pub(super) const ADVANCE_PC: u8 = 0x01;
    pub(super) const ADVANCE_LINE: u8 = 0x02;
    pub(super) const START_LOCAL: u8 = 0x03;
    pub(super) const START_LOCAL_EXTENDED: u8 = 0x04;
    pub(super) const END_LOCAL: u8 = 0x05;
    pub(super) const RESTART_LOCAL: u8 = 0x06;
    pub(super) const PROLOGUE_END: u8 = 0x07;
    pub(super) const EPILOGUE_BEGIN: u8 = 0x08;
    pub(super) const SET_FILE: u8 = 0x09;
    pub(super) const FIRST_SPECIAL: u8 = 0x0a;
}

/// The lines that a special opcode can go back, and the number of distances of lines that it has.
const LINE_BASE: i32 = -4;
const LINE_RANGE: u8 = 15;

/// A source line that begins: its code unit in the original code, and the line.
pub(crate) type Line = (u32, u32);

/// Copies a debug_info_item. `moved` returns the new code unit of an original one. Also returns the lines.
pub(crate) fn copy(
    data: &[u8],
    offset: u32,
    order: &Order,
    moved: impl Fn(u32) -> u32,
) -> Result<(Vec<u8>, Vec<Line>)> {
    let mut from = Cursor::new(data, offset, "debug_info_item");
    let (mut out, mut lines) = (Vec::new(), Vec::new());
    let start = from.uleb()?;
    put_uleb(&mut out, start);
    let mut line = start;
    let names = from.uleb()?;
    put_uleb(&mut out, names);
    for _ in 0..names {
        copy_index(&mut from, &order.strings, &mut out)?;
    }
    let (mut address, mut written) = (0_u32, 0_u32);
    loop {
        let code = from.u8()?;
        match code {
            opcode::END => {
                out.push(code);
                return Ok((out, lines));
            }
            opcode::ADVANCE_PC => address = address.saturating_add(from.uleb()?),
            opcode::ADVANCE_LINE => {
                let distance = from.sleb()?;
                line = line.wrapping_add_signed(distance);
                out.push(code);
                put_sleb(&mut out, distance);
            }
            opcode::FIRST_SPECIAL.. => {
                let adjusted = code.saturating_sub(opcode::FIRST_SPECIAL);
                // The divisor is a constant above 0.
                let distance = i32::from(adjusted % LINE_RANGE).saturating_add(LINE_BASE);
                address = address.saturating_add(u32::from(adjusted / LINE_RANGE));
                line = line.wrapping_add_signed(distance);
                lines.push((address, line));
                advance(&mut out, &mut written, moved(address));
                out.push((adjusted % LINE_RANGE).saturating_add(opcode::FIRST_SPECIAL));
            }
            _ => {
                advance(&mut out, &mut written, moved(address));
                out.push(code);
                match code {
                    opcode::START_LOCAL | opcode::START_LOCAL_EXTENDED => {
                        put_uleb(&mut out, from.uleb()?);
                        copy_index(&mut from, &order.strings, &mut out)?;
                        copy_index(&mut from, &order.types, &mut out)?;
                        if code == opcode::START_LOCAL_EXTENDED {
                            copy_index(&mut from, &order.strings, &mut out)?;
                        }
                    }
                    opcode::END_LOCAL | opcode::RESTART_LOCAL => {
                        put_uleb(&mut out, from.uleb()?);
                    }
                    opcode::SET_FILE => copy_index(&mut from, &order.strings, &mut out)?,
                    opcode::PROLOGUE_END | opcode::EPILOGUE_BEGIN => {}
                    // All others are special ones.
                    _ => return Err(from.error("an unknown opcode")),
                }
            }
        }
    }
}

/// Moves to a code unit.
fn advance(out: &mut Vec<u8>, written: &mut u32, to: u32) {
    let distance = to.saturating_sub(*written);
    if distance > 0 {
        out.push(opcode::ADVANCE_PC);
        put_uleb(out, distance);
        *written = to;
    }
}

/// Copies an index that may be missing.
fn copy_index(from: &mut Cursor<'_>, remap: &crate::file::Remap, out: &mut Vec<u8>) -> Result<()> {
    let at = from.at();
    let new = match from.uleb_p1()? {
        Some(old) => remap.get(old, at)?.saturating_add(1),
        None => 0,
    };
    put_uleb(out, new);
    Ok(())
}
