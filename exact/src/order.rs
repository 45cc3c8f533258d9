//! The order in which the threads of a VM entered contexts and blocks, as the agent has kept it.
//!
//! The events of a thread are those of its records in the order's file, and behind them those of its chunk in the tree. Neither is trusted.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::Read,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use flate2::read::DeflateDecoder;
use varid_exact_agent::order::Head;
use varid_instrument::runtime::order;

use crate::error::{Error, Result};

/// The most events of a chunk.
const MOST: u64 = order::EVENTS_LENGTH / order::EVENT;

/// An event: the number of a word of the tree's file.
pub(crate) type Word = u32;

/// The order's file of a VM.
#[derive(Debug)]
pub struct Order {
    path: PathBuf,
    file: File,
    /// The records of each root, in their order.
    records: HashMap<u64, Vec<Record>>,
    /// The fillings that the file has.
    fillings: HashSet<u64>,
}

/// Where the compressed events of a record are.
#[derive(Debug, Clone, Copy)]
struct Record {
    offset: u64,
    length: u32,
    events: u32,
}

impl Order {
    /// Opens the file. A record that is cut is left out: its events are still in the tree.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let size = file.metadata().map_err(Error::io("read", path))?.len();
        let mut order = Self {
            path: path.to_owned(),
            file,
            records: HashMap::new(),
            fillings: HashSet::new(),
        };
        let mut offset = 0_u64;
        loop {
            let events_at = offset.saturating_add(Head::LENGTH as u64);
            if events_at > size {
                break;
            }
            let mut bytes = [0; Head::LENGTH];
            let read = order.file.read_exact_at(&mut bytes, offset);
            read.map_err(Error::io("read", path))?;
            let head = Head::from_bytes(bytes);
            let end = events_at.saturating_add(head.length.into());
            if end > size {
                break;
            }
            order.fillings.insert(head.filling);
            order.records.entry(head.root).or_default().push(Record {
                offset: events_at,
                length: head.length,
                events: head.events,
            });
            offset = end;
        }
        Ok(order)
    }

    /// Returns true if the file has the events of this filling of a chunk.
    pub(crate) fn has(&self, filling: u64) -> bool {
        self.fillings.contains(&filling)
    }

    /// Calls `visit` with the events of a root's records, record by record.
    ///
    /// # Errors
    ///
    /// A record is damaged; and those of `visit`.
    pub(crate) fn visit(
        &self,
        root: u64,
        mut visit: impl FnMut(&[Word]) -> Result<()>,
    ) -> Result<()> {
        for record in self.records.get(&root).into_iter().flatten() {
            visit(&self.events(record)?)?;
        }
        Ok(())
    }

    fn events(&self, record: &Record) -> Result<Vec<Word>> {
        // The file is as long as that.
        let mut compressed = vec![0; usize::try_from(record.length).unwrap_or(0)];
        let read = self.file.read_exact_at(&mut compressed, record.offset);
        read.map_err(Error::io("read", &self.path))?;
        let most = MOST.saturating_mul(order::EVENT);
        let mut bytes = Vec::new();
        let mut decoder = DeflateDecoder::new(&compressed[..]).take(most.saturating_add(1));
        let is_read = decoder.read_to_end(&mut bytes).is_ok();
        let (words, rest) = bytes.as_chunks();
        let is_whole = rest.is_empty() && words.len() as u64 == u64::from(record.events);
        if !is_read || !is_whole || u64::from(record.events) > MOST {
            return Err(Error::Tree {
                path: self.path.clone(),
                offset: record.offset,
                problem: "the events are damaged",
            });
        }
        Ok(words
            .iter()
            .map(|word| Word::from_le_bytes(*word))
            .collect())
    }
}
