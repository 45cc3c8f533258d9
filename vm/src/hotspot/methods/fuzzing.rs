//! How does a fuzz target look at code? It panics where an answer is wrong.

use super::JavaCode;
use crate::hotspot::code_heaps::CodeHeap;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::library::LoadedLibrary;
use std::collections::HashSet;
use std::rc::Rc;
use varid_model::{Address, FrameAddress, Machine, Tid};
use varid_tunnel::ByteMemory;

/// Where the memory of a VM starts in the seeds.
const JVM_BASE: u64 = 0x10_0000;
/// Memory is readable or not by pages.
const PAGE: usize = 1 << 12;
/// Where the code heap starts, and its segment map, in the memory of the code.
const HEAP: Address = Address::new(0x80_0000);
/// The size of the code heap in bytes.
const HEAP_SIZE: u64 = 0x2000;
/// Code addresses that are looked at: each can have as many inlined methods as there are bytes.
const LOOKED_INTO: usize = 16;

/// A HotSpot whose code is the input.
pub struct HotSpotCode {
    jvm: Jvm,
}

impl HotSpotCode {
    /// Describes a VM with this memory, which must be right.
    pub fn described_in(memory: &[u8]) -> Option<Self> {
        let library = LoadedLibrary::exporting_at(Machine::X86_64, Address::new(JVM_BASE));
        let mut bytes = memory.to_vec();
        bytes.resize(memory.len().next_multiple_of(PAGE), 0);
        let memory = ByteMemory {
            start: JVM_BASE,
            bytes: &bytes,
        };
        let tids = || HashSet::from([11, 12].map(Tid::new));
        let mut jvm = Jvm::read(&library, &memory, &tids).ok()?;
        jvm.code_heaps = vec![CodeHeap {
            address: HEAP,
            reserved: HEAP..HEAP.wrapping_add(HEAP_SIZE),
            committed_end: HEAP.wrapping_add(HEAP_SIZE),
            segment_map: HEAP,
            log2_segment_size: 7,
        }];
        Some(Self { jvm })
    }

    /// Finds the blobs of code that is the input, and the methods that it executes.
    pub fn look_into(&self, input: &[u8]) {
        let memory = ByteMemory {
            start: HEAP.get(),
            bytes: input,
        };
        let mut code = JavaCode::new(Rc::new(self.jvm.clone()));
        for offset in (0..HEAP_SIZE).step_by(128) {
            let address = HEAP.wrapping_add(offset);
            let Ok(blob) = code.blob_at(address, &memory) else {
                continue;
            };
            assert!(blob.memory.contains(&address), "another blob");
            let compiled = blob.key().map(|key| code.compiled(key, &memory));
            let Some(Ok(compiled)) = compiled else {
                continue;
            };
            let described = compiled.compiled.described_addresses();
            for address in described.take(LOOKED_INTO) {
                for address in [
                    FrameAddress::Return(address),
                    FrameAddress::Instruction(address),
                ] {
                    if let Ok(found) = compiled.frames_at(address) {
                        assert!(!found.frames.is_empty(), "code of no method");
                    }
                }
            }
        }
    }
}
