//! Parses records of the kernel other than samples.
//!
//! They are the same in a ring buffer and in perf.data. Sources: linux/perf_event.h, `enum perf_event_type`, and perf_event_open(2).

use super::abi::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST,
    PERF_RECORD_LOST_SAMPLES, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_MMAP_BUILD_ID,
    PERF_RECORD_MMAP2, PERF_RECORD_THROTTLE,
};
use super::fields::{Fields, Malformed};
use crate::{Address, MonotonicNs, Pid, Tid};

/// `struct perf_event_header`, the beginning of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// Size of the record in bytes, including this header.
    pub size: u16,
}

impl Header {
    /// Parses a header.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; super::abi::RECORD_HEADER]) -> Self {
        let [k0, k1, k2, k3, m0, m1, s0, s1] = bytes;
        Self {
            kind: u32::from_le_bytes([k0, k1, k2, k3]),
            misc: u16::from_le_bytes([m0, m1]),
            size: u16::from_le_bytes([s0, s1]),
        }
    }
}

/// Size in bytes of the fields that `sample_id_all` appends to a record: pid, tid, time, cpu, a reserved word, id.
const SAMPLE_ID: usize = 32;
/// The offset of the time in them.
const SAMPLE_ID_TIME: usize = 8;
/// The largest build-id in a mapping record, in bytes.
const MAX_BUILD_ID: usize = 20;

/// A record other than a sample, of an event with `sample_id_all` and the fields TID, TIME, CPU and IDENTIFIER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelRecord<'a> {
    /// A process mapped a file or memory.
    Mmap2(Mmap2Record<'a>),
    /// A thread got a name.
    Comm(CommRecord<'a>),
    /// A process or thread was created.
    Fork(TaskRecord),
    /// A process or thread ended.
    Exit(TaskRecord),
    /// There was no room for this many records.
    Lost(u64),
    /// The event was stopped for a while because it occurred too often.
    Throttle,
}

/// `PERF_RECORD_MMAP2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mmap2Record<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread that mapped it.
    pub tid: Tid,
    /// First address.
    pub start: Address,
    /// Size in bytes.
    pub len: u64,
    /// Offset of `start` in the file.
    pub pgoff: u64,
    /// The identity of the file.
    pub file: MappedFile<'a>,
    /// Protection, as in mmap(2).
    pub prot: u32,
    /// Flags, as in mmap(2).
    pub flags: u32,
    /// The file's path, or a name in brackets or `//anon`.
    pub path: &'a [u8],
}

/// The identity of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedFile<'a> {
    /// Its device and inode.
    Inode {
        /// The device's major number.
        major: u32,
        /// The device's minor number.
        minor: u32,
        /// The inode's number.
        inode: u64,
    },
    /// Its GNU build-id, at most 20 bytes (`PERF_RECORD_MISC_MMAP_BUILD_ID`).
    BuildId(&'a [u8]),
}

/// `PERF_RECORD_COMM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommRecord<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The name was set by an exec (`PERF_RECORD_MISC_COMM_EXEC`).
    pub exec: bool,
    /// The name.
    pub name: &'a [u8],
}

/// `PERF_RECORD_FORK` and `PERF_RECORD_EXIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRecord {
    /// The process that was created or ended.
    pub pid: Pid,
    /// Its parent process.
    pub ppid: Pid,
    /// The thread that was created or ended.
    pub tid: Tid,
    /// Its parent thread.
    pub ptid: Tid,
    /// The time.
    pub time: MonotonicNs,
}

impl<'a> KernelRecord<'a> {
    /// Parses a record's body, which is everything after its header. Returns it with the time at its end. `None` if its kind has no variant
    /// here.
    ///
    /// # Errors
    ///
    /// The record violates the kernel's ABI.
    pub fn parse(
        kind: u32,
        misc: u16,
        body: &'a [u8],
    ) -> Result<Option<(MonotonicNs, Self)>, Malformed> {
        if !matches!(
            kind,
            PERF_RECORD_MMAP2
                | PERF_RECORD_COMM
                | PERF_RECORD_FORK
                | PERF_RECORD_EXIT
                | PERF_RECORD_LOST
                | PERF_RECORD_LOST_SAMPLES
                | PERF_RECORD_THROTTLE
        ) {
            return Ok(None);
        }
        let (mut fields, mut id) = Fields::new(body).split_end(SAMPLE_ID)?;
        id.bytes(SAMPLE_ID_TIME)?;
        let time = MonotonicNs::new(id.u64()?);
        let record = match kind {
            PERF_RECORD_MMAP2 => Self::Mmap2(mmap2(misc, &mut fields)?),
            PERF_RECORD_COMM => Self::Comm(CommRecord {
                pid: Pid::new(fields.u32()?),
                tid: Tid::new(fields.u32()?),
                exec: misc & PERF_RECORD_MISC_COMM_EXEC != 0,
                name: fields.text()?,
            }),
            PERF_RECORD_FORK => Self::Fork(task(&mut fields)?),
            PERF_RECORD_EXIT => Self::Exit(task(&mut fields)?),
            PERF_RECORD_LOST => {
                fields.u64()?; // the event's id
                Self::Lost(fields.u64()?)
            }
            PERF_RECORD_LOST_SAMPLES => Self::Lost(fields.u64()?),
            _ => Self::Throttle,
        };
        Ok(Some((time, record)))
    }
}

fn mmap2<'a>(misc: u16, fields: &mut Fields<'a>) -> Result<Mmap2Record<'a>, Malformed> {
    let (pid, tid) = fields.pair()?;
    let (start, len, pgoff) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let file = if misc & PERF_RECORD_MISC_MMAP_BUILD_ID == 0 {
        let (major, minor) = fields.pair()?;
        let inode = fields.u64()?;
        fields.u64()?; // the inode's generation
        MappedFile::Inode {
            major,
            minor,
            inode,
        }
    } else {
        let long = fields.malformed("a build-id of more than 20 bytes");
        let [len, _, _, _] = fields.array()?;
        let build_id = fields.bytes(MAX_BUILD_ID)?;
        MappedFile::BuildId(build_id.get(..usize::from(len)).ok_or(long)?)
    };
    let (prot, flags) = fields.pair()?;
    Ok(Mmap2Record {
        pid: Pid::new(pid),
        tid: Tid::new(tid),
        start: Address::new(start),
        len,
        pgoff,
        file,
        prot,
        flags,
        path: fields.text()?,
    })
}

fn task(fields: &mut Fields<'_>) -> Result<TaskRecord, Malformed> {
    let ((pid, ppid), (tid, ptid)) = (fields.pair()?, fields.pair()?);
    Ok(TaskRecord {
        pid: Pid::new(pid),
        ppid: Pid::new(ppid),
        tid: Tid::new(tid),
        ptid: Tid::new(ptid),
        time: MonotonicNs::new(fields.u64()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// pid 10, tid 11, time 99, and so on.
    const ID: [u64; 4] = [11 << 32 | 10, 99, 0, 1];

    #[test]
    fn a_record_s_time_is_that_at_its_end() {
        let task = [20 | 10 << 32, 21 | 11 << 32, 98];
        let body = words(&[&task[..], &ID[..]].concat());
        let (time, record) = KernelRecord::parse(PERF_RECORD_FORK, 0, &body)
            .unwrap()
            .unwrap();
        let expected = TaskRecord {
            pid: Pid::new(20),
            ppid: Pid::new(10),
            tid: Tid::new(21),
            ptid: Tid::new(11),
            time: MonotonicNs::new(98),
        };
        assert_eq!(
            (time, record),
            (MonotonicNs::new(99), KernelRecord::Fork(expected))
        );
        for len in 0..body.len() {
            let cut = KernelRecord::parse(PERF_RECORD_EXIT, 0, &body[..len]).unwrap_err();
            assert!(cut.at <= len, "{cut}");
        }
    }

    #[test]
    fn a_mapping_has_an_inode_or_a_build_id_of_at_most_20_bytes() {
        let fixed = [1, 0x7000, 0x2000, 0x1000];
        let path = u64::from_le_bytes(*b"/a\0\0\0\0\0\0");
        let record = |misc, file: [u64; 3]| {
            let body = words(&[&fixed[..], &file, &[2 << 32 | 5, path], &ID[..]].concat());
            KernelRecord::parse(PERF_RECORD_MMAP2, misc, &body).map(|parsed| {
                match parsed.unwrap().1 {
                    KernelRecord::Mmap2(Mmap2Record {
                        path: b"/a",
                        file: MappedFile::BuildId(id),
                        ..
                    }) => Some(id.to_vec()),
                    KernelRecord::Mmap2(Mmap2Record { file, .. }) => {
                        let (major, minor, inode) = (8, 1, 7);
                        assert_eq!(
                            file,
                            MappedFile::Inode {
                                major,
                                minor,
                                inode
                            }
                        );
                        None
                    }
                    other => panic!("{other:?}"),
                }
            })
        };
        assert_eq!(record(0, [1 << 32 | 8, 7, 0]), Ok(None));
        let build_id = PERF_RECORD_MISC_MMAP_BUILD_ID;
        assert_eq!(
            record(build_id, [0x0201 << 32 | 2, 0, 0]),
            Ok(Some(vec![1, 2]))
        );
        let long = record(build_id, [21, 0, 0]).unwrap_err();
        assert_eq!(
            (long.at, long.reason),
            (32, "a build-id of more than 20 bytes")
        );
    }

    #[test]
    fn a_name_ends_before_the_fields_of_sample_id_all() {
        let body = words(&[&[1, u64::MAX][..], &ID].concat());
        let endless = KernelRecord::parse(PERF_RECORD_COMM, 0, &body).unwrap_err();
        assert_eq!(
            (endless.at, endless.reason),
            (8, "a string without its end")
        );
    }

    #[test]
    fn kinds_without_a_variant_are_no_error() {
        assert_eq!(KernelRecord::parse(1_000, 0, &[]), Ok(None));
    }
}
