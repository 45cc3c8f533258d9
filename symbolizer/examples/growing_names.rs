//! Measures the cost of the names of methods that a recording finds while it runs.
//!
//! usage: growing_names FILE METHODS WRITES
//!
//! Adds METHODS with lines to FILE in WRITES equal parts. Prints the microseconds and written bytes of all parts, and of the complete file.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use varid_symbolizer::substitute::{GrowingSubstitute, MethodSlot, MethodSource, Slot, SlotLine};

/// Bytes from one method to the next.
const STEP: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, methods, writes] = arguments.as_slice() else {
        return Err("usage: growing_names FILE METHODS WRITES".into());
    };
    let (count, writes): (u64, usize) = (methods.parse()?, writes.parse()?);
    let file = Path::new(file);
    let methods: Vec<MethodSlot> = (0..count).map(method).collect();
    let mut growing = GrowingSubstitute::new(&[1; 20]);
    let part = methods.len().div_ceil(writes.max(1)).max(1);
    let (start, before) = (Instant::now(), bytes_written()?);
    for end in (part..methods.len()).step_by(part).chain([methods.len()]) {
        let known = methods.get(..end).unwrap_or_default();
        growing.write(file, known, STEP.saturating_mul(end as u64))?;
    }
    let (grown, all) = (start.elapsed(), bytes_written()?);
    let start = Instant::now();
    growing.complete(file, &methods, STEP.saturating_mul(count))?;
    let completed = start.elapsed();
    println!(
        "{} {} {} {}",
        grown.as_micros(),
        all.saturating_sub(before),
        completed.as_micros(),
        bytes_written()?.saturating_sub(all),
    );
    Ok(())
}

fn method(number: u64) -> MethodSlot {
    let class = format!("org.example.generated.package{}.Class{number}", number % 97);
    let line = |line: u32| SlotLine {
        offset: line.saturating_mul(8),
        line: line.saturating_add(20),
    };
    MethodSlot {
        slot: Slot {
            offset: number.saturating_mul(STEP),
            size: 60,
            name: format!("{class}.method{number}"),
        },
        descriptor: String::new(),
        source: Some(MethodSource {
            class,
            file: format!("Class{number}.java"),
            lines: (0..7).map(line).collect(),
        }),
    }
}

/// Returns the bytes that this thread has written.
fn bytes_written() -> Result<u64, Box<dyn Error>> {
    let counts = std::fs::read_to_string("/proc/thread-self/io")?;
    let mut lines = counts.lines();
    let written = lines.find_map(|line| line.strip_prefix("wchar: "));
    Ok(written.ok_or("no count of written bytes")?.parse()?)
}
