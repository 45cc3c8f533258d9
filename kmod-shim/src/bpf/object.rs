//! The object files in this build. They are compressed: otherwise they would be a quarter of varid's size on a board.

use super::BpfError;
use flate2::read::ZlibDecoder;
use std::io::Read;

/// A compressed object file with programs, or None on a processor without them.
#[derive(Debug, Clone, Copy)]
pub struct Object(pub Option<&'static [u8]>);

/// The object file that the build script makes from `bpf/NAME.bpf.c`.
macro_rules! object {
    ($name:literal) => {{
        #[cfg(has_bpf_program)]
        let object =
            Some(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.z")) as &[u8]);
        #[cfg(not(has_bpf_program))]
        let object = None;
        $crate::bpf::object::Object(object)
    }};
}
pub(super) use object;

impl Object {
    /// Returns the decompressed object file.
    ///
    /// # Errors
    ///
    /// This build has no object file, or it cannot be read.
    pub fn decompressed(self) -> Result<Vec<u8>, BpfError> {
        let compressed = self.0.ok_or(BpfError::NoProgram)?;
        let mut object = Vec::new();
        let read = ZlibDecoder::new(compressed).read_to_end(&mut object);
        read.map_err(|_| BpfError::NoProgram)?;
        Ok(object)
    }
}
