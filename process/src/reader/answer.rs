//! How answers are sent over the socket.
//!
//! An answer consists of packets. The first byte of each is its kind. The last packet has the end of the bytes, and the file if one was
//! opened, so a short answer is one packet.

use super::request::PART;
use super::socket::send;
use std::io;
use std::os::fd::OwnedFd;

/// A part of an answer; more follows.
pub(super) const MORE: u8 = 0;
/// The last part of an answer, which may be empty.
pub(super) const DONE: u8 = 1;
/// The kernel's error follows, as a number.
pub(super) const ERRNO: u8 = 2;
/// Another error follows, as text.
const REASON: u8 = 3;

/// Sends an answer. Each packet is sent once it is full.
#[derive(Debug)]
pub(super) struct AnswerWriter<'a> {
    socket: &'a OwnedFd,
    /// The kind of a packet, and a part of the answer.
    packet: &'a mut Vec<u8>,
}

impl<'a> AnswerWriter<'a> {
    /// Begins an answer. `packet`: memory for packets.
    pub(super) fn new(socket: &'a OwnedFd, packet: &'a mut Vec<u8>) -> Self {
        packet.clear();
        packet.push(MORE);
        Self { socket, packet }
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.packet.len() > PART {
                send(self.socket, self.packet, None)?;
                self.packet.truncate(1);
            }
            let room = PART.saturating_add(1).saturating_sub(self.packet.len());
            let (here, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            self.packet.extend_from_slice(here);
            rest = behind;
        }
        Ok(())
    }

    /// Sends the rest of the answer, or the reason why there is none.
    pub(super) fn finish(self, outcome: io::Result<Option<OwnedFd>>) -> io::Result<()> {
        let error = match outcome {
            Ok(file) => {
                if let Some(kind) = self.packet.first_mut() {
                    *kind = DONE;
                }
                return send(self.socket, self.packet, file.as_ref());
            }
            Err(error) => error,
        };
        self.packet.clear();
        match error.raw_os_error() {
            Some(code) => {
                self.packet.push(ERRNO);
                self.packet.extend_from_slice(&code.to_ne_bytes());
            }
            None => {
                self.packet.push(REASON);
                let reason = error.to_string();
                let reason = reason.as_bytes();
                self.packet
                    .extend_from_slice(reason.get(..PART).unwrap_or(reason));
            }
        }
        send(self.socket, self.packet, None)
    }
}

/// The contents of a packet.
pub(super) enum Packet<'a> {
    /// A part of an answer.
    More(&'a [u8]),
    /// The last part.
    Done(&'a [u8]),
    /// There is no answer.
    Failed(io::Error),
}

impl<'a> Packet<'a> {
    /// Parses a packet. None if it is empty, as at the end of a socket.
    pub(super) fn parse(packet: &'a [u8]) -> Option<Self> {
        let (kind, rest) = packet.split_first()?;
        Some(match *kind {
            MORE => Self::More(rest),
            DONE => Self::Done(rest),
            ERRNO => {
                let code = rest.first_chunk();
                let code = code.map_or(0, |code| i32::from_ne_bytes(*code));
                Self::Failed(io::Error::from_raw_os_error(code))
            }
            _ => Self::Failed(io::Error::other(String::from_utf8_lossy(rest).into_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::{pair, receive};
    use super::*;

    /// The packets of an answer with these bytes.
    fn packets(parts: &[&[u8]], outcome: io::Result<Option<OwnedFd>>) -> Vec<(Vec<u8>, bool)> {
        let (ours, theirs) = pair().unwrap();
        let mut memory = Vec::new();
        let mut writer = AnswerWriter::new(&theirs, &mut memory);
        for part in parts {
            writer.push(part).unwrap();
        }
        writer.finish(outcome).unwrap();
        drop(theirs);
        let mut packet = vec![0; PART + 1];
        let mut all = Vec::new();
        loop {
            let (len, file) = receive(&ours, &mut packet).unwrap();
            if len == 0 {
                return all;
            }
            all.push((packet[..len].to_vec(), file.is_some()));
        }
    }

    #[test]
    fn a_short_answer_is_one_packet() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let sent = packets(&[b"ab", b"", b"c"], Ok(Some(file.into())));
        assert_eq!(sent, [(b"\x01abc".to_vec(), true)]);
        assert_eq!(packets(&[], Ok(None)), [(vec![DONE], false)]);
    }

    #[test]
    fn the_last_part_of_a_long_answer_says_that_it_is() {
        let bytes: Vec<u8> = (0..PART + 5).map(|at| at as u8).collect();
        let sent = packets(&[&bytes], Ok(None));
        let sent: Vec<_> = sent.iter().map(|(packet, _)| packet.as_slice()).collect();
        let [first, last] = sent[..] else {
            panic!("{} packets", sent.len())
        };
        assert_eq!((first[0], last[0]), (MORE, DONE));
        assert_eq!([&first[1..], &last[1..]].concat(), bytes);
        // A part that fills a packet is the last one, too.
        assert_eq!(packets(&[&bytes[..PART]], Ok(None)).len(), 1);
    }

    #[test]
    fn an_error_takes_the_place_of_what_was_not_sent() {
        let sent = packets(&[b"ab"], Err(io::Error::from_raw_os_error(libc::EREMOTE)));
        let [(packet, false)] = &sent[..] else {
            panic!("{sent:?}")
        };
        let Some(Packet::Failed(error)) = Packet::parse(packet) else {
            panic!("{packet:?}")
        };
        assert_eq!(error.raw_os_error(), Some(libc::EREMOTE));
        let sent = packets(&[], Err(io::Error::other("why")));
        let Some(Packet::Failed(error)) = Packet::parse(&sent[0].0) else {
            panic!("{sent:?}")
        };
        assert_eq!(error.to_string(), "why");
        assert!(Packet::parse(&[]).is_none());
    }
}
