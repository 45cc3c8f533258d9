//! Sends packets, with or without a file, between a session and its helper.

use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Creates a socket pair that preserves packets.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?)
}

/// Sends a packet, with a file if there is one.
pub(super) fn send(socket: &OwnedFd, packet: &[u8], file: Option<&OwnedFd>) -> io::Result<()> {
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

/// Receives a packet and the descriptor that came with it. A length of 0 means that the other end is closed.
pub(super) fn receive(
    socket: &OwnedFd,
    packet: &mut [u8],
) -> nix::Result<(usize, Option<OwnedFd>)> {
    let mut space = nix::cmsg_space!([i32; 1]);
    let mut slices = [IoSliceMut::new(packet)];
    let received = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut file = None;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(files) = message {
            for received in files {
                // SAFETY: the kernel has just created the descriptor for this process, and nothing else owns it.
                file = Some(unsafe { OwnedFd::from_raw_fd(received) });
            }
        }
    }
    Ok((received.bytes, file))
}
