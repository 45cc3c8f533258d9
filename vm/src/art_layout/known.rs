//! Which libraries have been read already?
//!
//! A device's apps share one library. Reading it takes a tenth of a second; what it says is kept by the file that it was read from. A
//! build-id is what a file says of itself, and two files may say the same.

use super::{LayoutError, LibraryLayout};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;

/// Files whose layouts are kept.
const MAX_KNOWN: usize = 64;
/// No library of a VM is larger.
const MAX_LIBRARY: u64 = 1 << 27;

/// Which file it is: device, inode, size, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64, u64, (i64, i64));

impl FileId {
    fn of(file: &Metadata) -> Self {
        Self(
            file.dev(),
            file.ino(),
            file.size(),
            (file.mtime(), file.mtime_nsec()),
        )
    }
}

/// What a file says.
type Said = Result<Rc<LibraryLayout>, LayoutError>;

thread_local! {
    static KNOWN: RefCell<VecDeque<(FileId, Said)>> = const { RefCell::new(VecDeque::new()) };
}

/// What a library says, read at most once.
pub(crate) fn read_once(file: &File) -> Said {
    let unreadable = |error: std::io::Error| LayoutError::File(error.to_string());
    let metadata = file.metadata().map_err(unreadable)?;
    let id = FileId::of(&metadata);
    let known = KNOWN.with_borrow(|known| {
        let of_it = known.iter().find(|(known, _)| *known == id);
        of_it.map(|(_, said)| said.clone())
    });
    if let Some(said) = known {
        return said;
    }
    let said = read(file, id.2).and_then(|bytes| LibraryLayout::read(&bytes).map(Rc::new));
    KNOWN.with_borrow_mut(|known| {
        known.push_back((id, said.clone()));
        if known.len() > MAX_KNOWN {
            known.pop_front();
        }
    });
    said
}

/// The bytes of a file; one that becomes shorter meanwhile is read as far as it goes.
fn read(file: &File, size: u64) -> Result<Vec<u8>, LayoutError> {
    let too_large = LayoutError::OutOfBounds("the size of the file");
    let size =
        usize::try_from(size.min(MAX_LIBRARY.saturating_add(1))).map_err(|_| too_large.clone())?;
    if size as u64 > MAX_LIBRARY {
        return Err(too_large);
    }
    let mut bytes = vec![0; size];
    let mut done = 0usize;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, done as u64) {
            Ok(0) => break,
            Ok(read) => done = done.saturating_add(read),
            Err(error) => return Err(LayoutError::File(error.to_string())),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
