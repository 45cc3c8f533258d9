//! Writes varid's orders to a VM's control page, under a lock.
//!
//! The page is a file of the VM. varid writes it with pwrite(2) and never maps it. The orders hold as long as a process has the write lock on
//! the file. The kernel releases the lock when that process ends. The VM tests the lock a few times a second, and without it goes back to its
//! default tactic. The lock also excludes a second controlling process.

use std::fs::File;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_WRLCK, SEEK_SET, flock};

use crate::abi::{self, CONTROL_LOG, CONTROL_MAGIC, CONTROL_VERSION, FILTER_SIZE, FILTERS, VmFile};
use crate::bytes::Fields;
use crate::{TunnelError, file};
use varid_model::Pid;

/// An order for a VM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// `abi::TACTIC_*`.
    pub tactic: u32,
    /// The session that gives the order, never 0. An order of another session resets the counts.
    pub session: u64,
    /// Prefixes of `package.Class.method` of the methods that are counted; empty: all are.
    pub filters: Vec<String>,
    /// Absolute path of the log of events, to which the VM appends "." and its process id; empty: no log.
    pub log: String,
}

/// The control page of a VM, locked by this process.
#[derive(Debug)]
pub struct ControlPage {
    file: File,
    pid: Pid,
    generation: u32,
}

impl ControlPage {
    /// Opens and locks the control page of a process that its tunnel names.
    pub fn take(pid: Pid, page: &VmFile) -> Result<Self, TunnelError> {
        Self::of(file::open(pid, page, file::Kind::Control)?, pid, page)
    }

    /// Locks the control page of a process, in a file that was opened by [`file::open`].
    pub fn of(file: File, pid: Pid, page: &VmFile) -> Result<Self, TunnelError> {
        if page.size != size_of::<abi::Control>() as u64 {
            return Err(failed(pid, format!("{} bytes", page.size)));
        }
        lock(&file, pid)?;
        let mut head = [0; offset_of!(abi::Control, log)];
        file.read_exact_at(&mut head, 0)
            .map_err(|error| failed(pid, error.to_string()))?;
        let mut fields = Fields::new(&head);
        let magic: [u8; 8] = fields.take();
        let (version, size, generation) = (fields.u32(), fields.u32(), fields.u32());
        if magic != CONTROL_MAGIC || version != CONTROL_VERSION || u64::from(size) != page.size {
            return Err(failed(
                pid,
                format!("{magic:02x?}, version {version}, {size} bytes"),
            ));
        }
        Ok(Self {
            file,
            pid,
            generation,
        })
    }

    /// Writes an order, which replaces the last one.
    pub fn set(&mut self, order: &Order) -> Result<(), TunnelError> {
        let body = encode(order)?;
        let at = |offset: usize, bytes: &[u8]| {
            self.file
                .write_all_at(bytes, offset as u64)
                .map_err(|error| failed(self.pid, error.to_string()))
        };
        // The generation is odd if the previous writer died while it was writing.
        let odd = self.generation | 1;
        let even = odd.wrapping_add(1);
        at(offset_of!(abi::Control, generation), &odd.to_le_bytes())?;
        at(offset_of!(abi::Control, tactic), &body)?;
        at(offset_of!(abi::Control, generation), &even.to_le_bytes())?;
        self.generation = even;
        Ok(())
    }
}

fn failed(pid: Pid, reason: String) -> TunnelError {
    TunnelError::File {
        pid,
        name: abi::CONTROL_NAME,
        reason,
    }
}

/// Takes the write lock. It belongs to the open file description, so that two sessions of one varid also exclude each other. Before Linux
/// 3.15, locks belong to the process.
fn lock(file: &File, pid: Pid) -> Result<(), TunnelError> {
    let whole = flock {
        l_type: F_WRLCK as _,
        l_whence: SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let try_as = |argument| fcntl(file, argument);
    let locked = match try_as(FcntlArg::F_OFD_SETLK(&whole)) {
        Err(Errno::EINVAL) => try_as(FcntlArg::F_SETLK(&whole)),
        other => other,
    };
    match locked {
        Ok(_) => Ok(()),
        Err(Errno::EAGAIN | Errno::EACCES) => Err(TunnelError::Controlled { pid }),
        Err(errno) => Err(failed(pid, errno.desc().to_owned())),
    }
}

/// Encodes the page from `tactic` on.
fn encode(order: &Order) -> Result<Vec<u8>, TunnelError> {
    let too_much = |what, most| Err(TunnelError::Order { what, most });
    if order.filters.len() > FILTERS {
        return too_much("patterns of methods", FILTERS);
    }
    let is_text = |text: &str, size: usize| text.len() < size && !text.contains('\0');
    if !order
        .filters
        .iter()
        .all(|filter| !filter.is_empty() && is_text(filter, FILTER_SIZE))
    {
        return too_much("bytes of a pattern of methods", FILTER_SIZE - 1);
    }
    if !is_text(&order.log, CONTROL_LOG) {
        return too_much("bytes of the log's path", CONTROL_LOG - 1);
    }
    let mut body = Vec::with_capacity(size_of::<abi::Control>());
    body.extend_from_slice(&order.tactic.to_le_bytes());
    body.extend_from_slice(&order.session.to_le_bytes());
    body.extend_from_slice(&(order.filters.len() as u32).to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    put_text(&mut body, &order.log, CONTROL_LOG);
    for index in 0..FILTERS {
        let filter = order.filters.get(index).map_or("", String::as_str);
        put_text(&mut body, filter, FILTER_SIZE);
    }
    Ok(body)
}

/// Appends text, padded with zeros to `size`.
fn put_text(body: &mut Vec<u8>, text: &str, size: usize) {
    body.extend_from_slice(text.as_bytes());
    body.resize(
        body.len().saturating_add(size.saturating_sub(text.len())),
        0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_fills_the_page_as_the_abi_says() {
        let order = Order {
            tactic: abi::TACTIC_METHOD_INVOKE,
            session: 0x1122_3344_5566_7788,
            filters: vec!["org.example.".to_owned(), "a.B.c".to_owned()],
            log: "/run/log".to_owned(),
        };
        let body = encode(&order).unwrap();
        let start = offset_of!(abi::Control, tactic);
        assert_eq!(start + body.len(), size_of::<abi::Control>());
        let at = |offset: usize, text: &[u8]| body[offset - start..].starts_with(text);
        assert!(at(
            offset_of!(abi::Control, session),
            &order.session.to_le_bytes()
        ));
        assert!(at(offset_of!(abi::Control, filter_count), &[2, 0, 0, 0]));
        assert!(at(offset_of!(abi::Control, log), b"/run/log\0"));
        let filters = offset_of!(abi::Control, filters);
        assert!(at(filters, b"org.example.\0"));
        assert!(at(filters + FILTER_SIZE, b"a.B.c\0"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |order: Order| matches!(encode(&order), Err(TunnelError::Order { .. }));
        let with = |filters: Vec<String>| Order {
            filters,
            ..Order::default()
        };
        assert!(refused(with(vec!["a".to_owned(); FILTERS + 1])));
        assert!(!refused(with(vec!["a".to_owned(); FILTERS])));
        assert!(refused(with(vec!["a".repeat(FILTER_SIZE)])));
        assert!(refused(with(vec![String::new()])));
        assert!(refused(with(vec!["a\0b".to_owned()])));
        assert!(refused(Order {
            log: "/".repeat(CONTROL_LOG),
            ..Order::default()
        }));
    }
}
