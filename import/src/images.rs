//! Files of the session for images whose functions the source names.

use std::path::{Path, PathBuf};

use sha1_smol::Sha1;
use varid_model::Layer;
use varid_recording::{ImageKind, SessionImage, SessionWriter};
use varid_symbolizer::{
    hex,
    substitute::{MethodSlot, Substitute, TargetMachine},
};

use crate::{error::Result, input::Input};

/// The largest offset of a symbol: larger than in any library, and small enough for a sparse file on any file system.
pub(crate) const MAX_OFFSET: u64 = 1 << 36;

/// The most bytes of the names of an image's functions. Substitutes accept no more than 64 MB.
pub(crate) const MAX_NAMES: usize = 48 << 20;

/// An image whose functions the source names.
#[derive(Debug, Clone)]
pub(crate) struct NamedImage {
    /// Its path, or the name to show.
    pub(crate) path: String,
    pub(crate) kind: ImageKind,
    pub(crate) layer: Layer,
    /// The original's build-id, if it is known.
    pub(crate) build_id: Vec<u8>,
    /// Its functions by their offsets, with their lines. Only those of [`ImageKind::Remap`] and [`ImageKind::Dex`] keep lines.
    pub(crate) slots: Vec<MethodSlot>,
}

/// A file of the session for an image.
#[derive(Debug, Clone)]
pub(crate) struct ImageFile {
    /// Its path in mappings.
    pub(crate) path: PathBuf,
    pub(crate) build_id: [u8; 20],
    name: String,
}

/// Returns the file for the image with this number. Its build-id identifies the session's file, not the content.
pub(crate) fn file(writer: &SessionWriter, input: &Input, number: usize) -> ImageFile {
    let name = format!("import-{number}.elf");
    let path = writer.symbols().join(&name);
    let path = std::path::absolute(&path).unwrap_or(path);
    let identity = format!(
        "varid import\0{}\0{}\0{:?}\0{number}",
        input.path.display(),
        input.len,
        input.modified
    );
    ImageFile {
        path,
        build_id: Sha1::from(identity).digest().bytes(),
        name,
    }
}

/// Writes an image's file and adds the image to the manifest.
pub(crate) fn write(
    writer: &mut SessionWriter,
    file: &ImageFile,
    mut image: NamedImage,
    arch: &str,
) -> Result<()> {
    let slots = disjoint(std::mem::take(&mut image.slots));
    let end = slots.last().map_or(0, |MethodSlot { slot, .. }| {
        slot.offset.saturating_add(slot.size)
    });
    let here = writer.symbols_here().join(&file.name);
    let substitute = match image.kind {
        ImageKind::Elf => {
            let slots = slots.into_iter().map(|method| method.slot);
            Substitute::of_functions(slots, end, &file.build_id)?
        }
        ImageKind::Dex | ImageKind::Remap => Substitute::remap(slots, end, &file.build_id)?,
    };
    substitute
        .for_machine(machine(arch))
        .write(Path::new(&here))?;
    writer.manifest_mut().images.push(SessionImage {
        path: image.path,
        build_id: hex(&image.build_id),
        kind: image.kind,
        layer: image.layer,
        substitute: Some(format!("symbols/{}", file.name)),
        location: None,
    });
    Ok(())
}

/// Sorts the functions. Each ends at the start of the next one at the latest. One without a size extends to the next one.
fn disjoint(mut methods: Vec<MethodSlot>) -> Vec<MethodSlot> {
    methods.retain(|MethodSlot { slot, .. }| slot.offset < MAX_OFFSET && !slot.name.is_empty());
    methods.sort_by_key(|method| method.slot.offset);
    methods.dedup_by_key(|method| method.slot.offset);
    let mut names = 0usize;
    methods.retain(|method| {
        names = names.saturating_add(method.slot.name.len());
        names <= MAX_NAMES
    });
    let starts = methods.iter().skip(1).map(|method| method.slot.offset);
    let ends: Vec<_> = starts.map(Some).chain([None]).collect();
    for (MethodSlot { slot, .. }, end) in methods.iter_mut().zip(ends) {
        let room = end.map_or(MAX_OFFSET, |end| end.saturating_sub(slot.offset));
        slot.size = match (slot.size, end) {
            (0, None) => 1,
            (0, Some(_)) => room,
            (size, _) => size.min(room),
        };
    }
    methods
}

/// The machine that tools expect for these files.
fn machine(arch: &str) -> TargetMachine {
    match arch {
        "x86_64" => TargetMachine::X86_64,
        "aarch64" | "arm64" => TargetMachine::Aarch64,
        "riscv64" => TargetMachine::Riscv64,
        arch if arch.starts_with("arm") => TargetMachine::Arm,
        arch if arch.starts_with('i') && arch.ends_with("86") => TargetMachine::X86,
        _ => TargetMachine::host(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_symbolizer::substitute::Slot;

    #[test]
    fn functions_do_not_overlap_and_have_a_size() {
        let slot = |offset, size, name: &str| {
            let name = name.to_owned();
            MethodSlot::from(Slot { offset, size, name })
        };
        let slots = disjoint(vec![
            slot(0x30, 0, "last"),
            slot(0x10, 0x40, "long"),
            slot(0x20, 0, "sizeless"),
            slot(0x10, 4, "alias"),
            slot(u64::MAX, 4, "nowhere"),
            slot(0x28, 4, ""),
        ]);
        let found: Vec<_> = slots
            .iter()
            .map(|MethodSlot { slot, .. }| (slot.offset, slot.size, slot.name.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (0x10, 0x10, "long"),
                (0x20, 0x10, "sizeless"),
                (0x30, 1, "last")
            ]
        );
    }
}
