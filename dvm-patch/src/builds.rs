//! The VM builds that are known without a tunnel: the table in `art/builds.c`.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ops::Range;

use crate::TunnelError;
use crate::abi::{CodeRange, Layout};

const BUILD_ID_SIZE: usize = 20;
const MAX_RANGES: usize = 256;
/// The maximum size of a library's initial thread-local storage. A larger value is not an offset of it.
const MAX_TLS: u64 = 1 << 20;

/// A build of a VM. Mirrors `struct varid_build`.
#[repr(C)]
pub struct Build {
    build_id: [u8; BUILD_ID_SIZE],
    name: *const c_char,
    layout: Layout,
    tls_word: u64,
    dex_debug: u64,
    dex_debug_hook: u64,
    runtime_instrumentation: u32,
    text_start: u32,
    text_end: u32,
    ranges: *const BuildRange,
    range_count: u32,
    push_count: u32,
    pushes: *const Push,
}

/// Mirrors `struct varid_build_range`, which only C reads.
#[repr(C)]
struct BuildRange {
    start: u32,
    end: u32,
    kind: u32,
}

/// Mirrors `struct varid_build_push`.
#[repr(C)]
struct Push {
    start: u32,
    end: u32,
}

// SAFETY: a Build is only accessed through shared references into a constant C table.
unsafe impl Sync for Build {}

unsafe extern "C" {
    fn varid_build_at(index: u32) -> *const Build;
    fn varid_build_find(build_id: *const u8, size: u32) -> *const Build;
    fn varid_build_layout(build: *const Build, base: u64, tls_offset: i64, layout: *mut Layout);
    fn varid_build_ranges(
        build: *const Build,
        base: u64,
        out: *mut CodeRange,
        capacity: u32,
    ) -> u32;
}

/// Returns the build of the VM library with this build-id, if its layout is known.
pub fn lookup(build_id: &[u8]) -> Option<&'static Build> {
    let size = u32::try_from(build_id.len()).ok()?;
    // SAFETY: build_id is readable for its length; the result is null or points into a constant table, which is never freed.
    unsafe { varid_build_find(build_id.as_ptr(), size).as_ref() }
}

/// Iterates over all builds whose layout is known.
pub fn all() -> impl Iterator<Item = &'static Build> {
    // SAFETY: the result is null or points into a constant table, which is never freed.
    (0..).map_while(|index| unsafe { varid_build_at(index).as_ref() })
}

impl Build {
    /// The build's name in messages.
    pub fn name(&self) -> &'static str {
        // SAFETY: the table names every build with a string literal.
        unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or("?")
    }

    /// The build-id of the VM's library.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Returns the layout in a process that has loaded the library at `load_base`. `read_word` reads eight bytes of the process
    /// (four on a 32-bit machine, zero-extended): it reads the offset from the thread pointer, which the dynamic linker has stored.
    pub fn layout(
        &self,
        load_base: u64,
        read_word: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Layout, TunnelError> {
        let address = load_base.wrapping_add(self.tls_word);
        let value = read_word(address).ok_or_else(|| TunnelError::Read {
            address,
            len: usize::from(self.layout.word),
            reason: "the VM's library is not there".into(),
        })?;
        let tls_offset = match self.layout.word {
            4 => i64::from(value as u32 as i32),
            _ => value as i64,
        };
        if tls_offset == 0 || tls_offset.unsigned_abs() > MAX_TLS {
            return Err(TunnelError::TlsWord { address, value });
        }
        let mut layout = Layout::default();
        // SAFETY: self points into the C table; the layout is one that lives through the call.
        unsafe { varid_build_layout(self, load_base, tls_offset, &mut layout) };
        Ok(layout)
    }

    /// Returns the ranges of the library's code in a process that has loaded it at `load_base`. They are sorted and disjoint.
    pub fn ranges(&self, load_base: u64) -> Vec<CodeRange> {
        let mut ranges = vec![CodeRange::default(); MAX_RANGES];
        // SAFETY: self points into the C table; ranges has room for the capacity given.
        let count =
            unsafe { varid_build_ranges(self, load_base, ranges.as_mut_ptr(), MAX_RANGES as u32) };
        ranges.truncate(count as usize);
        ranges
    }

    /// Addresses of the library at which the innermost frame of a thread's list is not linked to its caller yet: its link is invalid. They
    /// are sorted and disjoint.
    pub fn pushes(&self) -> impl Iterator<Item = Range<u64>> {
        let pushes = match self.push_count {
            0 => &[],
            // SAFETY: self points into the C table, whose pushes are a constant array of so many.
            count => unsafe { std::slice::from_raw_parts(self.pushes, count as usize) },
        };
        let range = |push: &Push| u64::from(push.start)..u64::from(push.end);
        pushes.iter().map(range)
    }
}

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Build")
            .field("name", &self.name())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{RANGE_BODY, RANGE_BRIDGE, RANGE_HANDLERS, RANGE_VM};

    const AMD64: [u8; 20] = [
        0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67, 0xfb, 0x41, 0xf5, 0x0e, 0x66,
        0x90, 0x82, 0xcc, 0xac, 0x64,
    ];

    const ARM64: [u8; 20] = [
        0x2d, 0xe2, 0x1a, 0x0d, 0x4c, 0xa9, 0xb5, 0x44, 0x62, 0x22, 0xc7, 0x0a, 0x4e, 0x81, 0x4a,
        0x34, 0x27, 0x58, 0xd2, 0xe2,
    ];

    const ARMHF: [u8; 20] = [
        0xe3, 0x83, 0xdc, 0x2a, 0x23, 0xc4, 0x43, 0xc3, 0x45, 0xf8, 0x3e, 0xbd, 0x57, 0xc2, 0x27,
        0x4d, 0x8c, 0xdc, 0x63, 0x24,
    ];

    #[test]
    fn only_a_whole_and_exact_build_id_is_known() {
        assert!(all().any(|build| build.build_id() == AMD64));
        assert!(lookup(&AMD64).is_some());
        assert!(lookup(&AMD64[..19]).is_none());
        assert!(lookup(&[0; 20]).is_none());
        assert!(lookup(&[]).is_none());
    }

    #[test]
    fn ranges_are_sorted_disjoint_and_reach_over_the_text() {
        let base = 0x7f00_0000_0000;
        for (id, body, handlers, text_end) in [
            (AMD64, 0x7b2da9..0x7bb01e, 0x7b2e00, 0x7c9f96),
            (ARM64, 0x727438..0x72f7c8, 0x727480, 0x72ff30),
            (ARMHF, 0x7e69a4..0x7eedd8, 0x7e6a00, 0x7eee08),
        ] {
            let ranges = lookup(&id).unwrap().ranges(base);
            assert!(ranges.len() < MAX_RANGES);
            for pair in ranges.windows(2) {
                assert!(pair[0].start < pair[0].end && pair[0].end <= pair[1].start);
            }
            // The body of the linked frames' loop is contiguous and contains the handlers.
            let of_list = ranges.iter().filter(|r| r.rule == 0);
            let bodies: Vec<_> = of_list
                .filter(|r| [RANGE_BODY, RANGE_HANDLERS].contains(&r.kind))
                .collect();
            assert!(bodies.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!(
                bodies[0].start..bodies[bodies.len() - 1].end,
                base + body.start..base + body.end
            );
            // 128 bytes for each opcode.
            let found = bodies.iter().find(|r| r.kind == RANGE_HANDLERS);
            assert_eq!(
                found.map(|r| r.start..r.end),
                Some(base + handlers..base + handlers + 256 * 128)
            );
            assert_eq!(ranges[0].kind, RANGE_VM);
            assert_eq!(ranges[ranges.len() - 1].end, base + text_end);
        }
    }

    #[test]
    fn a_frame_is_linked_late_in_bridges_only() {
        for build in all() {
            let pushes: Vec<_> = build.pushes().collect();
            assert!(pushes.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let ranges = build.ranges(0);
            for push in &pushes {
                // At most five instructions.
                assert!(push.start < push.end && push.end - push.start <= 20);
                let is_around =
                    |range: &&CodeRange| range.start <= push.start && push.end <= range.end;
                let around = ranges.iter().find(is_around);
                assert_eq!(
                    around.map(|range| range.kind),
                    Some(RANGE_BRIDGE),
                    "{push:x?}"
                );
            }
        }
        let starts = |id: &[u8]| -> Vec<u64> {
            let pushes = lookup(id).unwrap().pushes();
            pushes.map(|push| push.start).collect()
        };
        // Behind mov %rdx, 0xc8(%r15), at mov %rax, (%rdx).
        assert_eq!(starts(&AMD64)[0], 0x36272e);
        assert_eq!((starts(&AMD64).len(), starts(&ARM64).len()), (13, 13));
        assert_eq!(starts(&ARMHF), [0; 0]);
    }

    #[test]
    fn the_tls_offset_comes_from_the_process_and_is_doubted() {
        let build = lookup(&AMD64).unwrap();
        let layout = build
            .layout(0x1000, |at| {
                (at == 0x1000 + 0x8abf08).then_some((-8i64) as u64)
            })
            .unwrap();
        assert_eq!(layout.tls_offset, -8);
        assert!(build.layout(0x1000, |_| None).is_err());
        assert!(build.layout(0x1000, |_| Some(0)).is_err());
        assert!(build.layout(0x1000, |_| Some(0x8abf08)).is_err());
        // The word of a 32-bit process is half of the eight bytes that were read.
        let narrow = lookup(&ARMHF).unwrap().layout(0x1000, |at| {
            (at == 0x1000 + 0x83_bdec).then_some(0xdead_beef_0000_0008)
        });
        assert_eq!(narrow.unwrap().tls_offset, 8);
    }
}
