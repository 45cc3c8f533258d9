//! In which part of a constructor is `this` not initialised?
//!
//! The verifier's type checker tells the two parts of a constructor apart: a handler that covers the part before `super()` has a frame with an
//! uninitialised `this`, one that covers the part after it may not have it, and the call itself cannot be covered by either.

use crate::class::{Constants, Instruction, Instructions, opcode};
use crate::frames::{Frames, ThisPlaces};
use crate::operands::effect;

/// What is known of `this` when an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum This {
    /// It is initialised, or the method is not a constructor.
    Initialised,
    /// It is not initialised.
    Uninitialised,
    /// It is not, and this instruction calls the constructor that initialises it.
    Initialising,
}

/// Returns the state of `this` for each instruction of a constructor.
///
/// Between frames the state follows from the code: a call of `<init>` initialises `this` if its receiver is `this`. The class that it names does
/// not tell: an object of `new` may have the same one, and may never be initialised.
pub(crate) fn states(
    instructions: &Instructions<'_>,
    frames: &Frames,
    constants: &Constants<'_>,
) -> Vec<This> {
    let mut states = Vec::with_capacity(instructions.list.len());
    // Until it is initialised.
    let mut places = Some(ThisPlaces {
        locals: vec![0],
        stack: Vec::new(),
    });
    for (instruction, index) in instructions.list.iter().zip(0..) {
        if let Some(frame) = frames.this_places(index) {
            places = frame;
        }
        let mut state = This::Initialised;
        if let Some(known) = &mut places {
            state = This::Uninitialised;
            if known.initialises(instruction, constants) {
                state = This::Initialising;
                places = None;
            } else {
                known.execute(instruction, constants);
            }
        }
        states.push(state);
    }
    states
}

impl ThisPlaces {
    /// Returns true if the instruction calls a constructor of `this`.
    fn initialises(&self, instruction: &Instruction<'_>, constants: &Constants<'_>) -> bool {
        let calls = instruction.opcode == opcode::INVOKESPECIAL
            && constants.call_name(instruction.operand()) == Some(b"<init>");
        let pops = usize::from(effect(instruction, constants).pops);
        let receiver = self.stack.len().checked_sub(pops);
        calls && receiver.and_then(|receiver| self.stack.get(receiver)) == Some(&true)
    }

    /// Follows the copies of `this` through an instruction.
    fn execute(&mut self, instruction: &Instruction<'_>, constants: &Constants<'_>) {
        let effect = effect(instruction, constants);
        let rest = self.stack.len().saturating_sub(effect.pops.into());
        let popped = self.stack.split_off(rest);
        // Indices of the popped words that are pushed, for instructions that move words.
        let moved: &[usize] = match instruction.opcode {
            opcode::DUP => &[0, 0],
            opcode::DUP_X1 => &[1, 0, 1],
            opcode::DUP_X2 => &[2, 0, 1, 2],
            opcode::DUP2 => &[0, 1, 0, 1],
            opcode::DUP2_X1 => &[1, 2, 0, 1, 2],
            opcode::DUP2_X2 => &[2, 3, 0, 1, 2, 3],
            opcode::SWAP => &[1, 0],
            _ => &[],
        };
        let is_this = |word: &usize| popped.get(*word) == Some(&true);
        self.stack.extend(moved.iter().map(is_this));
        let others = usize::from(effect.pushes).saturating_sub(moved.len());
        let loaded = instruction.loaded_reference();
        let loaded = loaded.is_some_and(|local| self.locals.contains(&local));
        self.stack.extend(std::iter::repeat_n(loaded, others));
        if let Some((first, words)) = instruction.stored() {
            let stored = first..first.saturating_add(words);
            self.locals.retain(|local| !stored.contains(local));
            if popped.first() == Some(&true) {
                self.locals.push(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{This, states};
    use crate::class::{Constants, Instructions, Reader, opcode, tag};
    use crate::frames::{Frames, Initial};

    /// The constant of `A.<init>(IJ)V`.
    const CONSTRUCTOR: u8 = 6;

    /// Returns the states of the instructions of a constructor without branches.
    fn states_of(code: &[u8]) -> Vec<This> {
        let mut pool = Constants::empty();
        let constructor = pool.add_member(tag::METHOD, "A", "<init>", "(IJ)V");
        assert_eq!(constructor, Ok(u16::from(CONSTRUCTOR)));
        let mut bytes = Vec::new();
        pool.write(&mut bytes);
        let mut constants = Constants::read(&mut Reader::new(&bytes, 0)).unwrap();
        let instructions = Instructions::decode(code).unwrap();
        let initial = Initial {
            access: 0,
            name: b"<init>",
            descriptor: b"(I)V",
            class: b"A",
            max_locals: 4,
        };
        let frames = Frames::read(None, &initial, &[], &instructions, &mut constants, 100).unwrap();
        states(&instructions, &frames, &constants)
    }

    /// Instructions that push an int and a long, and call the constructor.
    const CALL: [u8; 5] = [
        opcode::ICONST_0,
        opcode::LCONST_0,
        opcode::INVOKESPECIAL,
        0,
        CONSTRUCTOR,
    ];

    #[test]
    fn an_object_that_is_never_initialised_is_not_this() {
        // new A; pop; aload_0; super(0, 0)
        let mut code = vec![opcode::NEW, 0, 2, 87, opcode::ALOAD_0];
        code.extend(CALL);
        code.push(opcode::RETURN);
        let [.., last, call, after] = states_of(&code)[..] else {
            panic!("too few instructions");
        };
        assert_eq!(
            [last, call, after],
            [This::Uninitialised, This::Initialising, This::Initialised]
        );
    }

    #[test]
    fn this_is_followed_through_copies() {
        // aload_0; astore_2; new A; aload_2; swap; new A(0, 0); super(0, 0)
        let mut code = vec![opcode::ALOAD_0, 77, opcode::NEW, 0, 2, 44, opcode::SWAP];
        code.extend(CALL);
        code.extend(CALL);
        code.push(opcode::RETURN);
        let found = states_of(&code);
        let calls: Vec<_> = found
            .iter()
            .zip(0..)
            .filter(|(state, _)| **state == This::Initialising)
            .map(|(_, index)| index)
            .collect();
        // The second call of the twelve instructions.
        assert_eq!((calls, found.len()), (vec![10], 12));
    }
}
