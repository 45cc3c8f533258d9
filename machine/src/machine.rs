//! A program in memory, ready to run.

use std::{io, path::Path};

use varid_model::Address;
use varid_riscv::{Image, Register, Xlen};

use crate::{
    functions::Functions,
    hart::Hart,
    memory::Memory,
    system::{Heap, Streams, System},
};

/// The most bytes of all segments.
const MAX_SEGMENTS: u64 = 1 << 30;
/// Segments with less than this between them are in one region.
const GAP: u64 = 1 << 24;
/// The most bytes of the arguments.
const MAX_ARGUMENTS: usize = 1 << 17;
const PAGE: u64 = 1 << 12;

/// What a guest gets of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<'p> {
    /// Memory behind the last segment, for heap and stack, in bytes.
    pub memory: u32,
    /// The folder with the files that it may open.
    pub folder: Option<&'p Path>,
    /// Cycles a second, for its clock.
    pub clock_hz: u64,
}

/// Why a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its registers are wider.
    #[error("a program for RV64: only RV32 is executed")]
    Rv64,
    /// Its segments are too large.
    #[error("the segment at {address} with {size} bytes makes all of them larger than 1 GiB")]
    TooLarge {
        /// Where the segment begins.
        address: Address,
        /// Its size in bytes.
        size: u64,
    },
    /// There is no room for heap and stack.
    #[error(
        "{bytes} bytes of memory do not fit behind the segments, which end at {end}: take less memory"
    )]
    NoRoom {
        /// The memory for heap and stack.
        bytes: u32,
        /// The end of the segments.
        end: Address,
    },
    /// The arguments are too large.
    #[error("the arguments have more than {MAX_ARGUMENTS} bytes, or more than the memory")]
    Arguments,
    /// The folder of the guest's files cannot be opened.
    #[error("cannot open the folder {path}: {source}", path = .path.display())]
    Folder {
        /// The folder.
        path: std::path::PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A program in memory.
#[derive(Debug)]
pub struct Machine {
    /// The processor's registers.
    pub hart: Hart,
    /// The memory.
    pub memory: Memory,
    /// The environment.
    pub system: System,
    /// The functions.
    pub functions: Functions,
}

impl Machine {
    /// Loads a program with its arguments, of which the first is its name.
    ///
    /// Behind the last segment is memory for the heap, which grows upwards, and the stack, which begins at the end with the arguments as Linux
    /// lays them out. A program that sets its own stack pointer may set it into that memory, too.
    ///
    /// # Errors
    ///
    /// It does not fit the limits.
    pub fn load(
        image: &Image,
        arguments: &[&[u8]],
        streams: Streams,
        limits: &Limits<'_>,
    ) -> Result<Self, LoadError> {
        if image.xlen != Xlen::Rv32 {
            return Err(LoadError::Rv64);
        }
        let mut memory = Memory::default();
        let end = regions(image, &mut memory, limits.memory)?;
        for segment in &image.segments {
            // The regions were made of the segments.
            let address = segment.address.get() as u32;
            let written = memory.write(address, &segment.data);
            written.map_err(|_| too_large(segment))?;
            if !segment.mode.write {
                memory.protect(address..address.saturating_add(segment.size as u32));
            }
        }
        let top = end.saturating_add(limits.memory);
        let mut hart = Hart::default();
        hart.pc = image.entry.get() as u32;
        let stack = push_arguments(&mut memory, top, arguments).ok_or(LoadError::Arguments)?;
        hart.set(Register::SP, stack);
        let heap = Heap {
            start: end,
            end,
            // The last quarter is the stack's.
            limit: top.saturating_sub(limits.memory / 4),
        };
        let system = System::new(streams, limits.folder, heap, limits.clock_hz);
        let system = system.map_err(|source| LoadError::Folder {
            path: limits.folder.unwrap_or(Path::new("")).to_owned(),
            source,
        })?;
        Ok(Self {
            hart,
            memory,
            system,
            functions: Functions::new(image),
        })
    }
}

fn too_large(segment: &varid_riscv::Segment) -> LoadError {
    LoadError::TooLarge {
        address: segment.address,
        size: segment.size,
    }
}

/// Makes a region of each group of segments, the last one with `extra` bytes more. Returns where those begin.
fn regions(image: &Image, memory: &mut Memory, extra: u32) -> Result<u32, LoadError> {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    let mut total = 0_u64;
    for segment in &image.segments {
        let start = segment.address.get() & !(PAGE.wrapping_sub(1));
        let end = segment.address.get().saturating_add(segment.size);
        let before = groups.last().map_or(start, |(_, end)| *end);
        let is_near = !groups.is_empty() && start.saturating_sub(before) < GAP;
        let added = end.saturating_sub(if is_near { before } else { start });
        total = total.saturating_add(added);
        if total > MAX_SEGMENTS || end > 1 << 32 {
            return Err(too_large(segment));
        }
        match groups.last_mut().filter(|_| is_near) {
            Some(last) => last.1 = last.1.max(end),
            None => groups.push((start, end)),
        }
    }
    let heap = groups.last().map_or(0, |(_, end)| *end);
    let heap = heap.next_multiple_of(PAGE);
    let no_room = || LoadError::NoRoom {
        bytes: extra,
        end: Address::new(heap),
    };
    if let Some(last) = groups.last_mut() {
        last.1 = heap.saturating_add(extra.into());
    }
    // The address behind the last byte has 32 bits, too.
    if heap.saturating_add(extra.into()) > u64::from(u32::MAX) {
        return Err(no_room());
    }
    for (start, end) in &groups {
        let size = end.saturating_sub(*start) as u32;
        memory.add_region(*start as u32, size).ok_or_else(no_room)?;
    }
    Ok(heap as u32)
}

/// Writes the arguments below `top` as Linux does: their number, pointers to them, 0, no environment, no auxiliary values, and their bytes.
/// Returns the stack pointer. None: there is no room.
fn push_arguments(memory: &mut Memory, top: u32, arguments: &[&[u8]]) -> Option<u32> {
    let sizes = arguments
        .iter()
        .map(|argument| argument.len().saturating_add(1));
    let bytes = sizes.fold(0, usize::saturating_add);
    let words = arguments.len().checked_add(6)?;
    let total = words.checked_mul(4)?.checked_add(bytes)?;
    if total > MAX_ARGUMENTS {
        return None;
    }
    let stack = top.checked_sub(total as u32)? & !15;
    let mut text = stack.checked_add((words as u32).checked_mul(4)?)?;
    let mut vector = vec![arguments.len() as u32];
    for argument in arguments {
        vector.push(text);
        memory.write(text, argument).ok()?;
        text = text.checked_add(argument.len() as u32)?.checked_add(1)?;
    }
    for (index, word) in vector.iter().enumerate() {
        let at = stack.checked_add((index as u32).checked_mul(4)?)?;
        memory.write(at, &word.to_le_bytes()).ok()?;
    }
    Some(stack)
}
