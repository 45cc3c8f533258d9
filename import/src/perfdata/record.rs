//! Parses records other than samples.

use varid_model::perf::{
    Fields, Malformed, PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST,
    PERF_RECORD_LOST_SAMPLES, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_CPUMODE_MASK,
    PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_MMAP_DATA,
    PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_THROTTLE, file::MISC_LOST_SAMPLES_BPF,
};
use varid_model::{Device, Pid, Tid};
use varid_recording::RecordedFile;

use super::layout::RecordLayout;

/// The largest build-id in a mapping record, in bytes.
const MAX_BUILD_ID: usize = 20;

/// A thread of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceTask {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
}

impl SourceTask {
    /// The thread with these ids.
    pub(super) const fn new(pid: u32, tid: u32) -> Self {
        Self {
            pid: Pid::new(pid),
            tid: Tid::new(tid),
        }
    }

    /// Parses a process id and a thread id.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (pid, tid) = fields.pair()?;
        Ok(Self::new(pid, tid))
    }
}

/// A mapping in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceMapping {
    /// The process, and the thread that mapped it.
    pub task: SourceTask,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub len: u64,
    /// Offset of `start` in the file.
    pub pgoff: u64,
    /// Protection and flags as in mmap(2), if the record has them.
    pub access: Option<(u32, u32)>,
    /// It is a mapping of the kernel.
    pub kernel: bool,
    /// The file's device and inode, if the record has them.
    pub file: Option<(Device, u64)>,
    /// The file's path.
    pub path: Vec<u8>,
    /// Its build-id. Empty if the record has none.
    pub build_id: Vec<u8>,
}

impl SourceMapping {
    /// The identity of its file, if the record has it.
    pub fn recorded_file(&self) -> Option<RecordedFile> {
        let (device, inode) = self.file?;
        let path = String::from_utf8_lossy(&self.path).into_owned();
        RecordedFile::of_mapping(path, device, inode)
    }
}

/// A record other than a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceRecord {
    /// A process mapped a file or memory.
    Mapping(SourceMapping),
    /// A thread got a name.
    Comm {
        /// The process and the thread.
        task: SourceTask,
        /// The name was set by an exec.
        exec: bool,
        /// The name.
        name: Vec<u8>,
    },
    /// A process or thread was created.
    Fork {
        /// The process and its thread.
        task: SourceTask,
        /// Its parent.
        parent: SourceTask,
    },
    /// A process or thread ended.
    Exit {
        /// The process and its thread.
        task: SourceTask,
        /// Its parent.
        parent: SourceTask,
    },
    /// There was no room for this many records in a ring buffer.
    Lost(u64),
    /// The processor's buffer held this many samples whose events could not be distinguished.
    Mixed(u64),
    /// `LOST_SAMPLES`: the event's total. [`Lost`](Self::Lost) records report the same losses, except the last ones.
    LostInAll(u64),
    /// `perf record --filter` dropped this many samples.
    FilteredOut(u64),
    /// The event was stopped for a while because it occurred too often.
    Throttle,
}

impl SourceRecord {
    /// Parses the body of a record of the kernel. Returns it with its time, or None for kinds that do not matter for samples.
    ///
    /// # Errors
    ///
    /// The record violates the kernel's ABI.
    pub fn parse(
        layout: RecordLayout,
        kind: u32,
        misc: u16,
        body: &[u8],
    ) -> Result<Option<(Option<u64>, Self)>, Malformed> {
        if !is_parsed(kind) {
            return Ok(None);
        }
        let (mut fields, id) = layout.split(body)?;
        let mut time = id.time;
        let record = match kind {
            PERF_RECORD_MMAP | PERF_RECORD_MMAP2 => {
                Self::Mapping(mapping(kind, misc, &mut fields)?)
            }
            PERF_RECORD_COMM => Self::Comm {
                task: SourceTask::parse(&mut fields)?,
                exec: misc & PERF_RECORD_MISC_COMM_EXEC != 0,
                name: fields.text()?.to_vec(),
            },
            PERF_RECORD_FORK | PERF_RECORD_EXIT => {
                let ((pid, ppid), (tid, ptid)) = (fields.pair()?, fields.pair()?);
                let own = fields.u64()?;
                time = time.or(Some(own));
                let (task, parent) = (SourceTask::new(pid, tid), SourceTask::new(ppid, ptid));
                match kind {
                    PERF_RECORD_FORK => Self::Fork { task, parent },
                    _ => Self::Exit { task, parent },
                }
            }
            PERF_RECORD_LOST => {
                fields.u64()?; // the event's id
                Self::Lost(fields.u64()?)
            }
            PERF_RECORD_LOST_SAMPLES => {
                let count = fields.u64()?;
                // perf writes such records when it ends, with a time of zero: `record__read_lost_samples` of its builtin-record.c.
                let of_recorder = layout.reads_lost() && time.unwrap_or(0) == 0;
                if misc & MISC_LOST_SAMPLES_BPF != 0 {
                    time = None;
                    Self::FilteredOut(count)
                } else if of_recorder {
                    time = None;
                    Self::LostInAll(count)
                } else {
                    Self::Mixed(count)
                }
            }
            _ => Self::Throttle,
        };
        Ok(Some((time, record)))
    }
}

/// Returns true for the kinds of records that matter for samples.
const fn is_parsed(kind: u32) -> bool {
    matches!(
        kind,
        PERF_RECORD_MMAP
            | PERF_RECORD_MMAP2
            | PERF_RECORD_COMM
            | PERF_RECORD_FORK
            | PERF_RECORD_EXIT
            | PERF_RECORD_LOST
            | PERF_RECORD_LOST_SAMPLES
            | PERF_RECORD_THROTTLE
    )
}

fn mapping(kind: u32, misc: u16, fields: &mut Fields<'_>) -> Result<SourceMapping, Malformed> {
    let task = SourceTask::parse(fields)?;
    let (start, len, pgoff) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut build_id = Vec::new();
    let (mut access, mut file) = (None, None);
    if kind == PERF_RECORD_MMAP2 {
        if misc & PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
            let long = fields.malformed("a build-id of more than 20 bytes");
            let [len, _, _, _] = fields.array()?;
            let id = fields.bytes(MAX_BUILD_ID)?;
            build_id = id.get(..usize::from(len)).ok_or(long)?.to_vec();
        } else {
            let (major, minor) = fields.pair()?;
            file = Some((Device { major, minor }, fields.u64()?));
            fields.u64()?; // the inode's generation
        }
        access = Some(fields.pair()?);
    } else if misc & PERF_RECORD_MISC_MMAP_DATA != 0 {
        access = Some((1, 2));
    }
    Ok(SourceMapping {
        file,
        task,
        start,
        len,
        pgoff,
        access,
        kernel: misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL,
        path: fields.text()?.to_vec(),
        build_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_sums_of_losses_and_filtered_samples_are_distinguished() {
        let layout = |read_format| RecordLayout {
            // TIME, which is at the end of records other than samples.
            sample_type: 1 << 2,
            read_format,
            has_id: true,
            ..RecordLayout::default()
        };
        let (plain, reads_lost) = (layout(0), layout(1 << 4));
        let samples = PERF_RECORD_LOST_SAMPLES;
        for (layout, kind, misc, words, expected) in [
            (
                reads_lost,
                PERF_RECORD_LOST,
                0,
                &[77, 5, 99][..],
                (Some(99), SourceRecord::Lost(5)),
            ),
            (
                reads_lost,
                samples,
                0,
                &[5, 99],
                (Some(99), SourceRecord::Mixed(5)),
            ),
            (
                reads_lost,
                samples,
                0,
                &[5, 0],
                (None, SourceRecord::LostInAll(5)),
            ),
            (
                reads_lost,
                samples,
                1 << 15,
                &[5, 0],
                (None, SourceRecord::FilteredOut(5)),
            ),
            (
                plain,
                samples,
                0,
                &[5, 0],
                (Some(0), SourceRecord::Mixed(5)),
            ),
        ] {
            let words: &[u64] = words;
            let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let found = SourceRecord::parse(layout, kind, misc, &body).unwrap();
            assert_eq!(found, Some(expected), "{kind} {words:?}");
        }
    }
}
