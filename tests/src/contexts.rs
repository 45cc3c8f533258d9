//! Reads a session's contexts.data independently of varid, from the format in docs/session-format.md.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// The kinds of chunks.
const COUNTERS: u8 = 1;
const COUNTS: u8 = 6;

/// Returns the sum of each counter over all nodes and places of a file.
///
/// # Errors
/// The file cannot be read, or violates the format.
pub fn counter_sums(path: &Path) -> Result<BTreeMap<String, u64>> {
    let file = std::fs::read(path).with_context(|| format!("{path:?}"))?;
    ensure!(
        file.starts_with(b"VARIDCTX\x01\0\0\0"),
        "{path:?}: its head"
    );
    let mut rest = file.get(12..).unwrap_or_default();
    let mut names = Vec::new();
    let mut values = BTreeMap::new();
    while let Some((head, behind)) = rest.split_first_chunk::<9>() {
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let payload = behind.get(..length).context("a chunk is cut")?;
        rest = behind.get(length..).unwrap_or_default();
        let mut fields = Fields(payload);
        match head[0] {
            COUNTERS => names = fields.counters()?,
            COUNTS => fields.counts(&mut values)?,
            _ => {}
        }
    }
    ensure!(
        rest.is_empty(),
        "{path:?}: it ends within the head of a chunk"
    );
    let mut sums = BTreeMap::new();
    for ((_, counter, _), value) in values {
        let name: &String = names.get(counter as usize).context("no such counter")?;
        *sums.entry(name.clone()).or_default() += value;
    }
    Ok(sums)
}

/// The key of a value: node, counter, place, and whether there is a place (1 or 0). A later value with the same key
/// replaces it.
type Cell = (u64, u64, u64);

/// The rest of a payload.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("a cut field")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in 0.. {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                break;
            }
        }
        Ok(number)
    }

    /// Reads a number that is encoded as its difference to another one: twice the difference, or twice its absolute
    /// value minus one if it is negative.
    fn near(&mut self, other: u64) -> Result<u64> {
        let distance = self.number()?;
        Ok(match distance % 2 {
            0 => other + distance / 2,
            _ => other - distance.div_ceil(2),
        })
    }

    fn counters(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        while !self.0.is_empty() {
            for is_name in [true, false] {
                let length = self.number()?;
                let text = self.take(length as usize)?;
                if is_name {
                    names.push(String::from_utf8(text.to_vec())?);
                }
            }
        }
        Ok(names)
    }

    fn counts(&mut self, values: &mut BTreeMap<Cell, u64>) -> Result<()> {
        let (mut node, mut place) = (0, 0);
        while !self.0.is_empty() {
            let head = self.number()?;
            if head & 2 != 0 {
                (node, place) = (self.near(node)?, 0);
            }
            let mut cell = (node, head >> 2, 0);
            if head & 1 != 0 {
                place = self.near(place)?;
                cell.2 = place + 1;
            }
            values.insert(cell, self.number()?);
        }
        Ok(())
    }
}
