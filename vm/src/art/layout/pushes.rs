//! Finds where a new frame is the innermost one of a thread's list and not linked to its caller yet.
//!
//! `ManagedStack::PushShadowFrame` stores a frame as the thread's top frame and the top frame before it as the link of the new one. Compilers
//! place other instructions between the two stores, and may reverse them: then there is no such place.

use super::library::{Function, Library};
use super::trace::{Code, Trace, Value};
use std::ops::Range;
use varid_instructions::Decoder;

/// Prefixes of the mangled names of functions that are called by an interpreter and call a method: the top frame before the new one is the
/// interpreter's. Other functions with a copy of `PushShadowFrame` begin a list, or push a frame that may be the first one of its list.
const CALLED_BY_INTERPRETERS: [&str; 2] = [
    "_ZN3art11interpreter33ArtInterpreterToInterpreterBridgeE",
    "MterpInvoke",
];

/// Finds these places in a library, by address. `top`: offset of the top frame in a thread. `link`: offset of the link in a frame.
pub(super) fn pushes(library: &Library, top: u16, link: u16) -> Vec<Range<u64>> {
    let is_called_by_interpreters = |function: &&Function| {
        let mut prefixes = CALLED_BY_INTERPRETERS.iter();
        prefixes.any(|prefix| function.name.starts_with(prefix))
    };
    let functions = library.functions.iter().filter(is_called_by_interpreters);
    let of_function = |function| {
        let trace = library.trace(function);
        of_trace(
            &trace,
            library,
            library.decoder,
            library.word(),
            (top, link),
        )
    };
    let mut found: Vec<_> = functions.flat_map(of_function).collect();
    found.sort_unstable_by_key(|push| push.start);
    // A function may have two names.
    found.dedup();
    found
}

/// Finds them in a function.
fn of_trace(
    trace: &Trace,
    code: &impl Code,
    decoder: Decoder,
    word: u8,
    (top, link): (u16, u16),
) -> Vec<Range<u64>> {
    let behind = |at: u64| {
        let instruction = decoder.decode(code.code(at), at)?;
        at.checked_add(instruction.size.into())
    };
    let words = trace.events.iter();
    let stores: Vec<_> = words
        .filter_map(|(at, event)| Some((*at, event.stored(word)?)))
        .collect();
    let linked_behind = |(published, (to, frame)): (u64, (Value, Value))| {
        trace.split(to).filter(|(_, offset)| *offset == top)?;
        let links = |(at, (place, before)): &&(u64, (Value, Value))| {
            *at > published
                && trace.offset_from(*place, frame) == Some(link)
                && trace.loaded_from(*before) == Some((to, word))
        };
        let (linked, _) = stores.iter().find(links)?;
        Some(behind(published)?..behind(*linked)?)
    };
    stores.iter().copied().filter_map(linked_behind).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Fragment;
    use super::*;
    use varid_model::Machine;

    /// Where the thread's top frame is.
    const TOP: u16 = 0xc8;

    /// Where each place begins and ends.
    fn found(machine: Machine, code: &[u8]) -> Vec<(u64, u64)> {
        let decoder = Decoder::of(machine).unwrap();
        let code = Fragment(code);
        let trace = Trace::of(&code, decoder, 0..code.0.len() as u64);
        let found = of_trace(&trace, &code, decoder, machine.word(), (TOP, 0));
        found.iter().map(|push| (push.start, push.end)).collect()
    }

    /// `ArtInterpreterToInterpreterBridge` of Debian's ART 11 in short.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_frame_is_linked_one_instruction_late_on_x86() {
        let load = &[0x49, 0x8b, 0x87, 0xc8, 0, 0, 0][..]; // mov 0xc8(%r15), %rax
        let publish = &[0x49, 0x89, 0x97, 0xc8, 0, 0, 0][..]; // mov %rdx, 0xc8(%r15)
        let link = &[0x48, 0x89, 0x02][..]; // mov %rax, (%rdx)
        let of = |code: &[&[u8]]| found(Machine::X86_64, &code.concat());
        assert_eq!(of(&[load, publish, link, &[0xc3]]), [(14, 17)]);
        // Where it is linked first, where something else is linked, and where a list begins.
        assert_eq!(of(&[load, link, publish, &[0xc3]]), []);
        let other = &[0x48, 0x89, 0x03][..]; // mov %rax, (%rbx)
        assert_eq!(of(&[load, publish, other, &[0xc3]]), []);
        let zero = &[0x48, 0xc7, 0x02, 0, 0, 0, 0][..]; // movq $0, (%rdx)
        assert_eq!(of(&[load, publish, zero, &[0xc3]]), []);
        let other = &[0x48, 0x89, 0x0a][..]; // mov %rcx, (%rdx)
        assert_eq!(of(&[load, publish, other, &[0xc3]]), []);
    }

    #[test]
    fn compilers_place_other_instructions_between_on_arm64() {
        // The same function of ART 11.
        let code = [
            0xf940_6669, // ldr x9, [x19, #200]
            0xf900_6662, // str x2, [x19, #200]
            0xf940_0448, // ldr x8, [x2, #8]
            0xaa03_03f4, // mov x20, x3
            0xaa02_03f5, // mov x21, x2
            0xaa01_03f6, // mov x22, x1
            0xf900_0049, // str x9, [x2]
            0xd65f_03c0, // ret
        ];
        let code: Vec<u8> = code
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        assert_eq!(found(Machine::Aarch64, &code), [(8, 28)]);
    }

    #[test]
    fn a_frame_that_is_linked_first_is_never_without_its_caller_on_arm() {
        // The same function of ART 11.
        let code = [
            0xe594_10c8u32, // ldr r1, [r4, #200]
            0xe582_1000,    // str r1, [r2]
            0xe584_20c8,    // str r2, [r4, #200]
            0xe12f_ff1e,    // bx lr
        ];
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(found(Machine::Arm, &code), []);
    }
}
