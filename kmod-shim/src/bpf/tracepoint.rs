//! The shim on a raw tracepoint, which does not need tracefs.

use super::object::{Object, object};
use super::{BpfError, Hook, Shim, Variant};
use aya::programs::RawTracePoint;

/// The programs.
pub(super) static OBJECT: Object = object!("tracepoint");

/// The variant with bpf_loop, then the one without.
pub(super) static VARIANTS: [Variant; 2] = [
    Variant {
        entry: "varid_hit",
        any: "varid_hit_any",
    },
    Variant {
        entry: "varid_hit_no_loop",
        any: "varid_hit_any_no_loop",
    },
];

impl Shim {
    /// Loads the program for a tracepoint. `period`: hits per sample. It runs once it is attached.
    pub fn load_for_tracepoint(ring_pages: usize, period: u64) -> Result<Self, BpfError> {
        let period = period.max(1);
        Self::load_first_of(&VARIANTS, Hook::Tracepoint { period }, ring_pages.max(1))
    }

    /// Runs the program at the tracepoint with this name, which does not include its system.
    pub fn attach_to_tracepoint(&self, name: &str) -> Result<(), BpfError> {
        let entry = self.variant.entry;
        self.walker.with_object_mut(|object| {
            let program = object.program_mut(entry).ok_or(BpfError::Missing(entry))?;
            let program: &mut RawTracePoint = program.try_into()?;
            let attached = program.attach(name);
            attached.map(drop).map_err(|source| BpfError::Tracepoint {
                name: name.to_owned(),
                source,
            })
        })
    }

    /// Stops running the program.
    pub fn detach_from_tracepoint(&self) -> Result<(), BpfError> {
        let entry = self.variant.entry;
        self.walker.with_object_mut(|object| {
            let program = object.program_mut(entry).ok_or(BpfError::Missing(entry))?;
            let program: &mut RawTracePoint = program.try_into()?;
            Ok(program.unload()?)
        })
    }
}
