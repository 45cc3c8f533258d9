//! How do bytes of perf.data become a record? The inverse of `encode`, over hostile bytes.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    format::{
        CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER, FIRST_ID, MAX_BUILD_ID, RAW_SIZE,
        SAMPLE_ID_SIZE, kind, misc,
    },
    mode,
    record::{CpuMode, Mapping, NO_UID, Record, Sample},
};

/// What is wrong with a record, and how many bytes behind its header.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub at: usize,
    pub reason: &'static str,
}

/// The time of a record in nanoseconds and the record; `None` for kinds that nobody needs.
///
/// `body` is everything behind the record's header, of a file of so many `events`.
pub fn record(
    record_kind: u32,
    record_misc: u16,
    body: &[u8],
    events: usize,
) -> Result<Option<(u64, Record)>, Wrong> {
    let mut cursor = Cursor::new(body);
    if record_kind == kind::SAMPLE {
        let sample = sample(record_misc, &mut cursor, events)?;
        return Ok(Some((sample.time, Record::Sample(sample))));
    }
    if !matches!(
        record_kind,
        kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT | kind::LOST
    ) {
        return Ok(None);
    }
    let (_, mut trailer) = cursor.split_end(SAMPLE_ID_SIZE)?;
    trailer.word()?; // pid, tid
    let time = trailer.word()?;
    let record = match record_kind {
        kind::MMAP2 => Record::Mapping(mapping(record_misc, time, &mut cursor)?),
        kind::COMM => Record::Comm {
            time,
            pid: cursor.half()?,
            tid: cursor.half()?,
            exec: record_misc & misc::COMM_EXEC != 0,
            name: String::from_utf8_lossy(cursor.string(SAMPLE_ID_SIZE)?).into_owned(),
        },
        kind::LOST => {
            cursor.word()?; // the event's id
            let count = cursor.word()?;
            Record::Lost { time, count }
        }
        task => {
            let (pid, ppid) = (cursor.half()?, cursor.half()?);
            let (tid, ptid) = (cursor.half()?, cursor.half()?);
            let time = cursor.word()?;
            if task == kind::FORK {
                Record::Fork {
                    time,
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            } else {
                Record::Exit {
                    time,
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            }
        }
    };
    Ok(Some((time, record)))
}

fn mapping(record_misc: u16, time: u64, cursor: &mut Cursor<'_>) -> Result<Mapping, Wrong> {
    let (pid, tid) = (cursor.half()?, cursor.half()?);
    let (start, len, pgoff) = (cursor.word()?, cursor.word()?, cursor.word()?);
    let [build_id_len, _, _, _] = cursor.take::<4>()?;
    let build_id = cursor.take::<MAX_BUILD_ID>()?;
    let (prot, flags) = (cursor.half()?, cursor.half()?);
    let path = PathBuf::from(Path::new(OsStr::from_bytes(cursor.string(SAMPLE_ID_SIZE)?)));
    let build_id = if record_misc & misc::MMAP_BUILD_ID == 0 {
        &[]
    } else {
        build_id.get(..usize::from(build_id_len)).ok_or(Wrong {
            at: 32,
            reason: "a build-id of more than 20 bytes",
        })?
    };
    Ok(Mapping {
        time,
        pid,
        tid,
        start,
        len,
        pgoff,
        kernel: record_misc & misc::CPUMODE_MASK == misc::KERNEL,
        mode: mode::of_record(prot, flags),
        path,
        build_id: build_id.to_vec(),
    })
}

fn sample(record_misc: u16, cursor: &mut Cursor<'_>, events: usize) -> Result<Sample, Wrong> {
    let id = cursor.word()?;
    let event = id
        .checked_sub(FIRST_ID)
        .and_then(|place| usize::try_from(place).ok())
        .filter(|&place| place < events)
        .ok_or(Wrong {
            at: 0,
            reason: "a sample of none of the events",
        })?;
    cursor.word()?; // ip: the chain starts with it
    let (pid, tid) = (cursor.half()?, cursor.half()?);
    let time = cursor.word()?;
    let original_ip = cursor.word()?;
    let cpu = cursor.half()?;
    cursor.half()?;
    let period = cursor.word()?;
    let (kernel, user) = callchain(cursor)?;
    let (uid, frame) = raw(cursor)?;
    Ok(Sample {
        event,
        time,
        pid,
        tid,
        cpu,
        period,
        original_ip,
        mode: if record_misc & misc::CPUMODE_MASK == misc::KERNEL {
            CpuMode::Kernel
        } else {
            CpuMode::User
        },
        uid,
        frame,
        kernel,
        user,
    })
}

/// The user id and the frame pointer, in recordings that have them.
fn raw(cursor: &mut Cursor<'_>) -> Result<(u32, u64), Wrong> {
    if cursor.rest.is_empty() {
        return Ok((NO_UID, 0));
    }
    let at = cursor.at;
    if cursor.half()? < RAW_SIZE {
        return Err(Wrong {
            at,
            reason: "raw data without user id and frame pointer",
        });
    }
    Ok((cursor.half()?, cursor.word()?))
}

fn callchain(cursor: &mut Cursor<'_>) -> Result<(Vec<u64>, Vec<u64>), Wrong> {
    let at = cursor.at;
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut context = None;
    for _ in 0..cursor.word()? {
        let entry = cursor.word()?;
        if entry >= CONTEXT_MAX {
            context = Some(entry);
            continue;
        }
        match context {
            Some(CONTEXT_KERNEL) => kernel.push(entry),
            Some(CONTEXT_USER) => user.push(entry),
            _ => {
                return Err(Wrong {
                    at,
                    reason: "a callchain with an address outside the kernel's and the user's context",
                });
            }
        }
    }
    Ok((kernel, user))
}

/// Bytes that are taken from the front, knowing where they are.
struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at: 0 }
    }

    fn short(&self) -> Wrong {
        Wrong {
            at: self.at,
            reason: "the record ends too early",
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| self.short())?;
        self.rest = rest;
        self.at = self.at.saturating_add(N);
        Ok(*taken)
    }

    fn word(&mut self) -> Result<u64, Wrong> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn half(&mut self) -> Result<u32, Wrong> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// The string in what is left before the last `end` bytes.
    fn string(&mut self, end: usize) -> Result<&'a [u8], Wrong> {
        let (before, _) = self.split_end(end)?;
        let len = before.iter().position(|&byte| byte == 0).ok_or(Wrong {
            at: self.at,
            reason: "a string without its end",
        })?;
        before.get(..len).ok_or_else(|| self.short())
    }

    /// What is left before the last `end` bytes, and a cursor over those.
    fn split_end(&self, end: usize) -> Result<(&'a [u8], Self), Wrong> {
        let len = self
            .rest
            .len()
            .checked_sub(end)
            .ok_or_else(|| self.short())?;
        let (before, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.short())?;
        let at = self.at.saturating_add(len);
        Ok((before, Self { rest, at }))
    }
}
