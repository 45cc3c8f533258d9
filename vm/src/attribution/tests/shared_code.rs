//! Is a frame of instructions that several methods share named by the method that ran, or by none of them?

use super::world::*;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, Stack};
use varid_process::{CodeImage, ProcessImage};
use varid_shim::flags::IN_BODY;
use varid_symbolizer::Location;
use varid_vm::Method;

const SHARED: u64 = 0x7180_0000_0000;

/// A process that maps the compact dex file whose methods share their instructions.
fn world() -> (World, Rc<CodeImage>) {
    let path = "../symbolizer/tests/fixtures/shared.cdex";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let dex = Rc::new(CodeImage::of_dex(bytes, Path::new("/test/shared.dex")).unwrap());
    let mut world = World::list();
    let size = dex.bytecode.bytes().len() as u64;
    let image = ProcessImage::Code(dex.clone());
    world
        .process
        .process
        .space
        .insert(mapped(SHARED, size, 0, image));
    (world, dex)
}

/// A method's index and the address of its first instruction.
fn method(dex: &CodeImage, name: &str) -> (u32, u64) {
    let name = format!("org.example.shared.{name}");
    let named = |index: &u32| dex.bytecode.method_name(*index).as_ref() == Some(&name);
    let index = (0..dex.bytecode.method_count()).find(named).unwrap();
    (index, SHARED + u64::from(dex.code_of(index).unwrap().start))
}

/// The name and the line of a frame, as its mapping's image has it.
fn described(world: &World, depth: usize, recorded: u64) -> (String, u32) {
    let address = varid_model::FrameAddress::in_callchain(depth, Address::new(recorded)).lookup();
    let mapped = world.process.space().at(address.get()).unwrap();
    let ProcessImage::Code(image) = &mapped.image else {
        panic!("{mapped:?}")
    };
    let offset = mapped.offset_of(address.get()) as u32;
    let frame = image.bytecode.frame(offset).unwrap();
    let Some(Location { line, .. }) = frame.location else {
        panic!("no line at {offset:#x}")
    };
    let name = frame.function.strip_prefix("org.example.shared.").unwrap();
    (name.to_owned(), line)
}

#[test]
fn a_frame_whose_method_is_known_has_this_method_s_name_and_lines() {
    let (mut world, dex) = world();
    for (pointer, name) in [(0x200, "One.go"), (0x210, "Two.go")] {
        let (index, start) = method(&dex, name);
        let end = start + dex.code_of(index).unwrap().len() as u64;
        let known = Method::Known {
            image: dex.clone(),
            index,
            code: Some(start..end),
        };
        world.process.set_method(pointer, known);
    }
    let frames = [
        managed(1, 0x200, 0, RELATIVE),
        managed(2, 0x210, 4, RELATIVE),
        managed(3, 0x210, 0, RELATIVE | OUTERMOST),
    ];
    for _ in 0..2 {
        let record = world.record(&["body", "bridge", "native"]);
        let user = world.user(record, IN_BODY, &frames, Stack::Vertical);
        let found: Vec<_> = (0..3)
            .map(|depth| described(&world, depth, user[depth]))
            .collect();
        let expected = [("One.go", 13), ("Two.go", 24), ("Two.go", 23)];
        assert_eq!(found, expected.map(|(name, line)| (name.to_owned(), line)));
    }
}

#[test]
fn a_frame_of_which_the_address_alone_is_known_is_the_method_s_that_its_caller_invokes() {
    let (mut world, dex) = world();
    let [turn, go] = ["One.turn", "One.go"].map(|name| method(&dex, name).1);
    assert_eq!(turn, method(&dex, "Two.turn").1, "they share it");
    let by = |name| method(&dex, name).1;
    let shared = ("One.go and 1 more", 13);
    for (callee, caller, expected) in [
        (turn, by("Calls.one"), ("One.turn", 11)),
        (turn, by("Calls.two"), ("Two.turn", 21)),
        (turn + 4, by("Calls.two"), ("Two.turn", 22)),
        // The receiver decides, and what it was nobody has seen.
        (go, by("Calls.either"), shared),
        // Not what it invokes: native code lies between them that nothing tells of.
        (go, by("Calls.one"), shared),
    ] {
        let outer = managed(2, 0, caller, OUTERMOST);
        let record = || world.record(&["body", "bridge", "native"]);
        let (first, second) = (record(), record());
        let frames = [managed(1, 0, callee, 0), outer];
        let user = world.user(first, IN_BODY, &frames, Stack::Vertical);
        let found = described(&world, 0, user[0]);
        assert_eq!((found.0.as_str(), found.1), expected, "{user:x?}");
        // Further in on the stack, with callers that were seen before.
        let first = world.code[0].start;
        let frames = [managed(0, 0, first, 0), frames[0], frames[1]];
        let deeper = world.user(second, IN_BODY, &frames, Stack::Vertical);
        assert_eq!(described(&world, 1, deeper[1]), found);
    }
}

#[test]
fn native_code_between_two_frames_may_have_called_another_method() {
    let (mut world, dex) = world();
    let frames = [
        managed(1, 0, method(&dex, "Two.turn").1, OUTERMOST),
        managed(2, 0, method(&dex, "Calls.two").1, OUTERMOST),
    ];
    let record = world.record(&["body", "bridge", "native"]);
    let user = world.user(record, IN_BODY, &frames, Stack::Vertical);
    assert_eq!(user[1], left_out());
    assert_eq!(described(&world, 0, user[0]).0, "One.turn and 1 more");
}
