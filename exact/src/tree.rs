//! Reads the nodes of a tree. Addresses in the file may lead anywhere: each is checked. No word of a tree is of two nodes, and no node is read
//! more than twice, so a walk ends when its nodes have more than twice the words of the file.

use std::{collections::HashMap, path::Path};

use varid_exact_agent::record::ThreadRecord;
use varid_instrument::{
    MethodNumber,
    node::{self, abort, header},
    opcode::INVOKESPECIAL,
    runtime::order,
};

use crate::{
    context::Node,
    error::{Error, Result},
    executions::without_return,
    order::{Order, Word},
    tables::{CountedMethod, Tables},
    words::Words,
};

/// Words of an abort record.
const ABORT_WORDS: u64 = abort::LENGTH.cast_unsigned() / node::WORD;
const CONSTRUCTOR: &str = "<init>";
/// How many constructors may call each other by `super()` and `this()`.
const MAX_CONSTRUCTORS: usize = 1024;

/// A tree of calling contexts of a VM: one below the root of each thread.
#[derive(Debug)]
pub struct Tree {
    words: Words,
    /// The address of the header in the VM's process.
    address: u64,
    /// The offset behind the last allocated byte.
    end: u64,
    /// How many more words a walk may have in its nodes.
    room: u64,
    /// The addresses of the roots that were visited, in that order.
    roots: Vec<u64>,
    /// The exceptions of constructors that were read with those that call them, by the address of their nodes.
    constructors: HashMap<u64, Vec<(u16, u64)>>,
    /// Calls that were not recorded, because the tree was full.
    pub folded: u64,
    /// Exceptions that were not recorded, because the tree was full: the bytecodes behind those that threw count as if they had run.
    pub lost_aborts: u64,
    /// The chains of siblings that [`visit`](Self::visit) has left at a node that cannot be read: how many, and the first error.
    pub damage: Option<(u64, Error)>,
}

/// A chain of siblings that is to be read.
#[derive(Debug, Clone, Copy)]
struct Chain<K> {
    /// The offset of the slot.
    slot: u64,
    site: Option<usize>,
    parent: Option<K>,
}

/// Returns true for a constructor whose instructions are counted.
fn is_constructor(method: &CountedMethod) -> bool {
    method.table.name == CONSTRUCTOR && !method.table.blocks.is_empty()
}

fn add_aborts(node: &mut Node, aborts: &[(u16, u64)]) {
    node.aborts.extend(aborts);
    node.aborts.sort_unstable();
}

impl Tree {
    /// Opens a tree's file. Nodes that a VM adds later are left out: [tables](crate::Tables) that are read after that describe all others.
    ///
    /// # Errors
    ///
    /// It cannot be read, or its header is not one of a tree.
    pub fn open(path: &Path) -> Result<Self> {
        let mut words = Words::open(path)?;
        if words.at(header::MAGIC)? != node::MAGIC {
            return Err(words.error(header::MAGIC, "it is not a tree"));
        }
        if words.at(header::VERSION)? != node::VERSION {
            return Err(words.error(header::VERSION, "the tree has another version"));
        }
        let address = words.at(header::ADDRESS)?;
        let allocated = words.at(header::ALLOCATED)?;
        let end = node::HEADER.saturating_add(allocated).min(words.length());
        let folded = words.at(header::FOLDED)?;
        let lost_aborts = words.at(header::LOST_ABORTS)?;
        Ok(Self {
            words,
            address,
            end,
            roots: Vec::new(),
            room: (end / node::WORD).saturating_mul(2),
            constructors: HashMap::new(),
            folded,
            lost_aborts,
            damage: None,
        })
    }

    /// Calls `visit` for each node, callers before what they call, and threads by their start. It receives the thread's record, if there is one, the key of the caller,
    /// and the node, and returns the node's key.
    ///
    /// A node that violates the format, or whose method no table describes, is left out with what follows it in its chain: see
    /// [`damage`](Self::damage).
    ///
    /// # Errors
    ///
    /// The roots cannot be read, or the tree has a circle; and those of `visit`.
    pub fn visit<K: Copy>(
        &mut self,
        tables: &Tables,
        mut visit: impl FnMut(Option<&ThreadRecord>, Option<K>, &Node, &CountedMethod) -> Result<K>,
    ) -> Result<()> {
        let mut chains = Vec::new();
        let mut roots = Vec::new();
        let mut root = self.words.at(header::ROOTS)?;
        while root != 0 {
            self.charge(1, root)?;
            roots.push((tables.threads.get(&root), root));
            root = self.word(root, node::NEXT)?;
        }
        // By their start. Threads of the same number follow each other.
        roots.sort_by_key(|(thread, _)| thread.map(|thread| thread.time));
        self.roots = roots.iter().map(|(_, root)| *root).collect();
        for (thread, root) in roots {
            let slot = self.offset(root, node::slot(0))?;
            chains.push(Chain {
                slot,
                site: None,
                parent: None,
            });
            while let Some(chain) = chains.pop() {
                let mut next = match self.words.at(chain.slot) {
                    Ok(next) => next,
                    Err(error) => self.leave(error),
                };
                while next != 0 {
                    self.charge(1, next)?;
                    if let Some(behind) = self.added_later(next) {
                        next = behind;
                        continue;
                    }
                    let (found, method) = match self.complete_node(next, &chain, tables) {
                        Ok(node) => node,
                        Err(error) if self.room == 0 => return Err(error),
                        Err(error) => {
                            next = self.leave(error);
                            continue;
                        }
                    };
                    let key = visit(thread, chain.parent, &found, method)?;
                    let sites = (0..method.table.sites.len()).map(Some);
                    for (slot, site) in (0..).zip([None].into_iter().chain(sites)) {
                        let offset = self.offset(next, node::slot(slot));
                        match offset.and_then(|slot| Ok((slot, self.words.at(slot)?))) {
                            // Most sites of most nodes have called nothing.
                            Ok((_, 0)) => {}
                            Ok((slot, _)) => chains.push(Chain {
                                slot,
                                site,
                                parent: Some(key),
                            }),
                            Err(error) => {
                                self.leave(error);
                            }
                        }
                    }
                    next = match self.word(next, node::NEXT) {
                        Ok(next) => next,
                        Err(error) => self.leave(error),
                    };
                }
            }
        }
        Ok(())
    }

    /// Reads a node, which is in the chain of a slot, with the exceptions that left `super()` and `this()`: no handler can cover these calls, so
    /// the VM has no record of them.
    fn complete_node<'t, K>(
        &mut self,
        address: u64,
        chain: &Chain<K>,
        tables: &'t Tables,
    ) -> Result<(Node, &'t CountedMethod)> {
        let (mut found, method) = self.node(address, chain, tables)?;
        if is_constructor(method) {
            let aborts = match self.constructors.remove(&address) {
                Some(aborts) => aborts,
                None => self.aborts_of_constructors(address, &found, method, tables, 0)?,
            };
            add_aborts(&mut found, &aborts);
        }
        Ok((found, method))
    }

    /// Returns the calls of constructors by a constructor that have not returned, by their instructions, where it has no record of an exception.
    ///
    /// Constructors that cannot be read are left out: [`visit`](Self::visit) counts them.
    fn aborts_of_constructors(
        &mut self,
        address: u64,
        node: &Node,
        method: &CountedMethod,
        tables: &Tables,
        callers: usize,
    ) -> Result<Vec<(u16, u64)>> {
        if callers >= MAX_CONSTRUCTORS {
            return Err(self.error_at(address, "too many constructors call each other"));
        }
        let mut found = Vec::new();
        for (site, number) in method.table.sites.iter().zip(1..) {
            let calls_constructor = site.opcode == INVOKESPECIAL && site.target.name == CONSTRUCTOR;
            if !calls_constructor || node.aborts.iter().any(|(bci, _)| *bci == site.bci.0) {
                continue;
            }
            let slot = self.offset(address, node::slot(number))?;
            let chain: Chain<()> = Chain {
                slot,
                site: None,
                parent: None,
            };
            let mut count = 0_u64;
            let mut next = self.words.at(slot)?;
            while next != 0 {
                self.charge(1, next)?;
                if let Some(behind) = self.added_later(next) {
                    next = behind;
                    continue;
                }
                let (mut called, of) = match self.node(next, &chain, tables) {
                    Err(error) if self.room == 0 => return Err(error),
                    Err(_) => break,
                    Ok(node) => node,
                };
                if is_constructor(of) {
                    let callers = callers.saturating_add(1);
                    let aborts = self.aborts_of_constructors(next, &called, of, tables, callers)?;
                    add_aborts(&mut called, &aborts);
                    count = count.saturating_add(without_return(&called, of));
                    self.constructors.insert(next, aborts);
                }
                next = self.word(next, node::NEXT)?;
            }
            if count > 0 {
                found.push((site.bci.0, count));
            }
        }
        Ok(found)
    }

    /// Reads a node, which is in the chain of a slot.
    fn node<'t, K>(
        &mut self,
        address: u64,
        chain: &Chain<K>,
        tables: &'t Tables,
    ) -> Result<(Node, &'t CountedMethod)> {
        let (slot, site) = (chain.slot, chain.site);
        if self
            .word(address, node::PARENT_SLOT)?
            .checked_sub(self.address)
            != Some(slot)
        {
            return Err(self.error_at(address, "the node is in the chain of another slot"));
        }
        let number = u32::try_from(self.word(address, node::METHOD)?).ok();
        let number = number.and_then(MethodNumber::new);
        let method = number.and_then(|number| tables.methods.get(&number));
        let Some((number, method)) = number.zip(method) else {
            return Err(self.error_at(address, "the node has a method that is not described"));
        };
        let table = &method.table;
        let others = table.sites.len().saturating_add(table.counters.into());
        // One word has been charged. Slot 0 has another one.
        self.charge((others as u64).saturating_add(node::WORDS.into()), address)?;
        let has_blocks = !table.blocks.is_empty();
        let counters = (0..u32::from(method.table.counters)).map(node::counter);
        let counters = counters
            .map(|offset| self.word(address, offset))
            .collect::<Result<_>>()?;
        Ok((
            Node {
                offset: self.offset(address, node::METHOD)?,
                method: number,
                site,
                calls: self.word(address, node::CALLS)?,
                counters,
                aborts: match has_blocks {
                    true => self.aborts(address, method)?,
                    false => Vec::new(),
                },
            },
            method,
        ))
    }

    /// Reads the abort records of a node. It has at most one for each instruction.
    fn aborts(&mut self, address: u64, method: &CountedMethod) -> Result<Vec<(u16, u64)>> {
        let mut found = Vec::new();
        let mut next = self.word(address, node::ABORTS)?;
        while next != 0 {
            self.charge(ABORT_WORDS, next)?;
            let bci = self.word(next, abort::BCI)?;
            let bci = u16::try_from(bci).ok();
            let bci = bci.filter(|bci| *bci < method.table.code_length);
            let Some(bci) = bci.filter(|_| found.len() < usize::from(method.table.code_length))
            else {
                return Err(self.error_at(next, "the exception is not of an instruction"));
            };
            found.push((bci, self.word(next, abort::COUNT)?));
            next = self.word(next, abort::NEXT)?;
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the addresses of the roots that were visited, in that order. Frees the memory of the nodes.
    pub(crate) fn roots(&mut self) -> &[u64] {
        self.words.forget();
        &self.roots
    }

    /// Returns true if events of the call order have been lost.
    pub(crate) fn has_lost_events(&mut self) -> Result<bool> {
        Ok(self.words.at(header::LOST_EVENTS)? != 0)
    }

    /// Returns the addresses of the chunks of each root whose events the order's file does not have, in the order of their fillings.
    pub(crate) fn chunks(&mut self, order: &Order) -> Result<HashMap<u64, Vec<u64>>> {
        let mut found: Vec<(u64, u64, u64)> = Vec::new();
        let mut chunk = self.words.at(header::CHUNKS)?;
        let length = order::EVENTS.saturating_add(order::EVENTS_LENGTH);
        let mut room = self.end.checked_div(length).unwrap_or(0);
        while chunk != 0 {
            let left = room.checked_sub(1);
            room = left.ok_or_else(|| self.error_at(chunk, "the chunks have a circle"))?;
            let mut word = |offset: u64| self.word(chunk, offset.cast_signed());
            let (root, filling) = (word(order::THREAD)?, word(order::FILLING)?);
            let before = word(order::BEFORE)?;
            if !order.has(filling) {
                found.push((filling, root, chunk));
            }
            chunk = before;
        }
        found.sort_unstable();
        let mut chunks: HashMap<u64, Vec<u64>> = HashMap::new();
        for (_, root, chunk) in found {
            chunks.entry(root).or_default().push(chunk);
        }
        Ok(chunks)
    }

    /// Returns the events of a chunk.
    pub(crate) fn events(&mut self, chunk: u64) -> Result<Vec<Word>> {
        let end = order::EVENTS.saturating_add(order::EVENTS_LENGTH);
        let mut events = Vec::new();
        for at in (order::EVENTS..end).step_by(8) {
            let [a, b, c, d, e, f, g, h] = self.word(chunk, at.cast_signed())?.to_le_bytes();
            for event in [[a, b, c, d], [e, f, g, h]].map(Word::from_le_bytes) {
                if event == 0 {
                    return Ok(events);
                }
                events.push(event);
            }
        }
        Ok(events)
    }

    /// Returns the address behind a node in its chain, if the VM has added the node after the tree was opened.
    fn added_later(&mut self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        let next = offset.checked_add_signed(node::NEXT)?;
        let is_later = offset >= self.end && next < self.words.length();
        is_later.then(|| self.words.at(next).ok())?
    }

    /// Counts a chain that is left because of an error. Returns the address behind a chain.
    fn leave(&mut self, error: Error) -> u64 {
        match &mut self.damage {
            Some((count, _)) => *count = count.saturating_add(1),
            none => *none = Some((1, error)),
        }
        0
    }

    /// Takes words of the walk's room for what is at an address.
    fn charge(&mut self, words: u64, address: u64) -> Result<()> {
        match self.room.checked_sub(words) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => {
                self.room = 0;
                Err(self.error_at(address, "the tree has a circle, or nodes that overlap"))
            }
        }
    }

    /// Returns the word at a distance from an address.
    fn word(&mut self, address: u64, distance: i64) -> Result<u64> {
        let offset = self.offset(address, distance)?;
        self.words.at(offset)
    }

    /// Returns the offset in the file of the word at a distance from an address, which must be in the allocated part.
    fn offset(&self, address: u64, distance: i64) -> Result<u64> {
        let offset = address.checked_sub(self.address);
        let offset = offset.and_then(|offset| offset.checked_add_signed(distance));
        let last = self.end.saturating_sub(node::WORD);
        offset
            .filter(|offset| (node::HEADER..=last).contains(offset))
            .ok_or_else(|| self.error_at(address, "the address leads out of the tree"))
    }

    fn error_at(&self, address: u64, problem: &'static str) -> Error {
        let offset = address.wrapping_sub(self.address);
        self.words.error(offset, problem)
    }
}

#[cfg(test)]
pub(crate) mod tests;
