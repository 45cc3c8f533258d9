//! A tunnel is not trusted. It may even change between two reads.

use std::cell::Cell;
use varid_tunnel::layout::validate_layout;
use varid_tunnel::method::resolve_method;
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{ByteMemory, Memory, TunnelError};

/// The address at which the tunnel is mapped.
const START: u64 = 0x7f00_0000_0000;

/// Memory whose contents change at every third read.
struct Changing<'a> {
    pictures: [ByteMemory<'a>; 2],
    reads: Cell<usize>,
}

impl Memory for Changing<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let read = self.reads.get();
        self.reads.set(read + 1);
        self.pictures[usize::from(read % 3 == 2)].read(address, out)
    }
}

fn look(memory: &dyn Memory, len: u64) {
    let Ok(description) = read_tunnel(memory, START, len, varid_model::Pid::new(1)) else {
        return;
    };
    assert!(
        description
            .ranges
            .windows(2)
            .all(|pair| pair[0].end <= pair[1].start),
        "ranges overlap"
    );
    assert!(
        description
            .codes
            .windows(2)
            .all(|pair| pair[0].start + pair[0].size <= pair[1].start),
        "dex files overlap"
    );
    let _ = validate_layout(&description, memory);
    for thread in &description.threads {
        let _ = resolve_method(&description.layout, memory, thread.base);
    }
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let whole = ByteMemory {
        start: START,
        bytes,
    };
    look(&whole, bytes.len() as u64);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let pictures = [first, second].map(|bytes| ByteMemory {
        start: START,
        bytes,
    });
    look(
        &Changing {
            pictures,
            reads: Cell::new(0),
        },
        first.len() as u64,
    );
}
