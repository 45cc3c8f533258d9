//! Where do the values come from that a function works with?
//!
//! A function's code is followed from its first instruction over all of its branches, and every register's value is known as a path:
//! what memory, so many bytes from which argument. Each instruction is executed once, by the first path that leads there. What lies
//! behind a call is followed last: the function that is called may not come back, and what is there belongs to another path then.

use super::decode::{Base, Decoder, Effect, Flow, OPERAND, Place, REGISTERS, Register, Source};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

/// Instructions that are followed in one function.
const MAX_INSTRUCTIONS: usize = 1 << 13;

/// What memory and constants a library has.
pub(super) trait Code {
    /// The bytes of an address of the file and those behind it.
    fn code(&self, address: u64) -> &[u8];

    /// What the word at an address holds, if the library says so and nobody writes it.
    fn constant(&self, address: u64, size: u8) -> Option<u64>;

    /// Counts an instruction that is decoded; false: that was enough.
    fn count(&self) -> bool;
}

/// Something of which nothing is known but where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    /// Zero: the value is a constant.
    Zero,
    /// What a register holds when the function is called.
    Register(Register),
    /// The thread pointer.
    ThreadPointer,
    /// ART's `Thread` of the thread.
    Thread,
    /// The bytes at an address.
    Loaded { from: Value, size: u8 },
    /// What the function at an address returns.
    Returned { by: u64 },
    /// Another one than all others.
    Unknown(u32),
}

/// A value: what it comes from, and a constant that is added to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Value {
    origin: u32,
    offset: i64,
}

/// A part of what a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// `size` bytes are read.
    Load { from: Value, size: u8 },
    /// `size` bytes are written; None: nothing is known of what.
    Store {
        to: Value,
        what: Option<Value>,
        size: u8,
    },
    /// One value is subtracted from another one.
    Subtract { left: Value, right: Value },
    /// Some bits of a value are tested.
    Test { value: Value, mask: u64 },
    /// A function of the library is called.
    Call { target: u64, arguments: [Value; 6] },
    /// A function is called to which a value leads.
    CallOf(Value),
    /// The function ends with a call of another one.
    TailCall { target: u64 },
    /// The code goes on where a register says.
    JumpIndirect,
}

impl Event {
    /// If so many bytes of which something is known are written: where to, and what.
    pub(super) const fn stored(&self, bytes: u8) -> Option<(Value, Value)> {
        match *self {
            Self::Store {
                to,
                what: Some(what),
                size,
            } if size == bytes => Some((to, what)),
            _ => None,
        }
    }
}

/// What a function does, in the order in which it was followed; and the address of the instruction that does it.
#[derive(Debug)]
pub(super) struct Trace {
    origins: Vec<Origin>,
    known: HashMap<Origin, u32>,
    pub(super) events: Vec<(u64, Event)>,
    /// What registers hold at the first jump to where a register says.
    pub(super) at_first_jump: Option<State>,
    decoder: Decoder,
}

/// What registers hold.
#[derive(Debug, Clone)]
pub(super) struct State([Value; REGISTERS]);

impl State {
    /// What a register holds.
    pub(super) fn get(&self, register: Register) -> Option<Value> {
        self.0.get(usize::from(register.0)).copied()
    }

    /// All registers.
    pub(super) fn registers(&self) -> impl Iterator<Item = (Register, Value)> {
        (0..).map(Register).zip(self.0.iter().copied())
    }

    fn set(&mut self, register: Register, value: Value) {
        if let Some(known) = self.0.get_mut(usize::from(register.0)) {
            *known = value;
        }
    }
}

impl Trace {
    /// Follows a function.
    pub(super) fn of(code: &impl Code, decoder: Decoder, function: Range<u64>) -> Self {
        let mut trace = Self {
            origins: vec![Origin::Zero],
            known: HashMap::from([(Origin::Zero, 0)]),
            events: Vec::new(),
            at_first_jump: None,
            decoder,
        };
        let mut first = State(
            [Value {
                origin: 0,
                offset: 0,
            }; REGISTERS],
        );
        for number in (0..).take(REGISTERS) {
            let register = Register(number);
            let value = trace.origin(Origin::Register(register));
            first.set(register, value);
        }
        trace.follow(code, function, first);
        trace
    }

    fn follow(&mut self, code: &impl Code, function: Range<u64>, first: State) {
        let mut seen = HashSet::new();
        let mut now = vec![(function.start, first)];
        let mut behind_calls: VecDeque<(u64, State)> = VecDeque::new();
        while let Some((at, mut state)) = now.pop().or_else(|| behind_calls.pop_front()) {
            if !function.contains(&at) || seen.len() >= MAX_INSTRUCTIONS || !seen.insert(at) {
                continue;
            }
            if !code.count() {
                return;
            }
            let Some(instruction) = self.decoder.decode(code.code(at), at) else {
                continue;
            };
            for effect in &instruction.effects {
                self.execute(code, at, *effect, &mut state);
            }
            let next = at.saturating_add(u64::from(instruction.size));
            match instruction.flow {
                Flow::Next => now.push((next, state)),
                Flow::Jump(target) if function.contains(&target) => now.push((target, state)),
                Flow::Jump(target) => self.events.push((at, Event::TailCall { target })),
                Flow::Branch(target) => {
                    now.push((target, state.clone()));
                    now.push((next, state));
                }
                Flow::Call(target) => {
                    self.call(at, target, &state);
                    self.lose_in_call(&mut state, Origin::Returned { by: target });
                    behind_calls.push_back((next, state));
                }
                Flow::CallRegister(register) => {
                    let called = state.get(register);
                    self.events
                        .extend(called.map(|called| (at, Event::CallOf(called))));
                    let result = self.unknown();
                    self.lose_in_call(&mut state, Origin::Zero);
                    state.set(self.decoder.result(), result);
                    behind_calls.push_back((next, state));
                }
                Flow::JumpIndirect => {
                    self.events.push((at, Event::JumpIndirect));
                    self.at_first_jump.get_or_insert(state);
                }
                Flow::Return => {}
            }
        }
    }

    fn call(&mut self, at: u64, target: u64, state: &State) {
        let mut arguments = [Value {
            origin: 0,
            offset: 0,
        }; 6];
        for argument in &mut arguments {
            *argument = self.unknown();
        }
        for (argument, register) in arguments.iter_mut().zip(self.decoder.arguments()) {
            *argument = state.get(*register).unwrap_or(*argument);
        }
        self.events.push((at, Event::Call { target, arguments }));
    }

    /// What a call leaves of the registers.
    fn lose_in_call(&mut self, state: &mut State, result: Origin) {
        for number in (0..).take(REGISTERS) {
            let register = Register(number);
            if self.decoder.is_lost_in_calls(register) {
                let lost = self.unknown();
                state.set(register, lost);
            }
        }
        let result = self.origin(result);
        state.set(self.decoder.result(), result);
    }

    fn execute(&mut self, code: &impl Code, at: u64, effect: Effect, state: &mut State) {
        let zero = Value {
            origin: 0,
            offset: 0,
        };
        let get = |register| state.get(register).unwrap_or(zero);
        let (to, value) = match effect {
            Effect::Load { to, from, size } => {
                let from = self.address(from, state);
                self.events.push((at, Event::Load { from, size }));
                let known = self
                    .as_constant(from)
                    .and_then(|address| code.constant(address, size));
                let value = match known {
                    Some(value) => self.constant(value),
                    None => self.origin(Origin::Loaded { from, size }),
                };
                match to {
                    Some(to) => (to, value),
                    None => return,
                }
            }
            Effect::Store { to, from, size } => {
                let to = self.address(to, state);
                let what = match from {
                    Source::Register(register) => state.get(register),
                    Source::Constant(value) => Some(self.constant(value)),
                    Source::Other => None,
                };
                return self.events.push((at, Event::Store { to, what, size }));
            }
            Effect::Move { to, from, add } => {
                let value = get(from);
                (
                    to,
                    Value {
                        offset: value.offset.wrapping_add(add),
                        ..value
                    },
                )
            }
            Effect::Set { to, value } => (to, self.constant(value)),
            Effect::Add { to, left, right } => {
                let (left, right) = (get(left), get(right));
                let sum = match (left.origin, right.origin) {
                    (0, _) | (_, 0) => Value {
                        origin: left.origin.max(right.origin),
                        offset: left.offset.wrapping_add(right.offset),
                    },
                    _ => self.unknown(),
                };
                (to, sum)
            }
            Effect::Subtract { to, left, right } => {
                let (left, right) = (get(left), get(right));
                self.events.push((at, Event::Subtract { left, right }));
                (to, self.unknown())
            }
            Effect::Test { register, mask } => {
                let value = get(register);
                return self.events.push((at, Event::Test { value, mask }));
            }
            Effect::ThreadPointer { to } => (to, self.origin(Origin::ThreadPointer)),
            Effect::Overwrite(to) => (to, self.unknown()),
        };
        // Addresses of 32 bits wrap.
        let value = match (value.origin, self.decoder) {
            (0, Decoder::Arm) => self.constant(u64::from(value.offset as u32)),
            _ => value,
        };
        state.set(to, value);
    }

    fn address(&mut self, place: Place, state: &State) -> Value {
        let base = match place.base {
            Base::Register(register) => state.get(register),
            Base::Absolute(address) => Some(self.constant(address)),
            Base::ThreadPointer => Some(self.origin(Origin::ThreadPointer)),
            Base::Thread => Some(self.origin(Origin::Thread)),
        };
        let base = base.unwrap_or(Value {
            origin: 0,
            offset: 0,
        });
        let index = match place.index {
            None => 0,
            // Only where it is not scaled does a constant say anything: a library's own addresses.
            Some(index) => match state.get(index).and_then(|index| self.as_constant(index)) {
                Some(index) if base.origin == 0 => index.cast_signed(),
                _ => return self.unknown(),
            },
        };
        let offset = base.offset.wrapping_add(place.offset).wrapping_add(index);
        match (base.origin, self.decoder) {
            (0, Decoder::Arm) => self.constant(u64::from(offset as u32)),
            _ => Value { offset, ..base },
        }
    }

    fn origin(&mut self, origin: Origin) -> Value {
        let next = u32::try_from(self.origins.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(origin).or_insert_with(|| {
            self.origins.push(origin);
            next
        });
        Value {
            origin: number,
            offset: 0,
        }
    }

    fn unknown(&mut self) -> Value {
        let next = u32::try_from(self.origins.len()).unwrap_or(u32::MAX);
        self.origin(Origin::Unknown(next))
    }

    const fn constant(&self, value: u64) -> Value {
        Value {
            origin: 0,
            offset: value.cast_signed(),
        }
    }

    /// A value without what is added to it.
    fn of_origin(&self, value: Value) -> Option<Origin> {
        self.origins
            .get(usize::try_from(value.origin).ok()?)
            .copied()
    }

    /// The constant that a value is.
    pub(super) fn as_constant(&self, value: Value) -> Option<u64> {
        (value.origin == 0).then_some(value.offset.cast_unsigned())
    }

    /// The address, of so many bytes, that a value was loaded from; None: it was not, or something was added to it.
    pub(super) fn loaded_from(&self, value: Value) -> Option<(Value, u8)> {
        match self.of_origin(value)? {
            Origin::Loaded { from, size } if value.offset == 0 => Some((from, size)),
            _ => None,
        }
    }

    /// Bytes between a value and another one that it was computed from.
    pub(super) fn offset_from(&self, value: Value, base: Value) -> Option<u16> {
        let offset = value.offset.checked_sub(base.offset)?;
        (value.origin == base.origin && value.origin != 0).then_some(())?;
        u16::try_from(offset).ok()
    }

    /// The functions that are called, and those that it ends with.
    pub(super) fn calls(&self) -> impl Iterator<Item = u64> {
        self.events.iter().filter_map(|(_, event)| match event {
            Event::Call { target, .. } | Event::TailCall { target } => Some(*target),
            _ => None,
        })
    }

    /// What a pointer points into, and how far.
    pub(super) fn split(&self, address: Value) -> Option<(Value, u16)> {
        let base = Value {
            offset: 0,
            ..address
        };
        let offset = u16::try_from(address.offset).ok()?;
        (address.origin != 0).then_some((base, offset))
    }

    /// What the function was given in a register.
    pub(super) fn register(&self, register: Register) -> Option<Value> {
        let origin = *self.known.get(&Origin::Register(register))?;
        Some(Value { origin, offset: 0 })
    }

    /// What the function was given as its argument of a number.
    pub(super) fn argument(&self, number: usize) -> Option<Value> {
        self.register(*self.decoder.arguments().get(number)?)
    }

    /// How far a value lies from what the stack pointer was when the function was called.
    pub(super) fn on_stack(&self, value: Value) -> Option<i64> {
        let first = self.register(self.decoder.stack_pointer())?;
        (value.origin == first.origin).then(|| value.offset.wrapping_sub(first.offset))
    }

    /// The function that has returned a value.
    pub(super) fn returned_by(&self, value: Value) -> Option<u64> {
        match self.of_origin(value)? {
            Origin::Returned { by } if value.offset == 0 => Some(by),
            _ => None,
        }
    }

    /// Whether a value lies in what a register was when the function was called, or in the thread's `Thread`: and how far in.
    pub(super) fn in_thread(&self, value: Value) -> Option<(Option<Register>, u16)> {
        let offset = u16::try_from(value.offset).ok()?;
        match self.of_origin(value)? {
            Origin::Thread => Some((None, offset)),
            Origin::Register(register) if register != OPERAND => Some((Some(register), offset)),
            _ => None,
        }
    }

    /// How far a value lies from the thread pointer.
    pub(super) fn at_thread_pointer(&self, value: Value) -> Option<i64> {
        (self.of_origin(value)? == Origin::ThreadPointer).then_some(value.offset)
    }
}
