//! Is what is read in one request what was asked for, whatever the process and the helper say?

use super::super::testing::Words;
use super::*;
use proptest::prelude::*;

const MAP: u64 = 0x300;

fn bytes(address: u64, len: u32) -> Piece {
    Piece::Bytes(MemoryRange { address, len })
}

fn floor(key: u64) -> Piece {
    Piece::Floor {
        map: MAP,
        key,
        before: 8,
        from: 16,
    }
}

fn control() -> Vec<MemoryRange> {
    [0x100, 0x108]
        .map(|address| MemoryRange { address, len: 8 })
        .to_vec()
}

/// Control words 1 and 2; a map from 0x5010 to 7; five words at 0x5000.
fn memory() -> Words {
    let mut words = Words::of(&[(0x100, 1), (0x108, 2), (MAP + 16, 0x1000)]);
    words.write(0x1000, &[0, 0, 0, 0, 0x5010, 7, 0]);
    words.write(0x5000, &[10, 11, 12, 13, 14]);
    words
}

fn batch(pieces: &[Piece]) -> Batch {
    Batch {
        control: control(),
        unless: Vec::new(),
        pieces: pieces.to_vec(),
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The answer, after it has been on the socket.
fn answer(batch: &Batch, memory: &Words) -> BatchAnswer {
    let answer = batch.carry_out(memory).unwrap();
    let received = BatchAnswer::decode(batch, &answer.encode());
    assert_eq!(received.as_ref(), Some(&answer));
    answer
}

#[test]
fn pieces_are_read_in_one_request_and_what_is_not_there_alone_is_missing() {
    let pieces = [
        bytes(0x5008, 16),
        bytes(0x9000, 8),
        floor(0x5020),
        floor(0x500f),
        Piece::Entries { map: MAP },
    ];
    let read = answer(&batch(&pieces), &memory()).read.unwrap();
    let [some, none, found, before_all, entries] = &read.pieces[..] else {
        panic!("{read:?}")
    };
    assert_eq!(some.as_ref().unwrap().bytes(), words(&[11, 12]));
    assert_eq!(*none, None);
    let (node, around) = found.as_ref().unwrap().floor().unwrap();
    assert_eq!((node.key, node.second), (0x5010, 7));
    assert_eq!(around, words(&[11, 12, 13]));
    assert_eq!(before_all.as_ref().unwrap().floor(), None);
    let entries: Vec<_> = entries.as_ref().unwrap().entries().collect();
    assert_eq!(entries, [node]);
    assert_eq!(read.after, words(&[1, 2]));
}

#[test]
fn what_begins_on_the_last_page_that_is_mapped_has_the_bytes_of_that_page() {
    let mut memory = memory();
    memory.write(0x1000, &[0, 0, 0, 0, 0x5ff8, 7, 0]);
    memory.write(0x5ff0, &[20, 21]);
    let (address, len) = (0x5ff0, 24);
    let available = |address| Piece::Available(MemoryRange { address, len });
    let pieces = [floor(0x6000), available(address), available(0x9000)];
    let read = answer(&batch(&pieces), &memory).read.unwrap();
    let [found, some, none] = &read.pieces[..] else {
        panic!("{read:?}")
    };
    let found = found.as_ref().unwrap().floor();
    assert_eq!(found.unwrap().1, words(&[20, 21]));
    assert_eq!(some.as_ref().unwrap().bytes(), words(&[20, 21]));
    assert_eq!(*none, None);
}

#[test]
fn pointers_are_followed_as_far_as_they_lead() {
    let mut memory = memory();
    memory.write(0x6000, &[0, 0x7000]);
    memory.write(0x7010, &[0x1_0000_0000 + 0x8000]);
    let link = |offset, size| Link { offset, size };
    let chain = |first| Piece::Chain {
        start: 0x6000,
        links: [link(first, 8), link(16, 4), link(0, 8), link(0, 8)],
    };
    let read = answer(&batch(&[chain(8), chain(0), chain(16)]), &memory).read;
    let pointers =
        |piece: &Option<PieceBytes>| -> Vec<u64> { piece.as_ref().unwrap().pointers().collect() };
    let found: Vec<_> = read.unwrap().pieces.iter().map(pointers).collect();
    // The last ones: a pointer is not there, is null, and the first is not there.
    assert_eq!(found, [vec![0x7000, 0x8000], vec![0], vec![]]);
}

#[test]
fn nothing_is_read_while_the_control_words_stay() {
    let memory = memory();
    let mut batch = batch(&[bytes(0x5000, 8), floor(0x5020)]);
    batch.unless = words(&[1, 2]);
    let unchanged = answer(&batch, &memory);
    assert_eq!((unchanged.read, memory.reads()), (None, 2));
    batch.unless = words(&[1, 3]);
    assert!(answer(&batch, &memory).read.is_some());
}

#[test]
fn without_control_words_there_is_no_answer() {
    let mut batch = batch(&[bytes(0x5000, 8)]);
    batch.control.push(MemoryRange {
        address: 0x9000,
        len: 8,
    });
    assert!(batch.carry_out(&memory()).is_err());
}

#[test]
fn a_process_cannot_make_the_answer_large() {
    let mut memory = memory();
    memory.write(0x1000, &[0, 0, 0x1000, 0x1000, 0x5010, 7, 0]);
    let huge = [bytes(0x5000, u32::MAX); 4];
    let pieces = [&huge[..], &[Piece::Entries { map: MAP }]].concat();
    let read = answer(&batch(&pieces), &memory).read.unwrap();
    assert_eq!(read.pieces[..4], [None, None, None, None]);
    assert_eq!(read.pieces[4].as_ref().unwrap().entries().count(), 1);
}

#[test]
fn an_answer_that_is_short_or_too_long_is_none() {
    let mut batch = batch(&[bytes(0x5000, 8), floor(0x5020)]);
    let whole = batch.carry_out(&memory()).unwrap().encode();
    for len in 0..whole.len() {
        assert_eq!(BatchAnswer::decode(&batch, &whole[..len]), None, "{len}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(BatchAnswer::decode(&batch, &longer), None);
    // Nothing but the control words means that they have not changed.
    let control = words(&[1, 2]);
    assert_eq!(BatchAnswer::decode(&batch, &control), None);
    batch.unless = words(&[9, 9]);
    assert_eq!(BatchAnswer::decode(&batch, &control), None);
}

#[test]
fn a_piece_of_another_length_than_it_can_have_is_no_answer() {
    let batch = batch(&[bytes(0x5000, 8)]);
    let mut whole = batch.carry_out(&memory()).unwrap().encode();
    whole[16] = 4;
    whole.drain(20..24);
    assert_eq!(BatchAnswer::decode(&batch, &whole), None);
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (
        0..4u8,
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
    );
    let piece = piece.prop_map(|(kind, map, key, before, from)| match kind {
        0 => bytes(map, before),
        1 => Piece::Floor {
            map,
            key,
            before,
            from,
        },
        2 => Piece::Entries { map },
        3 => Piece::Chain {
            start: map,
            links: [4, 8, 8, 4].map(|size| Link {
                offset: before as u16,
                size,
            }),
        },
        _ => Piece::Available(MemoryRange {
            address: map,
            len: before,
        }),
    });
    prop::collection::vec(piece, 0..8)
}

proptest! {
    #[test]
    fn a_batch_is_on_the_socket_what_it_is_here(pieces in pieces()) {
        let batch = batch(&pieces);
        let mut numbers = Vec::new();
        batch.encode(&mut numbers);
        let mut rest = numbers.iter();
        prop_assert_eq!(Batch::decode(|| rest.next().copied()), Some(batch));
        for len in 0..numbers.len() {
            let mut rest = numbers[..len].iter();
            prop_assert_eq!(Batch::decode(|| rest.next().copied()), None);
        }
    }

    #[test]
    fn no_answer_is_trusted(answer in prop::collection::vec(any::<u8>(), 0..120)) {
        let batch = batch(&[bytes(0x5000, 8), floor(0x5020), Piece::Entries { map: MAP }]);
        if let Some(answer) = BatchAnswer::decode(&batch, &answer) {
            prop_assert_eq!(answer.read.unwrap().pieces.len(), 3);
        }
    }
}
