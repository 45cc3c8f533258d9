//! Measures what opening a dex file costs, its index included, beside a copy of its bytes.
//!
//! usage: open_dex FILE
//!
//! Prints the nanoseconds of both, in a process that has done neither before.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use varid_symbolizer::dex::{DexFile, MethodIndex};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: open_dex FILE")?;
    let bytes = std::fs::read(file)?;
    // Its pages are there, as those of the bytes are.
    let mut copy = vec![1u8; bytes.len()];
    let start = Instant::now();
    copy.copy_from_slice(black_box(&bytes));
    let copied = start.elapsed();
    black_box(&copy);
    let start = Instant::now();
    let dex = DexFile::parse(&bytes)?;
    let index = MethodIndex::new(&dex)?;
    let opened = start.elapsed();
    println!(
        "{} {} {}",
        copied.as_nanos(),
        opened.as_nanos(),
        index.methods().len()
    );
    Ok(())
}
