//! Measures the cost of opening a dex file and building its index, compared with copying its bytes.
//!
//! usage: open_dex FILE
//!
//! Prints the nanoseconds of both. Each runs for the first time in its process.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use varid_symbolizer::dex::{DexFile, MethodIndex};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: open_dex FILE")?;
    let bytes = std::fs::read(file)?;
    // Touch the pages of the copy first: those of `bytes` are already resident.
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
