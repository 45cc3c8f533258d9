//! Serves requests as a helper.

use super::answer::AnswerWriter;
use super::request::{MAX_REQUEST, PART, Request};
use super::socket::receive;
use nix::sys::signal::Signal;
use std::io;
use std::os::fd::AsFd;

/// Serves the requests on standard input, one after the other, until the other end is closed.
pub(super) fn serve() -> io::Result<()> {
    // Otherwise a blocked helper would outlive its session.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // Both buffers are used for every request.
    let mut bytes = vec![0; MAX_REQUEST];
    let mut packet = Vec::with_capacity(PART.saturating_add(1));
    loop {
        let (len, inside) = receive(&socket, &mut bytes)?;
        let Some(request) = bytes.get(..len).filter(|request| !request.is_empty()) else {
            return Ok(());
        };
        let request = Request::decode(request).ok_or(io::ErrorKind::InvalidData)?;
        let mut answer = AnswerWriter::new(&socket, &mut packet);
        let outcome = request.carry_out(inside.as_ref(), &mut |part| answer.push(part));
        answer.finish(outcome)?;
    }
}
