//! How does a helper serve requests?

use super::receive;
use super::request::{PART, Request};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A part of an answer follows.
pub(super) const MORE: u8 = 0;
/// The answer is complete; a file comes with it if the request was for one.
pub(super) const DONE: u8 = 1;
/// The kernel's error follows, as a number.
pub(super) const ERRNO: u8 = 2;
/// Another error follows, as text.
const REASON: u8 = 3;
/// The longest request is a path's.
const MAX_REQUEST: usize = 1 << 13;

/// Serves the requests that come over standard input, one after the other, until the other end is closed.
pub(super) fn serve() -> io::Result<()> {
    // A helper that is blocked would outlive its session.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let mut bytes = [0; MAX_REQUEST];
    loop {
        let (len, inside) = receive(&socket, &mut bytes)?;
        let Some(request) = bytes.get(..len).filter(|request| !request.is_empty()) else {
            return Ok(());
        };
        let request = Request::decode(request).ok_or(io::ErrorKind::InvalidData)?;
        let answer = request.carry_out(inside.as_ref(), &mut |part| {
            let packet = [&[MORE][..], part].concat();
            debug_assert!(part.len() <= PART);
            send(&socket, &packet, None)
        });
        match answer {
            Ok(file) => send(&socket, &[DONE], file.as_ref())?,
            Err(error) => match error.raw_os_error() {
                Some(code) => {
                    let packet = [&[ERRNO][..], &code.to_ne_bytes()].concat();
                    send(&socket, &packet, None)?;
                }
                None => {
                    let packet = [&[REASON][..], error.to_string().as_bytes()].concat();
                    send(&socket, &packet, None)?;
                }
            },
        }
    }
}

fn send(socket: &OwnedFd, packet: &[u8], file: Option<&File>) -> io::Result<()> {
    let descriptor = file.map(|file| [file.as_raw_fd()]);
    let handed: Vec<_> = descriptor
        .iter()
        .map(|file| ControlMessage::ScmRights(file))
        .collect();
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(packet)],
        &handed,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}
