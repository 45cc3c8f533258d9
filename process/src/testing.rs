//! What the tests of this crate map.

use super::{CodeImage, MappingId, ProcessImage, ProcessMapping};
use std::path::Path;
use std::rc::Rc;

/// Maps an image.
pub fn mapped(start: u64, len: u64, pgoff: u64, image: ProcessImage) -> ProcessMapping {
    ProcessMapping {
        start,
        end: start + len,
        pgoff,
        image,
        mode: None,
        id: MappingId::default(),
    }
}

/// The dex file that the symbolizer's tests keep.
pub fn dex() -> Rc<CodeImage> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../symbolizer/tests/fixtures/names.dex");
    let bytes = std::fs::read(&path).unwrap();
    Rc::new(CodeImage::of_dex(bytes, Path::new("/test/app.dex")).unwrap())
}
