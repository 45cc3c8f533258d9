//! HotSpot's code: what the shim is told of it, and what a record has of its frames.

use crate::abi::{
    ANCHOR, BLOB_FIELDS, CODE_HEAPS, JAVA_BCP, JAVA_METHOD, JAVA_RESUMES, JAVA_SENDER, RawCodeHeap,
    RawJavaFrame, RawJvm,
};
use std::ops::Range;
use varid_model::{Address, Resumption, StackWord};

/// Memory that HotSpot has reserved for code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeHeapPlace {
    /// Its addresses.
    pub reserved: Range<Address>,
    /// The first byte of its segment map.
    pub segment_map: Address,
    /// The size of a segment in bytes, as a power of two.
    pub log2_segment_size: u8,
}

/// A number in a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its offset, in bytes.
    pub offset: u32,
    /// Its size, in bytes.
    pub size: u32,
}

/// Where a code blob has its first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobCodePlace {
    /// A pointer at this offset.
    Pointer(u32),
    /// At this offset is the distance from the blob.
    Offset(FieldPlace),
}

/// What leads from HotSpot's code and stacks to its frames. Offsets are in bytes. Those from a frame pointer are negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JvmPlaces {
    /// Its code heaps.
    pub heaps: Vec<CodeHeapPlace>,
    /// Its interpreter.
    pub interpreter: Range<Address>,
    /// The return address of calls from the VM.
    pub call_returns: Address,
    /// From a heap's block to its blob.
    pub block_header: u32,
    /// In a blob: its size in bytes.
    pub blob_size: FieldPlace,
    /// In a blob: the words of its frames.
    pub blob_frame: FieldPlace,
    /// In a blob: bytes of code until a frame is made.
    pub blob_complete: FieldPlace,
    /// In a blob: the first instruction.
    pub blob_code: BlobCodePlace,
    /// In a compiled method: the number of its compilation.
    pub compile_id: FieldPlace,
    /// From an interpreter's frame pointer to its caller's stack pointer.
    pub frame_sender: i32,
    /// From an interpreter's frame pointer to its method.
    pub frame_method: i32,
    /// From an interpreter's frame pointer to its bytecode pc.
    pub frame_bcp: i32,
    /// From the frame pointer of a call from the VM to its `JavaCallWrapper`.
    pub frame_wrapper: i32,
    /// In a `JavaCallWrapper`: the thread's last Java frame.
    pub wrapper_anchor: u32,
    /// In a `JavaThread`: its last Java frame.
    pub thread_anchor: u32,
    /// In an anchor: the stack pointer, the pc and the frame pointer.
    pub anchor: [u32; 3],
}

/// A HotSpot, in the shim's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JvmTarget(pub(crate) RawJvm);

impl JvmPlaces {
    /// A JDK 17 for x86-64 with one code heap, as tests and the fuzz target make one up.
    #[doc(hidden)]
    pub fn of_jdk_17(
        heap: CodeHeapPlace,
        interpreter: Range<Address>,
        call_returns: Address,
    ) -> Self {
        let field = |offset| FieldPlace { offset, size: 4 };
        Self {
            heaps: vec![heap],
            interpreter,
            call_returns,
            block_header: 16,
            blob_size: field(12),
            blob_frame: field(28),
            blob_complete: field(20),
            blob_code: BlobCodePlace::Pointer(32),
            compile_id: field(304),
            frame_sender: -8,
            frame_method: -24,
            frame_bcp: -64,
            frame_wrapper: -48,
            wrapper_anchor: 32,
            thread_anchor: 656,
            anchor: [0, 8, 16],
        }
    }
}

impl JvmTarget {
    /// Returns None for a HotSpot whose structures are others than the shim can read: it has too many code heaps, or fields that are too far
    /// from one another.
    pub fn new(places: &JvmPlaces) -> Option<Self> {
        let is_frame = below(places.frame_sender)? == JAVA_SENDER
            && below(places.frame_method)? == JAVA_METHOD
            && below(places.frame_bcp)? == JAVA_BCP;
        let fields = [places.blob_size, places.blob_frame, places.blob_complete];
        let first = fields.iter().map(|field| field.offset).min()?;
        let of_blob = |field: FieldPlace, sizes: &[u32]| {
            let offset = field.offset.checked_sub(first)?;
            let end = offset.checked_add(4)?;
            let is_read = end <= BLOB_FIELDS.into() && sizes.contains(&field.size);
            short(offset).filter(|_| is_read)
        };
        let [anchor_sp, anchor_pc, anchor_fp] = places.anchor.map(|offset| {
            let is_read = offset.checked_add(8)? <= ANCHOR.into();
            short(offset).filter(|_| is_read && offset % 4 == 0)
        });
        let (blob_code, has_code_offset) = match places.blob_code {
            BlobCodePlace::Pointer(offset) => (offset, 0),
            BlobCodePlace::Offset(field) => (field.offset, u8::from(field.size == 4)),
        };
        let is_code = matches!(places.blob_code, BlobCodePlace::Pointer(_)) || has_code_offset == 1;
        let is_known = is_frame && is_code && places.compile_id.size == 4;
        let mut raw = RawJvm {
            heaps: heaps(&places.heaps)?,
            code_start: places
                .heaps
                .iter()
                .map(|heap| heap.reserved.start.get())
                .min()?,
            code_end: places
                .heaps
                .iter()
                .map(|heap| heap.reserved.end.get())
                .max()?,
            interpreter_start: places.interpreter.start.get(),
            interpreter_end: places.interpreter.end.get(),
            call_returns: places.call_returns.get(),
            block_header: short(places.block_header)?,
            blob_fields: short(first)?,
            blob_size: of_blob(places.blob_size, &[4])?,
            blob_frame: of_blob(places.blob_frame, &[4])?,
            blob_complete: of_blob(places.blob_complete, &[2, 4])?,
            blob_code: short(blob_code)?,
            compile_id: short(places.compile_id.offset)?,
            frame_wrapper: u16::try_from(below(places.frame_wrapper)?).ok()?,
            wrapper_anchor: short(places.wrapper_anchor)?,
            anchor_sp: anchor_sp?,
            anchor_pc: anchor_pc?,
            anchor_fp: anchor_fp?,
            thread_anchor: short(places.thread_anchor)?,
            has_code_offset,
            ..RawJvm::default()
        };
        raw.has_short_complete = u8::from(places.blob_complete.size == 2);
        is_known.then_some(Self(raw))
    }
}

fn heaps(places: &[CodeHeapPlace]) -> Option<[RawCodeHeap; CODE_HEAPS]> {
    let mut heaps = [RawCodeHeap::default(); CODE_HEAPS];
    if places.len() > heaps.len() {
        return None;
    }
    for (heap, place) in heaps.iter_mut().zip(places) {
        *heap = RawCodeHeap {
            start: place.reserved.start.get(),
            end: place.reserved.end.get(),
            segments: place.segment_map.get(),
            log2_segment: place.log2_segment_size.into(),
            reserved: 0,
        };
    }
    Some(heaps)
}

fn short(offset: u32) -> Option<u16> {
    u16::try_from(offset).ok()
}

/// Returns how far below a frame pointer an offset is.
fn below(offset: i32) -> Option<u64> {
    u64::try_from(offset.checked_neg()?).ok()
}

/// The code blob that an address of code was in when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledBlob {
    /// Its first byte.
    pub start: Address,
    /// Its size in bytes.
    pub size: u32,
    /// The number of the compilation, if it is a compiled method.
    pub compile_id: u32,
}

impl SampledBlob {
    /// Returns true if an address is in it.
    fn contains(&self, address: Address) -> bool {
        let offset = address.offset_from(self.start);
        offset.is_some_and(|offset| offset < self.size.into())
    }
}

/// The code that a sample's frames executed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampledCode {
    /// By address.
    blobs: Vec<SampledBlob>,
    methods: Vec<Address>,
}

impl SampledCode {
    /// Returns the blob that an address was in. None if the shim has not found its frame.
    pub fn at(&self, address: Address) -> Option<&SampledBlob> {
        let after = self.blobs.partition_point(|blob| blob.start <= address);
        let blob = self.blobs.get(after.checked_sub(1)?)?;
        blob.contains(address).then_some(blob)
    }

    /// Returns true if the shim has found no frame.
    pub fn is_empty(&self) -> bool {
        self.blobs.is_empty() && self.methods.is_empty()
    }

    /// The code blobs, by address.
    pub fn blobs(&self) -> &[SampledBlob] {
        &self.blobs
    }

    /// The pointers to the methods that were interpreted, by address.
    pub fn methods(&self) -> &[Address] {
        &self.methods
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.blobs.clear();
        self.methods.clear();
    }

    /// Replaces them by those of a record's frames.
    pub(crate) fn set(&mut self, frames: &[RawJavaFrame]) {
        self.clear();
        let of_blobs = frames
            .iter()
            .filter(|frame| frame.sender == 0 && frame.code != 0);
        self.blobs.extend(of_blobs.map(|frame| SampledBlob {
            start: Address::new(frame.code),
            size: (frame.detail >> 32) as u32,
            compile_id: frame.detail as u32,
        }));
        self.blobs.sort_unstable();
        self.blobs.dedup();
        let interpreted = frames.iter().filter(|frame| frame.sender > JAVA_RESUMES);
        let methods = interpreted.map(|frame| Address::new(frame.code));
        self.methods.extend(methods);
        self.methods.sort_unstable();
        self.methods.dedup();
    }
}

impl RawJavaFrame {
    /// Decodes a record's bytes.
    pub(crate) fn of(bytes: &[u8; size_of::<Self>()]) -> Self {
        let (words, _) = bytes.as_chunks();
        let word = |index: usize| words.get(index).copied().map_or(0, u64::from_le_bytes);
        Self {
            at: word(0) as u32,
            sender: (word(0) >> 32) as u32,
            caller_fp: word(1),
            returns: word(2),
            code: word(3),
            detail: word(4),
        }
    }

    /// Returns where frames go on behind native ones, if it tells that. `stack`: the address of the record's copy.
    pub(crate) fn resumption(&self, stack: Address) -> Option<Resumption> {
        let is_leaf = self.at == 0;
        (self.sender == JAVA_RESUMES).then(|| Resumption {
            from: match is_leaf {
                true => Address::default(),
                false => stack.wrapping_add(self.at.into()),
            },
            sp: Address::new(self.code),
            fp: self.caller_fp,
            returns: Address::new(self.returns),
        })
    }

    /// Returns the words of the stack that it tells. `stack`: the address of the record's copy.
    pub(crate) fn words(&self, stack: Address) -> impl Iterator<Item = StackWord> {
        let at = stack.wrapping_add(self.at.into());
        let word = |at: Address, word: u64| Some(StackWord { at, word });
        let interpreted = |below: u64, value: u64| {
            let place = Address::new(at.get().wrapping_sub(below));
            word(place, value).filter(|_| self.sender != 0)
        };
        let sender = at.wrapping_add(self.sender.into()).get();
        let words = [
            interpreted(JAVA_BCP, self.detail),
            interpreted(JAVA_METHOD, self.code),
            interpreted(JAVA_SENDER, sender),
            word(at, self.caller_fp),
            word(at.wrapping_add(8), self.returns),
        ];
        let is_known = self.at != 0 && self.sender != JAVA_RESUMES;
        words.into_iter().flatten().filter(move |_| is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(start: u64, size: u32, compile_id: u32) -> SampledBlob {
        SampledBlob {
            start: Address::new(start),
            size,
            compile_id,
        }
    }

    #[test]
    fn an_address_has_the_blob_that_it_was_in() {
        let frame = |sender, code, detail| RawJavaFrame {
            sender,
            code,
            detail,
            ..RawJavaFrame::default()
        };
        let mut code = SampledCode::default();
        code.set(&[
            frame(0, 0x2000, 0x100 << 32 | 7),
            frame(0, 0x1000, 0x80 << 32 | 9),
            // A call from the VM, and a method that is interpreted.
            frame(0, 0, 0),
            frame(16, 0x1500, 0x1540),
            frame(0, 0x2000, 0x100 << 32 | 7),
        ]);
        let expected = [blob(0x1000, 0x80, 9), blob(0x2000, 0x100, 7)];
        assert_eq!(code.blobs, expected);
        assert_eq!(code.methods, [Address::new(0x1500)]);
        let at = [0xfff, 0x1000, 0x107f, 0x1080, 0x1500, 0x20ff, 0x2100];
        let found = at.map(|at| code.at(Address::new(at)).map(|blob| blob.compile_id));
        assert_eq!(found, [None, Some(9), Some(9), None, None, Some(7), None]);
    }

    #[test]
    fn a_frame_tells_the_words_by_which_it_is_left() {
        let frame = RawJavaFrame {
            at: 0x100,
            sender: 0x20,
            caller_fp: 1,
            returns: 2,
            code: 3,
            detail: 4,
        };
        let words = |frame: RawJavaFrame| -> Vec<_> {
            let words = frame.words(Address::new(0x7000));
            words.map(|word| (word.at.get(), word.word)).collect()
        };
        let expected = [
            (0x70c0, 4),
            (0x70e8, 3),
            (0x70f8, 0x7120),
            (0x7100, 1),
            (0x7108, 2),
        ];
        assert_eq!(words(frame), expected);
        assert_eq!(words(RawJavaFrame { sender: 0, ..frame }), expected[3..]);
        assert_eq!(words(RawJavaFrame { at: 0, ..frame }), []);
    }

    fn places() -> JvmPlaces {
        let address = Address::new;
        let heap = CodeHeapPlace {
            reserved: address(0x1000)..address(0x9000),
            segment_map: address(0x500),
            log2_segment_size: 7,
        };
        JvmPlaces::of_jdk_17(heap, address(0x2000)..address(0x3000), address(0x3010))
    }

    #[test]
    fn what_the_shim_cannot_read_is_not_walked() {
        let JvmTarget(raw) = JvmTarget::new(&places()).unwrap();
        assert_eq!(
            (raw.blob_fields, raw.blob_frame, raw.frame_wrapper),
            (12, 16, 48)
        );
        assert_eq!((raw.code_start, raw.code_end), (0x1000, 0x9000));
        let short = FieldPlace {
            offset: 54,
            size: 2,
        };
        let recent = JvmPlaces {
            blob_complete: short,
            blob_code: BlobCodePlace::Offset(FieldPlace {
                offset: 36,
                size: 4,
            }),
            ..places()
        };
        let JvmTarget(raw) = JvmTarget::new(&recent).unwrap();
        assert_eq!((raw.has_short_complete, raw.has_code_offset), (1, 1));
        type Change = fn(&mut JvmPlaces);
        let changes: [Change; 8] = [
            |places| places.heaps.clear(),
            |places| places.heaps = vec![places.heaps[0].clone(); 5],
            |places| places.blob_size.offset = 80,
            |places| places.blob_frame.size = 8,
            |places| places.compile_id.size = 2,
            |places| places.frame_bcp = -72,
            |places| places.frame_wrapper = 48,
            |places| places.anchor[2] = 36,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut places = places();
            change(&mut places);
            assert_eq!(JvmTarget::new(&places), None, "{number}");
        }
    }
}
