//! Chooses the session's file for the vDSO of a process.
//!
//! The vDSO is not in any file, so the session keeps a copy. A process can overwrite its vDSO and leave the build-id unchanged. So
//! if the build-id is that of varid's own vDSO, varid's own is kept; any other vDSO is named by a hash of its content.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use varid_process::ElfImage;
use varid_symbolizer::hex;
use varid_tunnel::{Memory, ProcessMemory};

/// The vDSO of this process, if it can be read.
#[derive(Debug)]
pub struct Vdso(Option<ElfImage>);

impl Vdso {
    /// Reads the vDSO of this process.
    pub fn own() -> Self {
        Self(read_own())
    }

    /// Returns the name and contents of the file for a vDSO that was found in a process.
    pub fn file<'a>(&'a self, found: &'a ElfImage) -> (String, &'a [u8]) {
        let build_id = hex(found.build_id());
        if let Some(own) = &self.0
            && own.build_id() == found.build_id()
        {
            return (format!("vdso-{build_id}.so"), own.memory());
        }
        let mut hasher = DefaultHasher::new();
        found.memory().hash(&mut hasher);
        let content = hasher.finish();
        let name = format!("vdso-{build_id}-{content:016x}.so");
        (name, found.memory())
    }
}

fn read_own() -> Option<ElfImage> {
    let maps = procfs::process::Process::myself().ok()?.maps().ok()?;
    let map = maps
        .into_iter()
        .find(|map| map.pathname == procfs::process::MMapPath::Vdso)?;
    let (start, end) = map.address;
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    ProcessMemory::new(varid_model::Pid::new(std::process::id()))
        .read(start, &mut bytes)
        .ok()?;
    Some(ElfImage::from_bytes(&bytes, Path::new("[vdso]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_says_what_anothers_vdso_is() {
        let vdso = Vdso::own();
        let own = vdso.0.as_ref().unwrap();
        let mut bytes = own.memory().to_vec();
        // The last byte is in the symbols or code: after the headers and the note.
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let forged = ElfImage::from_bytes(&bytes, Path::new("[vdso]"));
        assert_eq!(forged.build_id(), own.build_id());
        let (name, kept) = vdso.file(&forged);
        assert_eq!(kept, own.memory());
        assert_eq!(name, format!("vdso-{}.so", hex(own.build_id())));
        // Without a vDSO to compare with, each one has its own file.
        let unknown = Vdso(None);
        let (honest, _) = unknown.file(own);
        let (other, kept) = unknown.file(&forged);
        assert_eq!(kept, forged.memory());
        assert_ne!(honest, other);
    }
}
