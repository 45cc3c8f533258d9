//! Follows the code of a function, to find where the values that it uses come from.
//!
//! The code is followed from its first instruction over all branches. The value of every register is known as a path: memory at an offset
//! from an argument, for example. Each instruction is executed once, for the first path that leads to it. Code after a call is followed
//! last, because the called function may not return, and then that code belongs to another path.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use varid_instructions::{
    Base, Decoder, Effect, Flow, OPERAND, Place, REGISTERS, Register, Source,
};

/// The most instructions that are followed in one function.
const MAX_INSTRUCTIONS: usize = 1 << 13;

/// The memory and constants of a library.
pub(super) trait Code {
    /// Returns the bytes from an address of the file on.
    fn code(&self, address: u64) -> &[u8];

    /// Returns the word at an address, if the library contains it and it is never written.
    fn constant(&self, address: u64, size: u8) -> Option<u64>;

    /// Counts a decoded instruction. Returns false if the limit is reached.
    fn count(&self) -> bool;
}

/// The source of a value that is otherwise unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    /// Zero: the value is a constant.
    Zero,
    /// The value of a register at the call of the function.
    Register(Register),
    /// The thread pointer.
    ThreadPointer,
    /// ART's `Thread` for this thread, which the segment gs points to on x86.
    Thread,
    /// The bytes at an address.
    Loaded { from: Value, size: u8 },
    /// The return value of the function at an address.
    Returned { by: u64 },
    /// Unknown, and different from all others.
    Unknown(u32),
}

/// A value: its origin, and a constant that is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Value {
    origin: u32,
    offset: i64,
}

impl Value {
    const ZERO: Self = Self {
        origin: 0,
        offset: 0,
    };
}

/// One thing that a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// `size` bytes are read.
    Load { from: Value, size: u8 },
    /// `size` bytes are written. `what` is None if nothing is known about the value.
    Store {
        to: Value,
        what: Option<Value>,
        size: u8,
    },
    /// One value is subtracted from another.
    Subtract { left: Value, right: Value },
    /// Some bits of a value are tested.
    Test { value: Value, mask: u64 },
    /// A function of the library is called.
    Call { target: u64, arguments: [Value; 6] },
    /// The function to which a value points is called.
    CallOf(Value),
    /// The function ends by jumping to another one.
    TailCall { target: u64 },
    /// A jump to the address in a register.
    JumpIndirect,
}

impl Event {
    /// Returns the destination and the value, if `bytes` bytes with a known value are written.
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

/// What a function does, in the order in which it was followed, with the address of each instruction.
#[derive(Debug)]
pub(super) struct Trace {
    origins: Vec<Origin>,
    known: HashMap<Origin, u32>,
    pub(super) events: Vec<(u64, Event)>,
    /// The registers at the first jump to an address in a register.
    pub(super) at_first_jump: Option<State>,
    decoder: Decoder,
}

/// The values of the registers.
#[derive(Debug, Clone)]
pub(super) struct State([Value; REGISTERS]);

impl State {
    /// Returns the value of a register.
    pub(super) fn get(&self, register: Register) -> Option<Value> {
        self.0.get(usize::from(register.0)).copied()
    }

    /// Returns all registers.
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
        let mut first = State([Value::ZERO; REGISTERS]);
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
                Flow::Return | Flow::Trap => {}
            }
        }
    }

    fn call(&mut self, at: u64, target: u64, state: &State) {
        let mut arguments = [Value::ZERO; 6];
        for argument in &mut arguments {
            *argument = self.unknown();
        }
        for (argument, register) in arguments.iter_mut().zip(self.decoder.arguments()) {
            *argument = state.get(*register).unwrap_or(*argument);
        }
        self.events.push((at, Event::Call { target, arguments }));
    }

    /// Applies a call to the registers: those that the callee may overwrite become unknown.
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
        let get = |register| state.get(register).unwrap_or(Value::ZERO);
        let (to, value) = match effect {
            Effect::Load { to, from, size } => {
                let from = self.address(from, state);
                self.events.push((at, Event::Load { from, size }));
                let value = self.loaded(code, from, size);
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
            Effect::Insert { to, value, mask } => match self.as_constant(get(to)) {
                Some(constant) => (to, self.constant(constant & !mask | value)),
                None => (to, self.unknown()),
            },
            Effect::Add { to, left, right } => {
                let sum = self.sum(get(left), get(right));
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
            Effect::AddScaled { to, .. } | Effect::Overwrite(to) => (to, self.unknown()),
        };
        // 32-bit addresses wrap.
        let value = match (value.origin, self.decoder) {
            (0, Decoder::Arm) => self.constant(u64::from(value.offset as u32)),
            _ => value,
        };
        state.set(to, value);
    }

    /// Returns the value of `size` bytes at an address.
    fn loaded(&mut self, code: &impl Code, from: Value, size: u8) -> Value {
        let known = self
            .as_constant(from)
            .and_then(|address| code.constant(address, size));
        match known {
            Some(value) => self.constant(value),
            None => self.origin(Origin::Loaded { from, size }),
        }
    }

    /// Returns the sum of two values. It is known if one of them is a constant.
    fn sum(&mut self, left: Value, right: Value) -> Value {
        match (left.origin, right.origin) {
            (0, _) | (_, 0) => Value {
                origin: left.origin.max(right.origin),
                offset: left.offset.wrapping_add(right.offset),
            },
            _ => self.unknown(),
        }
    }

    fn address(&mut self, place: Place, state: &State) -> Value {
        let base = match place.base {
            Base::Register(register) => state.get(register),
            Base::Absolute(address) => Some(self.constant(address)),
            Base::ThreadPointer => Some(self.origin(Origin::ThreadPointer)),
            Base::Gs => Some(self.origin(Origin::Thread)),
        };
        let base = base.unwrap_or(Value::ZERO);
        let index = match place.index {
            None => 0,
            // A constant index is used only if it is not scaled: with a library's own addresses.
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

    /// Returns the origin of a value, without the constant that is added.
    fn of_origin(&self, value: Value) -> Option<Origin> {
        self.origins
            .get(usize::try_from(value.origin).ok()?)
            .copied()
    }

    /// Returns the value if it is a constant.
    pub(super) fn as_constant(&self, value: Value) -> Option<u64> {
        (value.origin == 0).then_some(value.offset.cast_unsigned())
    }

    /// Returns the address and the size in bytes that a value was loaded from. None if it was not loaded, or something was added to it.
    pub(super) fn loaded_from(&self, value: Value) -> Option<(Value, u8)> {
        match self.of_origin(value)? {
            Origin::Loaded { from, size } if value.offset == 0 => Some((from, size)),
            _ => None,
        }
    }

    /// Returns the bytes between a value and another one that it was computed from.
    pub(super) fn offset_from(&self, value: Value, base: Value) -> Option<u16> {
        let offset = value.offset.checked_sub(base.offset)?;
        (value.origin == base.origin && value.origin != 0).then_some(())?;
        u16::try_from(offset).ok()
    }

    /// Returns the functions that the function calls or ends with.
    pub(super) fn calls(&self) -> impl Iterator<Item = u64> {
        self.events.iter().filter_map(|(_, event)| match event {
            Event::Call { target, .. } | Event::TailCall { target } => Some(*target),
            _ => None,
        })
    }

    /// Returns the structure that a pointer points into, and the offset.
    pub(super) fn split(&self, address: Value) -> Option<(Value, u16)> {
        let base = Value {
            offset: 0,
            ..address
        };
        let offset = u16::try_from(address.offset).ok()?;
        (address.origin != 0).then_some((base, offset))
    }

    /// Returns the value of a register at the call of the function.
    pub(super) fn register(&self, register: Register) -> Option<Value> {
        let origin = *self.known.get(&Origin::Register(register))?;
        Some(Value { origin, offset: 0 })
    }

    /// Returns an argument of the function, by its number.
    pub(super) fn argument(&self, number: usize) -> Option<Value> {
        self.register(*self.decoder.arguments().get(number)?)
    }

    /// Returns a value's offset from the stack pointer at the call of the function.
    pub(super) fn on_stack(&self, value: Value) -> Option<i64> {
        let first = self.register(self.decoder.stack_pointer())?;
        (value.origin == first.origin).then(|| value.offset.wrapping_sub(first.offset))
    }

    /// Returns the function that returned a value.
    pub(super) fn returned_by(&self, value: Value) -> Option<u64> {
        match self.of_origin(value)? {
            Origin::Returned { by } if value.offset == 0 => Some(by),
            _ => None,
        }
    }

    /// Returns the base and the offset of a value that points into what a register pointed to at the call of the function, or into the
    /// thread's `Thread` (None).
    pub(super) fn in_thread(&self, value: Value) -> Option<(Option<Register>, u16)> {
        let offset = u16::try_from(value.offset).ok()?;
        match self.of_origin(value)? {
            Origin::Thread => Some((None, offset)),
            Origin::Register(register) if register != OPERAND => Some((Some(register), offset)),
            _ => None,
        }
    }

    /// Returns a value's offset from the thread pointer.
    pub(super) fn at_thread_pointer(&self, value: Value) -> Option<i64> {
        (self.of_origin(value)? == Origin::ThreadPointer).then_some(value.offset)
    }
}
