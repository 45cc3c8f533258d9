//! Writes the kernel's own samples unchanged (`raw.data`).
//!
//! The file is a perf.data with the session's events and no features; `perf script -F tid,time,ip,uregs` reads it. With `--stack full` it
//! includes the stacks. A record has the same time as the attributed sample in `perf.data` of the same overflow.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use varid_model::perf::EventAttr;
use varid_recording::{DATA_SIZE_AT, perf_data_head};

/// The file.
#[derive(Debug)]
pub struct RawFile {
    file: BufWriter<File>,
    data_start: u64,
    data_len: u64,
}

impl RawFile {
    /// Starts the file with the header and the events, without records. Each event has one kernel id per CPU.
    pub fn start(file: File, events: &[(EventAttr, Vec<u64>)]) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let head = perf_data_head(events);
        file.write_all(&head)?;
        Ok(Self {
            file,
            data_start: head.len() as u64,
            data_len: 0,
        })
    }

    /// Appends a record.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)?;
        self.data_len = self.data_len.saturating_add(record.len() as u64);
        Ok(())
    }

    /// Writes whole records to the disk, then updates the header.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(DATA_SIZE_AT))?;
        file.write_all(&self.data_len.to_le_bytes())?;
        file.seek(SeekFrom::Start(
            self.data_start.saturating_add(self.data_len),
        ))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use varid_model::perf;
    use varid_sampler::decode::{STACK_COPY_SAMPLE, regs_mask};
    use varid_sampler::event::{Event, Rate};

    /// Makes a sample in the kernel's format for `attr`. Registers are 0x100, 0x101 and so on, in bit order.
    fn sample(tid: u32, time: u64, ip: u64) -> Vec<u8> {
        let mut words = vec![7, ip, u64::from(tid) << 32 | 40, time, 0, 1000, 1, ip, 2];
        words.extend((0..u64::from(regs_mask().count_ones())).map(|reg| 0x100 + reg));
        let size = (8 + 8 * words.len()) as u16;
        let mut bytes = perf::PERF_RECORD_SAMPLE.to_le_bytes().to_vec();
        bytes.extend(perf::PERF_RECORD_MISC_USER.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn perf_reads_what_was_flushed() {
        let folder = std::env::temp_dir().join(format!("varid-raw-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("raw.data");
        let clock = Event::cpu_clock(Rate::Period(1000));
        let mut attr = clock.attr(&clock.encodings[0]);
        attr.sample_type = STACK_COPY_SAMPLE & !u64::from(perf::PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = regs_mask();
        let mut file =
            RawFile::start(File::create_new(&path).unwrap(), &[(attr, vec![7])]).unwrap();
        let perf = || {
            let fields = ["-f", "-F", "tid,time,ip,uregs", "--ns", "-i"];
            Command::new("perf")
                .arg("script")
                .args(fields)
                .arg(&path)
                .output()
        };
        let mut read = Vec::new();
        for (tid, time, ip) in [(41, 5_000_000_001, 0x401234), (42, 5_000_000_002, 0x405678)] {
            file.push(&sample(tid, time, ip)).unwrap();
            file.flush().unwrap();
            match perf() {
                Ok(output) => read.push(String::from_utf8_lossy(&output.stdout).into_owned()),
                Err(error) => eprintln!("not compared with perf: {error}"),
            }
        }
        // Data after the last flush is ignored.
        file.push(&sample(43, 5_000_000_003, 0x409999)).unwrap();
        drop(file);
        read.extend(perf().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()));
        std::fs::remove_dir_all(&folder).unwrap();
        let Some(last) = read.last() else { return };
        for wanted in [
            "41",
            "5.000000001:",
            "401234",
            "42",
            "5.000000002:",
            "405678",
        ] {
            assert!(
                last.split_whitespace().any(|word| word == wanted),
                "{wanted} in {last}"
            );
        }
        for reg in 0..regs_mask().count_ones() {
            assert!(last.contains(&format!(":0x{:x}", 0x100 + reg)), "{last}");
        }
        assert!(!last.contains("409999"), "{last}");
        assert!(
            read[0].contains("401234") && !read[0].contains("405678"),
            "{}",
            read[0]
        );
    }
}
