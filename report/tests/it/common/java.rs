//! A recording of a Java program on HotSpot, made by the writer.

use std::path::PathBuf;

use varid_model::Layer;
use varid_recording::{ImageKind, REMAP_BASE, SessionImage};
use varid_symbolizer::substitute::{
    MethodSlot, MethodSource, Slot, SlotLine, Substitute, append_slots_sym, sym_file_of,
};

use super::Fixture;

/// Where the fixture's framework methods are, in a range of their own.
pub const FRAMEWORK_BASE: u64 = REMAP_BASE + 0x1_0000;
pub const LIBJVM: u64 = 0x7500_0000_0000;

/// A method of the class `org.example.App`, whose source is `App.java`.
pub fn method(offset: u64, size: u64, name: &str, descriptor: &str) -> MethodSlot {
    MethodSlot {
        slot: Slot {
            offset,
            size,
            name: name.to_owned(),
        },
        descriptor: descriptor.to_owned(),
        source: None,
    }
}

/// The same with the lines of its instructions: the first instruction of each, and the line.
pub fn with_lines(method: MethodSlot, lines: &[(u32, u32)]) -> MethodSlot {
    let lines = lines.iter().map(|(offset, line)| SlotLine {
        offset: *offset,
        line: *line,
    });
    MethodSlot {
        source: Some(MethodSource {
            class: "org.example.App".to_owned(),
            file: "App.java".to_owned(),
            lines: lines.collect(),
        }),
        ..method
    }
}

impl Fixture {
    /// A session of process 100 with these methods, by their offsets in the app's part of the remap range and in the framework's.
    pub fn java(app: &[MethodSlot], framework: &[MethodSlot]) -> Self {
        let mut fixture = Self::bare();
        for (start, layer, name, methods) in [
            (REMAP_BASE, Layer::App, "remap.elf", app),
            (
                FRAMEWORK_BASE,
                Layer::Framework,
                "remap-framework.elf",
                framework,
            ),
        ] {
            let path = fixture.writer.symbols().join(name);
            let build_id = [start.to_le_bytes()[2]; 20];
            append_slots_sym(methods, &sym_file_of(&path)).unwrap();
            let substitute = Substitute::remap(methods.iter().cloned(), 0x8000, &build_id);
            substitute.unwrap().write(&path).unwrap();
            fixture.writer.manifest_mut().images.push(SessionImage {
                path: name.to_owned(),
                build_id: String::new(),
                kind: ImageKind::Remap,
                layer,
                substitute: Some(format!("symbols/{name}")),
                location: None,
            });
            fixture.map(100, start, &path, &build_id);
        }
        let libjvm = fixture.libjvm();
        fixture.writer.manifest_mut().images.push(SessionImage {
            path: libjvm.to_str().unwrap().to_owned(),
            build_id: String::new(),
            kind: ImageKind::Elf,
            layer: Layer::Vm,
            substitute: None,
            location: None,
        });
        fixture.map(100, LIBJVM, &libjvm, &[7; 20]);
        fixture
    }

    /// The path of the JVM's library, which a test may write. Its build-id is 20 bytes of 7.
    pub fn libjvm(&self) -> PathBuf {
        self.dir.path().join("libjvm.so")
    }
}
