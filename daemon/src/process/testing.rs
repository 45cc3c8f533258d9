//! Processes that tests make up.

use super::budget::Claim;
use super::remapped::Remapped;
use super::{AddressSpace, DexImage, ElfImage, Image, Mapped, Method, Process, Vm};
use std::path::Path;
use std::rc::Rc;
use varid_tunnel::abi::Call;

#[path = "../../../symbolizer/tests/it/containers.rs"]
pub mod containers;

/// No process has this id: nothing of it can be read.
const NOBODY: u32 = 0x3fff_fff0;

impl Process {
    /// A process of which only this is known.
    pub fn made_up(space: AddressSpace, vm: Option<Vm>) -> Self {
        Self {
            space,
            vm: vm.map(Rc::new),
            ..Self::new(NOBODY)
        }
    }

    /// The VM that is mapped is one that nobody knows.
    pub fn set_unknown_vm(&mut self) {
        self.vm = None;
        self.set_problem("its build is not known".to_owned());
    }

    /// The VM says again what it has said before.
    pub fn describe_vm_anew(&mut self) {
        if let Some(vm) = self.vm.clone() {
            self.replace_vm(Vm::clone(&vm));
        }
    }

    /// What its remapped addresses stand for.
    pub fn set_remapped(&mut self, entries: Vec<Call>) {
        self.remapped = Remapped::made_up(entries);
    }

    /// What a method pointer stands for from now on.
    pub fn set_method(&mut self, pointer: u64, method: Method) {
        self.methods.insert(pointer, method);
    }
}

/// Maps an image.
pub fn mapped(start: u64, len: u64, pgoff: u64, image: Image) -> Mapped {
    Mapped {
        start,
        end: start + len,
        pgoff,
        image,
        mode: None,
        recorded: false,
    }
}

/// A library from its bytes.
pub fn elf(bytes: &[u8], path: &str) -> Image {
    Image::Elf(Rc::new(ElfImage::from_bytes(bytes, Path::new(path))))
}

/// The dex file that the symbolizer's tests keep.
pub fn dex() -> Rc<DexImage> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../symbolizer/tests/fixtures/names.dex");
    let bytes = std::fs::read(&path).unwrap();
    let memory = Claim::new(bytes.len() as u64, 0).unwrap();
    Rc::new(DexImage::parse(bytes, memory, Path::new("/test/app.dex"), 0).unwrap())
}
