//! Caches the layouts of libraries.
//!
//! The apps of a device share one library, and reading it takes a tenth of a second. The result is kept by the identity of the file. A
//! build-id would not do: it is the file's own claim, and two files may claim the same.

use super::{LayoutError, LibraryLayout};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use varid_process::reader::ForeignFile;
use varid_process::{FileKey, read_file};

/// The most files whose layouts are kept.
const MAX_KNOWN: usize = 64;
/// The largest library of a VM, in bytes.
const MAX_LIBRARY: u64 = 1 << 27;

/// The layout of a file, or why it has none.
type Said = Result<Rc<LibraryLayout>, LayoutError>;

thread_local! {
    static KNOWN: RefCell<VecDeque<(FileKey, Said)>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns the layout of a library, which is read once.
pub(crate) fn read_once(file: &ForeignFile) -> Said {
    let unreadable = |error: std::io::Error| LayoutError::File(error.to_string());
    let metadata = file.metadata().map_err(unreadable)?;
    let key = FileKey::of(&metadata);
    let known = KNOWN.with_borrow(|known| {
        let of_it = known.iter().find(|(known, _)| *known == key);
        of_it.map(|(_, said)| said.clone())
    });
    if let Some(said) = known {
        return said;
    }
    let said = match key.size {
        ..=MAX_LIBRARY => read_file(file, 0, key.size)
            .map_err(unreadable)
            .and_then(|bytes| LibraryLayout::read(&bytes).map(Rc::new)),
        _ => Err(LayoutError::OutOfBounds("the size of the file")),
    };
    // What could not be read in time may be readable the next time.
    if matches!(said, Err(LayoutError::File(_))) {
        return said;
    }
    KNOWN.with_borrow_mut(|known| {
        known.push_back((key, said.clone()));
        if known.len() > MAX_KNOWN {
            known.pop_front();
        }
    });
    said
}
