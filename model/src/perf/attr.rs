//! The attributes with which an event is opened.

use super::abi::ATTR_SIZE;

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`). Older kernels accept it if the fields that they do not know are zero.
/// No later fields are used. perf_event_open(2) describes each field.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventAttr {
    /// `PERF_TYPE_*`, or the number of a PMU.
    pub type_: u32,
    /// Size of this structure in bytes.
    pub size: u32,
    /// The event, depending on its type.
    pub config: u64,
    /// The period, or the frequency if `freq` is set.
    pub sample_period: u64,
    /// `PERF_SAMPLE_*`.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub read_format: u64,
    /// The one-bit fields: see the setters.
    pub flags: u64,
    /// In bytes if `watermark` is set, else in events.
    pub wakeup_watermark: u32,
    /// The type of a breakpoint.
    pub bp_type: u32,
    /// More of the event's configuration.
    pub config1: u64,
    /// Still more of the event's configuration.
    pub config2: u64,
    /// For branch stacks.
    pub branch_sample_type: u64,
    /// The registers to record, as a bit mask.
    pub sample_regs_user: u64,
    /// Size of the stack copy in bytes.
    pub sample_stack_user: u32,
    /// The clock of the samples' times, if `use_clockid` is set.
    pub clockid: i32,
    /// The registers at the interrupt to record.
    pub sample_regs_intr: u64,
    /// For AUX areas.
    pub aux_watermark: u32,
    /// The most frames of a callchain. 0: the system's limit.
    pub sample_max_stack: u16,
    /// Must be zero.
    pub reserved_2: u16,
}

/// The attribute's one-bit fields by their positions, on a little-endian machine.
macro_rules! flags {
    ($($set:ident $name:ident $bit:literal)*) => {
        impl EventAttr {
            $(
                #[doc = concat!("Sets or clears `", stringify!($name), "`.")]
                pub fn $set(&mut self, on: bool) {
                    self.flags = self.flags & !(1 << $bit) | u64::from(on) << $bit;
                }
            )*
        }
        #[cfg(test)]
        pub(super) const FLAGS: &[(&str, u64)] = &[$((stringify!($name), 1 << $bit)),*];
    };
}

flags! {
    set_disabled disabled 0
    set_inherit inherit 1
    set_pinned pinned 2
    set_exclusive exclusive 3
    set_exclude_user exclude_user 4
    set_exclude_kernel exclude_kernel 5
    set_exclude_hv exclude_hv 6
    set_exclude_idle exclude_idle 7
    set_mmap mmap 8
    set_comm comm 9
    set_freq freq 10
    set_task task 13
    set_watermark watermark 14
    set_mmap_data mmap_data 17
    set_sample_id_all sample_id_all 18
    set_exclude_host exclude_host 19
    set_exclude_guest exclude_guest 20
    set_exclude_callchain_user exclude_callchain_user 22
    set_mmap2 mmap2 23
    set_comm_exec comm_exec 24
    set_use_clockid use_clockid 25
    set_build_id build_id 34
}

impl Default for EventAttr {
    /// An attribute without an event. Only its size is set.
    fn default() -> Self {
        Self {
            type_: 0,
            size: ATTR_SIZE as u32,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: 0,
            wakeup_watermark: 0,
            bp_type: 0,
            config1: 0,
            config2: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clockid: 0,
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            reserved_2: 0,
        }
    }
}

impl EventAttr {
    const PRECISE_IP: u64 = 3 << 15;

    /// Sets `precise_ip`: 0 (any skid) to 3 (no skid).
    pub fn set_precise_ip(&mut self, precise: u8) {
        self.flags = self.flags & !Self::PRECISE_IP | u64::from(precise.min(3)) << 15;
    }

    /// `precise_ip`.
    #[must_use]
    pub fn precise_ip(&self) -> u8 {
        (self.flags >> 15 & 3) as u8
    }

    /// Its bytes in the format of the kernel and of perf.data, on a little-endian machine.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ATTR_SIZE] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            pair(self.type_, self.size),
            self.config,
            self.sample_period,
            self.sample_type,
            self.read_format,
            self.flags,
            pair(self.wakeup_watermark, self.bp_type),
            self.config1,
            self.config2,
            self.branch_sample_type,
            self.sample_regs_user,
            pair(self.sample_stack_user, self.clockid.cast_unsigned()),
            self.sample_regs_intr,
            pair(
                self.aux_watermark,
                u32::from(self.sample_max_stack) | u32::from(self.reserved_2) << 16,
            ),
        ];
        let mut bytes = [0; ATTR_SIZE];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn an_attribute_s_bytes_are_those_of_its_fields() {
        let attr = EventAttr {
            type_: 1,
            config: 2,
            clockid: -3,
            sample_max_stack: 4,
            reserved_2: 5,
            ..EventAttr::default()
        };
        let bytes = attr.to_bytes();
        let at = |offset: usize| u32::from_le_bytes(bytes[offset..][..4].try_into().unwrap());
        assert_eq!(at(offset_of!(EventAttr, type_)), 1);
        assert_eq!(at(offset_of!(EventAttr, size)), 112);
        assert_eq!(at(offset_of!(EventAttr, config)), 2);
        assert_eq!(at(offset_of!(EventAttr, clockid)), (-3i32).cast_unsigned());
        assert_eq!(at(offset_of!(EventAttr, sample_max_stack)), 5 << 16 | 4);
    }
}
