//! The encoding of nodes and their counts in contexts.data.
//!
//! A node consists of a byte of flags, the fields that the flags name (thread, parent, site, time), and the method. A
//! node with the same thread and time as the previous one takes about seven bytes.

use varid_model::{MonotonicNs, Tid};

use super::{
    ids::{CounterId, MethodId, NodeId, SiteId},
    parts::ContextCount,
};
use crate::chunks::{Payload, put_difference, put_number, put_thread};

/// The flags of a node.
mod flag {
    /// The thread follows. Otherwise it is that of the previous node.
    pub const THREAD: u8 = 1;
    /// The parent follows, as the number of nodes between it and this one.
    pub const PARENT: u8 = 2;
    /// The site follows, as the difference to the last site of a node.
    pub const SITE: u8 = 4;
    /// The time follows, in nanoseconds since the previous node. Otherwise it is the same.
    pub const TIME: u8 = 8;
    pub const ALL: u8 = THREAD | PARENT | SITE | TIME;
}

#[derive(Debug, Clone, Copy)]
pub struct NodeRecord {
    pub method: MethodId,
    pub tid: Option<Tid>,
    pub parent: Option<NodeId>,
    pub site: Option<SiteId>,
    pub time: MonotonicNs,
}

/// The last node of a chunk. The next one is encoded as differences to it.
#[derive(Debug, Default)]
pub struct LastNode {
    method: u32,
    tid: Option<Tid>,
    site: u32,
    time: u64,
}

impl LastNode {
    /// Appends the node with this id. Its parent precedes it, and its time is not before that of the last node.
    pub fn encode(&mut self, out: &mut Vec<u8>, id: NodeId, node: &NodeRecord) {
        let time = node.time.get();
        let flags = [
            (flag::THREAD, node.tid != self.tid),
            (flag::PARENT, node.parent.is_some()),
            (flag::SITE, node.site.is_some()),
            (flag::TIME, time != self.time),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        out.push(flags.fold(0, |flags, (flag, _)| flags | flag));
        if node.tid != self.tid {
            put_thread(out, node.tid);
            self.tid = node.tid;
        }
        if let Some(parent) = node.parent {
            put_number(out, u64::from(id.0.saturating_sub(parent.0)));
        }
        if let Some(site) = node.site {
            put_difference(out, u64::from(self.site), u64::from(site.0));
            self.site = site.0;
        }
        if time != self.time {
            put_number(out, time.saturating_sub(self.time));
            self.time = time;
        }
        put_difference(out, u64::from(self.method), u64::from(node.method.0));
        self.method = node.method.0;
    }

    /// Reads the node with this id. Its parent precedes it.
    pub fn decode(
        &mut self,
        payload: &mut Payload<'_>,
        id: NodeId,
    ) -> Result<NodeRecord, &'static str> {
        let flags = payload.byte()?;
        if flags & !flag::ALL != 0 {
            return Err("a node with unknown flags");
        }
        let has = |flag| flags & flag != 0;
        if has(flag::THREAD) {
            self.tid = payload.thread()?;
        }
        let parent = match has(flag::PARENT) {
            true => {
                let distance = payload.small()?;
                let parent = id.0.checked_sub(distance).filter(|_| distance > 0);
                Some(NodeId(
                    parent.ok_or("a node whose parent is not before it")?,
                ))
            }
            false => None,
        };
        if has(flag::SITE) {
            self.site = payload.small_difference(self.site)?;
        }
        if has(flag::TIME) {
            let time = self.time.checked_add(payload.number()?);
            self.time = time.ok_or("a time above 64 bits")?;
        }
        self.method = payload.small_difference(self.method)?;
        Ok(NodeRecord {
            method: MethodId(self.method),
            tid: self.tid,
            parent,
            site: has(flag::SITE).then_some(SiteId(self.site)),
            time: MonotonicNs::new(self.time),
        })
    }
}

/// The node and place of the last count of a chunk. Those of the next one are encoded as differences to it.
///
/// A count consists of the counter times 4, plus [`MOVES`](Self::MOVES) and [`HAS_PLACE`](Self::HAS_PLACE); the node;
/// the place; the value.
#[derive(Debug, Default)]
pub struct LastCount {
    node: u32,
    place: u32,
}

impl LastCount {
    /// The count has a place in the method, encoded as the difference to the last place in the same node.
    const HAS_PLACE: u64 = 1;
    /// The count belongs to another node, encoded as the difference to the last one. Places start from 0 there.
    const MOVES: u64 = 2;

    pub fn encode(&mut self, out: &mut Vec<u8>, node: NodeId, count: &ContextCount) {
        let mut head = u64::from(count.counter.0) << 2;
        if node.0 != self.node {
            head |= Self::MOVES;
        }
        if count.place.is_some() {
            head |= Self::HAS_PLACE;
        }
        put_number(out, head);
        if node.0 != self.node {
            put_difference(out, u64::from(self.node), u64::from(node.0));
            *self = Self {
                node: node.0,
                place: 0,
            };
        }
        if let Some(place) = count.place {
            put_difference(out, u64::from(self.place), u64::from(place));
            self.place = place;
        }
        put_number(out, count.value);
    }

    pub fn decode(
        &mut self,
        payload: &mut Payload<'_>,
    ) -> Result<(NodeId, ContextCount), &'static str> {
        let head = payload.number()?;
        let counter = u32::try_from(head >> 2).map_err(|_| "a counter above 32 bits")?;
        if head & Self::MOVES != 0 {
            let node = payload.small_difference(self.node)?;
            *self = Self { node, place: 0 };
        }
        let has_place = head & Self::HAS_PLACE != 0;
        if has_place {
            self.place = payload.small_difference(self.place)?;
        }
        let count = ContextCount {
            counter: CounterId(counter),
            place: has_place.then_some(self.place),
            value: payload.number()?,
        };
        Ok((NodeId(self.node), count))
    }
}
