//! The entry of a method: the code itself finds and counts the node if there is one and the thread is the owner, and calls `enter` otherwise.
//!
//! It runs before the arguments are moved down, since the forms of its instructions reach only 16 registers: those below the arguments are
//! free until then. What it finds is moved together with the arguments.

use varid_instrument::node::{self, WORD};

use super::{
    Call, Counting, Cover, Entries, Method, RuntimeMembers, Writer, first, frame, opcode, pair,
};

/// The registers that are free at the entry of any method.
const FREE: u16 = super::ADDED_REGISTERS;

/// The registers of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registers {
    /// The array.
    words: u16,
    /// The index of the frame, at the end.
    frame: u16,
    /// An `int`.
    index: u16,
    /// A `long`.
    value: u16,
    /// Another one.
    one: u16,
}

/// The move of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    code: u8,
    to: u16,
    from: u16,
    /// The registers of the value.
    count: u16,
}

impl Registers {
    /// Returns the registers with the array and the frame in two given ones. None if the others have no room for two `long`.
    fn with(words: u16, frame: u16) -> Option<Self> {
        let free = |register: &u16| ![words, frame].contains(register);
        let mut singles = Vec::new();
        let mut pairs = Vec::new();
        let mut left = (0..FREE).filter(free).peekable();
        while let Some(register) = left.next() {
            match left.next_if_eq(&register.saturating_add(1)) {
                Some(_) => pairs.push(register),
                None => singles.push(register),
            }
        }
        let ([index], [value, one]) = (singles.as_slice(), pairs.as_slice()) else {
            return None;
        };
        Some(Self {
            words,
            frame,
            index: *index,
            value: *value,
            one: *one,
        })
    }

    /// Returns all possible ones.
    fn all() -> impl Iterator<Item = Self> {
        let pairs = (0..FREE).flat_map(|words| (0..FREE).map(move |frame| (words, frame)));
        pairs
            .filter(|(words, frame)| words != frame)
            .filter_map(|(words, frame)| Self::with(words, frame))
    }
}

/// Orders moves so that none overwrites a value that is still to be moved. None if there is no such order.
fn ordered(mut moves: Vec<Move>) -> Option<Vec<Move>> {
    let mut ordered = Vec::new();
    let overlap = |to: &Move, from: &Move| {
        to.to < from.from.saturating_add(from.count) && from.from < to.to.saturating_add(to.count)
    };
    while !moves.is_empty() {
        let is_free = |(index, one): (usize, &Move)| {
            let others = moves.iter().enumerate();
            let mut others = others.filter(|(other, _)| *other != index);
            others.all(|(_, other)| !overlap(one, other))
        };
        let next = moves.iter().enumerate().position(is_free)?;
        ordered.push(moves.remove(next));
    }
    Some(ordered)
}

/// Returns the moves of a method's arguments to their registers, the first one first.
fn argument_moves(method: Method<'_>, arguments: &[u8]) -> Vec<Move> {
    let item = method.item;
    let mut to = item.registers.saturating_sub(item.ins);
    let moves = arguments.iter().map(|argument| {
        let (code, count) = match argument {
            b'J' | b'D' => (opcode::MOVE_WIDE_FROM16, 2),
            b'L' | b'[' => (opcode::MOVE_OBJECT_FROM16, 1),
            _ => (opcode::MOVE_FROM16, 1),
        };
        let from = to.saturating_add(super::ADDED_REGISTERS);
        let one = Move {
            code,
            to,
            from,
            count,
        };
        to = to.saturating_add(count);
        one
    });
    moves.collect()
}

impl Writer<'_> {
    pub(super) fn entry(&mut self) {
        let Some(counting) = self.counting else {
            return;
        };
        let moves = argument_moves(self.method, counting.arguments);
        let one = |code, to, from| Move {
            code,
            to,
            from,
            count: 1,
        };
        let find = |registers: Registers| {
            let mut all = moves.clone();
            all.extend([
                one(opcode::MOVE_FROM16, self.frame(), registers.frame),
                one(opcode::MOVE_OBJECT_FROM16, self.words(), registers.words),
            ]);
            Some((registers, ordered(all)?))
        };
        let inline = match counting.plan.entries {
            Entries::Inline => Registers::all().find_map(find),
            Entries::Called => None,
        };
        match inline {
            Some((registers, moves)) => {
                self.find_node(counting, registers);
                self.move_values(&moves);
                // The stub that leaves the method passes it.
                self.constant(self.scratch(), 0);
            }
            None => {
                self.move_values(&moves);
                self.load_words(self.words(), counting.runtime);
                self.call_enter(counting, self.frame(), self.frame());
                if self.is_leaf {
                    self.set_slot(frame::LEFT, Cover::NONE);
                }
            }
        }
        if self.counts_blocks() {
            self.wide_constant(self.one(), 1);
        }
    }

    fn move_values(&mut self, moves: &[Move]) {
        for one in moves {
            let units = vec![first(one.code, one.to), one.from];
            self.code.units(units, None);
        }
    }

    fn load_words(&mut self, register: u16, runtime: &RuntimeMembers) {
        let load = vec![first(opcode::SGET_OBJECT, register), runtime.words];
        self.code.units(load, Some(Cover::NONE));
    }

    /// Calls `enter` with its arguments in two registers.
    fn call_enter(&mut self, counting: Counting<'_>, arguments: u16, result: u16) {
        self.constant(arguments, counting.number);
        self.constant(arguments.saturating_add(1), counting.shape);
        self.call(Call::Enter, arguments, Cover::NONE);
        self.code
            .units(vec![first(opcode::MOVE_RESULT, result)], None);
    }

    /// Finds the frame of the method's node, and counts the call.
    fn find_node(&mut self, counting: Counting<'_>, registers: Registers) {
        let Registers {
            words,
            frame,
            index,
            value,
            one,
        } = registers;
        let runtime = counting.runtime;
        let [walk, found, native, entered] = [(); 4].map(|()| self.code.label());

        // Is the thread the owner?
        self.load_words(words, runtime);
        let call = vec![first(opcode::INVOKE_STATIC, 0), runtime.current_thread, 0];
        self.code.units(call, Some(Cover::NONE));
        self.plain(first(opcode::MOVE_RESULT_OBJECT, index));
        let owner = vec![first(opcode::SGET_OBJECT, value), runtime.owner];
        self.code.units(owner, Some(Cover::NONE));
        self.code
            .branch(nibbles(opcode::IF_NE, index, value), native);

        // Which frame is the innermost one that has not been left, and where is its next call?
        self.plain(nibbles(opcode::CONST_4, frame, frame::LAST));
        self.access(opcode::AGET_WIDE, value, (words, frame));
        self.plain(nibbles(opcode::LONG_TO_INT, frame, value));
        self.code.place(walk);
        self.access(opcode::AGET_WIDE, value, (words, frame));
        self.plain(nibbles(opcode::LONG_TO_INT, index, value));
        self.code.branch(first(opcode::IF_LTZ, index), found);
        self.add(index, frame, frame::CALLER);
        self.access(opcode::AGET_WIDE, value, (words, index));
        self.plain(nibbles(opcode::LONG_TO_INT, frame, value));
        self.code.goto(walk);

        // Is the first node there one of this method?
        self.code.place(found);
        self.plain(nibbles(opcode::ADD_INT_2ADDR, index, frame));
        self.access(opcode::AGET_WIDE, value, (words, index));
        self.plain(nibbles(opcode::CONST_4, index, WORD_SHIFT));
        self.plain(nibbles(opcode::USHR_LONG_2ADDR, value, index));
        self.plain(nibbles(opcode::LONG_TO_INT, frame, value));
        self.access(opcode::AGET_WIDE, value, (words, frame));
        self.plain(nibbles(opcode::LONG_TO_INT, index, value));
        self.constant(value, counting.number);
        self.code
            .branch(nibbles(opcode::IF_NE, index, value), native);

        // The call counts, and the next one is recorded here, if there can be one.
        self.add(index, frame, CALLS);
        self.access(opcode::AGET_WIDE, value, (words, index));
        self.wide_constant(one, 1);
        self.plain(nibbles(opcode::ADD_LONG_2ADDR, value, one));
        self.access(opcode::APUT_WIDE, value, (words, index));
        self.add(frame, frame, TO_FRAME);
        let is_leaf = self.is_leaf;
        if !is_leaf {
            self.wide_constant(value, frame::distance(0));
            self.access(opcode::APUT_WIDE, value, (words, frame));
            self.plain(nibbles(opcode::INT_TO_LONG, value, frame));
            self.plain(nibbles(opcode::CONST_4, index, frame::LAST));
            self.access(opcode::APUT_WIDE, value, (words, index));
        }
        self.code.goto(entered);

        self.code.place(native);
        self.call_enter(counting, value, frame);
        if is_leaf {
            // The native method has made it the innermost frame.
            self.wide_constant(value, frame::LEFT);
            self.access(opcode::APUT_WIDE, value, (words, frame));
        }
        self.code.place(entered);
    }

    /// Adds an instruction of one code unit that does not throw.
    fn plain(&mut self, unit: u16) {
        self.code.units(vec![unit], None);
    }

    /// Reads or writes a `long` of an array, by the registers of the array and of the index.
    fn access(&mut self, code: u8, value: u16, (array, index): (u16, u16)) {
        let units = vec![first(code, value), pair(array, index)];
        self.code.units(units, Some(Cover::NONE));
    }

    /// Adds a number below 128 to an `int`.
    fn add(&mut self, to: u16, from: u16, number: u16) {
        let units = vec![first(opcode::ADD_INT_LIT8, to), pair(from, number)];
        self.code.units(units, None);
    }
}

/// The binary logarithm of the bytes of a word.
const WORD_SHIFT: u16 = WORD.trailing_zeros() as u16;
/// The words from a node to its calls, and to its frame.
const CALLS: u16 = (node::CALLS as u64 / WORD) as u16;
const TO_FRAME: u16 = frame::DISTANCE as u16;

/// Returns the code unit of an instruction with two registers, or a register and a number, below 16.
const fn nibbles(code: u8, low: u16, high: u16) -> u16 {
    (code as u16) | (low & 0xf) << 8 | (high & 0xf) << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(registers: u16, arguments: &[u16]) -> Vec<Move> {
        let ins: u16 = arguments.iter().sum();
        let mut to = registers - ins;
        let moves = arguments.iter().map(|count| {
            let from = to + FREE;
            let one = Move {
                code: 0,
                to,
                from,
                count: *count,
            };
            to += count;
            one
        });
        moves.collect()
    }

    /// Executes moves, and checks that each value arrives.
    fn ensure_moved(moves: &[Move]) {
        let mut registers: Vec<u16> = (0..512).collect();
        for one in moves {
            for word in 0..one.count {
                registers[usize::from(one.to + word)] = registers[usize::from(one.from + word)];
            }
        }
        for one in moves {
            for word in 0..one.count {
                assert_eq!(registers[usize::from(one.to + word)], one.from + word);
            }
        }
    }

    #[test]
    fn what_the_entry_finds_is_moved_with_the_arguments_whatever_they_are() {
        let all: Vec<Registers> = Registers::all().collect();
        for ins in 0..40_u16 {
            for locals in 0..10 {
                for wide in [0, 1, 2, ins / 2] {
                    let wide = wide.min(ins / 2);
                    let mut arguments = vec![2; wide.into()];
                    arguments.extend(vec![1; (ins - 2 * wide).into()]);
                    arguments.reverse();
                    let registers = ins + locals;
                    let found = all.iter().find_map(|one| {
                        let mut all = moves(registers, &arguments);
                        for (to, from) in [(registers, one.frame), (registers + 2, one.words)] {
                            all.push(Move {
                                code: 0,
                                to,
                                from,
                                count: 1,
                            });
                        }
                        ordered(all)
                    });
                    match found {
                        Some(moves) => ensure_moved(&moves),
                        // The native method finds the node then.
                        None => assert!(wide > 8, "{ins} {locals} {wide}"),
                    }
                }
            }
        }
    }
}
