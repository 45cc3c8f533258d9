//! Are calls recorded in their contexts? The elements of the array are those of the tree's file.

use super::*;

/// A node with two slots and a counter.
const SHAPE: u32 = 2 << 16 | 8;

/// Returns a tree for `bytes` bytes of nodes, in a thread that is not counted yet.
fn counts(name: &str, bytes: u64) -> Counts {
    FRAME.set(0);
    SPARE.set(0);
    let folder = std::env::temp_dir();
    let path = folder.join(format!("varid-art-{}-{name}", std::process::id()));
    let tables = Tables::create(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // Below the tree and the spare frames.
    let elements = Elements::at(16 << 30);
    let place = Place::Within(elements.reach());
    let tree = TreeFile::create(&path, bytes, &place).unwrap();
    fs::remove_file(&path).unwrap();
    Counts {
        first: Index::at_bytes(tree.address()).unwrap(),
        tree,
        tables,
        spare: SpareFrames::map(elements).unwrap(),
        counted: Counted::Blocks,
        last_of_owner: &LAST_OF_OWNER,
    }
}

/// No test is of the owner.
static LAST_OF_OWNER: AtomicU64 = AtomicU64::new(0);

/// What the rewritten code does at a call site, or at the end of a method.
fn set_slot(counts: &Counts, frame: Index, slot: u32) {
    counts.store(frame, SLOT, frame::distance(slot).cast_unsigned());
}

fn leave(counts: &Counts, frame: Index) {
    counts.store(frame, SLOT, frame::LEFT.cast_unsigned());
}

#[test]
fn calls_are_counted_in_the_slot_of_their_site_and_behind_a_return_in_the_caller_s() {
    let counts = counts("slots", 1 << 16);
    let main = counts.enter(1, SHAPE);
    set_slot(&counts, main, 1);
    let one = counts.enter(2, SHAPE);
    // The VM calls something for the callee.
    let below = counts.enter(4, SHAPE);
    leave(&counts, below);
    leave(&counts, one);
    let other = counts.enter(3, SHAPE);
    leave(&counts, other);
    assert_eq!(counts.enter(2, SHAPE), one);
    leave(&counts, one);
    let calls = |frame| counts.load(frame, from_frame(node::CALLS));
    assert_eq!([main, one, below, other].map(calls), [1, 2, 1, 1]);
    let parent = |frame| {
        let parent = counts.load(frame, from_frame(node::PARENT_SLOT));
        Index::at_bytes(parent).unwrap()
    };
    let slot = |frame: Index, number| frame.at(from_frame(node::slot(number))).unwrap();
    assert_eq!(parent(one), slot(main, 1));
    assert_eq!(parent(other), slot(main, 1));
    assert_eq!(parent(below), slot(one, 0));
    leave(&counts, main);
    assert_ne!(counts.enter(5, SHAPE), main);
}

#[test]
fn a_handler_goes_on_with_its_own_frame_whatever_was_not_left() {
    let counts = counts("handler", 1 << 16);
    let main = counts.enter(1, SHAPE);
    set_slot(&counts, main, 1);
    counts.enter(2, SHAPE);
    counts.count_abort(main, 7);
    counts.set_frame(main);
    let next = counts.enter(3, SHAPE);
    let parent = counts.load(next, from_frame(node::PARENT_SLOT));
    let slot = main.at(from_frame(node::slot(0))).unwrap();
    assert_eq!(parent, slot.bytes());
}

#[test]
fn exceptions_are_counted_by_their_instruction() {
    let counts = counts("aborts", 1 << 16);
    let main = counts.enter(1, SHAPE);
    for pc in [7, 9, 7] {
        counts.count_abort(main, pc);
    }
    let mut found = Vec::new();
    let mut record = counts.load(main, from_frame(node::ABORTS));
    while record != 0 {
        let index = Index::at_bytes(record).unwrap();
        let word = |bytes| counts.load(index, words(bytes));
        found.push((word(abort::BCI), word(abort::COUNT)));
        record = word(abort::NEXT);
    }
    assert_eq!(found, [(7, 2), (9, 1)]);
}

#[test]
fn calls_without_room_are_counted_as_such_until_a_caller_has_a_node() {
    // Room for the thread's root and two nodes.
    let counts = counts("full", 8 * (8 + 2 * 10));
    let main = counts.enter(1, SHAPE);
    let one = counts.enter(2, SHAPE);
    let lost = counts.enter(3, SHAPE);
    assert!(counts.spare.has(lost));
    assert_eq!(counts.enter(4, SHAPE), lost);
    leave(&counts, lost);
    leave(&counts, one);
    assert_eq!(counts.enter(2, SHAPE), one);
    let folded = counts.tree.word(header::FOLDED).unwrap();
    assert_eq!(folded.load(Ordering::Relaxed), 2);
    assert_eq!(counts.load(one, from_frame(node::CALLS)), 2);
    assert_eq!(counts.load(main, from_frame(node::CALLS)), 1);
}
