//! Which attributes of code are kept, and how are their bcis changed?
//!
//! `StackMapTable` is written anew. Attributes that are not named here are left out: those of annotations of types, and others that no VM reads.

use crate::class::{Attribute, Instructions, Reader};
use crate::error::Result;
use crate::layout::Layout;
use crate::{Bci, Line};

const LINES: &[u8] = b"LineNumberTable";
const VARIABLES: &[u8] = b"LocalVariableTable";
const VARIABLE_TYPES: &[u8] = b"LocalVariableTypeTable";

/// Returns the contents of an attribute with the new offsets. None: it is left out, because its kind is, or because it is not valid.
pub(crate) fn moved(
    attribute: &Attribute<'_>,
    instructions: &Instructions<'_>,
    layout: &Layout,
) -> Option<Vec<u8>> {
    match attribute.name {
        LINES => moved_lines(attribute.data, instructions, layout).ok()?,
        VARIABLES | VARIABLE_TYPES => moved_variables(attribute.data, instructions, layout).ok()?,
        _ => None,
    }
}

/// What is inserted before the first instruction belongs to that one's line.
fn moved_bci(bci: u16, instructions: &Instructions<'_>, layout: &Layout) -> Option<u16> {
    match bci {
        0 => Some(0),
        _ => Some(layout.start(instructions.at(usize::from(bci))?)),
    }
}

fn moved_lines(
    mut reader: Reader<'_>,
    instructions: &Instructions<'_>,
    layout: &Layout,
) -> Result<Option<Vec<u8>>> {
    let count = reader.u16("line_number_table_length")?;
    let mut moved = count.to_be_bytes().to_vec();
    for _ in 0..count {
        let start = reader.u16("start_pc")?;
        let Some(start) = moved_bci(start, instructions, layout) else {
            return Ok(None);
        };
        moved.extend(start.to_be_bytes());
        moved.extend(reader.u16("line_number")?.to_be_bytes());
    }
    Ok(Some(moved))
}

fn moved_variables(
    mut reader: Reader<'_>,
    instructions: &Instructions<'_>,
    layout: &Layout,
) -> Result<Option<Vec<u8>>> {
    let count = reader.u16("local_variable_table_length")?;
    let mut moved = count.to_be_bytes().to_vec();
    for _ in 0..count {
        let start = reader.u16("start_pc")?;
        let end = start.checked_add(reader.u16("length")?);
        let (Some(start), Some(end)) = (
            moved_bci(start, instructions, layout),
            end.and_then(|end| moved_bci(end, instructions, layout)),
        ) else {
            return Ok(None);
        };
        moved.extend(start.to_be_bytes());
        moved.extend(end.saturating_sub(start).to_be_bytes());
        moved.extend(reader.bytes(6, "local_variable_table")?);
    }
    Ok(Some(moved))
}

/// Returns the source lines of a method, sorted. Entries that are not valid are left out.
pub(crate) fn lines(attributes: &[Attribute<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|it| it.name == LINES) {
        let mut reader = attribute.data;
        let Ok(count) = reader.u16("line_number_table_length") else {
            continue;
        };
        for _ in 0..count {
            let (Ok(start), Ok(line)) = (reader.u16("start_pc"), reader.u16("line_number")) else {
                break;
            };
            lines.push(Line {
                start: Bci(start),
                line,
            });
        }
    }
    lines.sort_by_key(|line| line.start);
    lines
}
