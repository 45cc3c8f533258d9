//! How do names without addresses become a session?
//!
//! Each file that the text names is an image of the session, each function of it has 16 bytes, in the order in which they come. An image
//! is mapped at the same place in every process that has a frame in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use varid_model::{Address, FrameAddress, Layer, MonotonicNs, Period, Pid, Precision, Tid};
use varid_recording::{
    CpuMode, ImageKind, MappingRecord, NO_UID, Sample, SessionRecord, SessionWriter,
};
use varid_symbolizer::substitute::Slot;

use crate::{
    error::Result,
    images::{self, ImageFile, MAX_NAMES, NamedImage},
    input::Input,
};

/// Where the first image is mapped, and how far apart they are.
const BASE: u64 = 0x5000_0000_0000;
const WINDOW: u64 = 1 << 32;
/// Bytes of a function.
const SLOT: u64 = 16;
/// The first function's offset: before it lie headers.
const FIRST: u64 = 0x1000;
/// Most images; what belongs to others is in the last one.
const MAX_IMAGES: usize = 4_000;
/// Most functions of an image.
const MAX_FUNCTIONS: u64 = (WINDOW - FIRST) / SLOT;
/// Most bytes of a name.
const MAX_NAME: usize = 4_096;

/// A frame that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedFrame<'a> {
    /// The function.
    pub(crate) name: &'a str,
    /// The file it is in.
    pub(crate) image: &'a str,
    /// Its layer.
    pub(crate) layer: Layer,
}

/// A sample of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextSample<'a> {
    pub(crate) event: usize,
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    pub(crate) period: u64,
    /// The thread's name.
    pub(crate) comm: &'a str,
    /// The instruction, if the text has it.
    pub(crate) ip: Option<u64>,
}

/// An image of the session.
#[derive(Debug)]
struct TextImage {
    file: ImageFile,
    named: NamedImage,
    /// Bytes of its functions' names.
    names: usize,
}

impl TextImage {
    fn is_full(&self) -> bool {
        self.names >= MAX_NAMES || self.named.slots.len() as u64 >= MAX_FUNCTIONS
    }
}

/// Writes the session of a text.
#[derive(Debug)]
pub(crate) struct TextSession {
    pub(crate) writer: SessionWriter,
    pub(crate) excluded: BTreeMap<String, u64>,
    images: Vec<TextImage>,
    by_name: HashMap<(Layer, String), usize>,
    functions: HashMap<(usize, String), Address>,
    /// Which image a process has mapped.
    mapped: HashSet<(u32, usize)>,
    /// Threads by their ids, with their names.
    threads: HashMap<(u32, u32), String>,
    /// The frames of the current sample.
    frames: Vec<Address>,
    /// The images that they are in.
    used: Vec<usize>,
}

impl TextSession {
    pub(crate) fn new(writer: SessionWriter) -> Self {
        Self {
            writer,
            excluded: BTreeMap::new(),
            images: Vec::new(),
            by_name: HashMap::new(),
            functions: HashMap::new(),
            mapped: HashSet::new(),
            threads: HashMap::new(),
            frames: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Adds a frame to the current stack, leaf first.
    pub(crate) fn push(&mut self, input: &Input, frame: NamedFrame<'_>) {
        let image = self.image(input, frame);
        let address = self.function(image, frame.name);
        self.used.push(image);
        // A caller's address lies behind the call.
        let address = match self.frames.is_empty() {
            true => address,
            false => FrameAddress::calling_at(address).recorded(),
        };
        self.frames.push(address);
    }

    /// Forgets the current stack.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.used.clear();
    }

    /// Whether the current stack has no frame.
    pub(crate) const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Writes a sample of the current stack, which is forgotten.
    pub(crate) fn sample(&mut self, sample: &TextSample<'_>) -> Result<()> {
        let time = MonotonicNs::new(sample.time);
        let (pid, tid) = (Pid::new(sample.pid), Tid::new(sample.tid));
        self.name((sample.pid, sample.tid), sample.comm, time)?;
        for image in std::mem::take(&mut self.used) {
            if self.mapped.insert((sample.pid, image)) {
                self.map(image, pid, time)?;
            }
        }
        let frames = std::mem::take(&mut self.frames);
        let leaf = frames.first().copied().unwrap_or_default();
        let written = Sample {
            event: sample.event,
            time,
            pid,
            tid,
            cpu: sample.cpu,
            period: Period::new(sample.period),
            original_ip: sample.ip.map_or(leaf, Address::new),
            mode: CpuMode::User,
            uid: NO_UID,
            frame: None,
            precision: Precision::Exact,
            kernel: &[][..],
            user: &frames[..],
        };
        self.writer.write_sample(&written)?;
        self.frames = frames;
        self.clear();
        Ok(())
    }

    /// A thread has this name from now on.
    pub(crate) fn name(&mut self, task: (u32, u32), name: &str, time: MonotonicNs) -> Result<()> {
        if self.threads.get(&task).is_some_and(|known| known == name) {
            return Ok(());
        }
        self.threads.insert(task, name.to_owned());
        self.writer.write(&SessionRecord::Comm {
            time,
            pid: Pid::new(task.0),
            tid: Tid::new(task.1),
            exec: false,
            name: name.to_owned(),
        })?;
        Ok(())
    }

    /// Counts a sample that is not imported.
    pub(crate) fn exclude(&mut self, reason: &str) {
        let count = self.excluded.entry(reason.to_owned()).or_default();
        *count = count.saturating_add(1);
        self.clear();
    }

    /// Writes the images; the session can be finished. How many there are.
    pub(crate) fn write_images(&mut self, arch: &str) -> Result<usize> {
        let images = std::mem::take(&mut self.images);
        let count = images.len();
        for image in images {
            images::write(&mut self.writer, &image.file, image.named, arch)?;
        }
        Ok(count)
    }

    fn image(&mut self, input: &Input, frame: NamedFrame<'_>) -> usize {
        let key = (frame.layer, short(frame.image));
        let number = self.images.len();
        if let Some(known) = self.by_name.get(&key) {
            let is_full = self.images.get(*known).is_some_and(TextImage::is_full);
            if !is_full || number >= MAX_IMAGES {
                return *known;
            }
        }
        let image = match number >= MAX_IMAGES {
            true => number.saturating_sub(1),
            false => {
                let file = images::file(&self.writer, input, number);
                let named = NamedImage {
                    path: key.1.clone(),
                    kind: ImageKind::Elf,
                    layer: frame.layer,
                    build_id: Vec::new(),
                    slots: Vec::new(),
                };
                self.images.push(TextImage {
                    file,
                    named,
                    names: 0,
                });
                number
            }
        };
        self.by_name.insert(key, image);
        image
    }

    fn function(&mut self, image: usize, name: &str) -> Address {
        let base = BASE.saturating_add(WINDOW.saturating_mul(image as u64));
        let key = (image, short(name));
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let Some(of_image) = self.images.get_mut(image) else {
            return Address::new(base);
        };
        let number = of_image.named.slots.len() as u64;
        let offset = FIRST.saturating_add(number.saturating_mul(SLOT));
        if of_image.is_full() {
            // No function is there: the frame is shown by its image alone.
            return Address::new(base.saturating_add(WINDOW).saturating_sub(SLOT));
        }
        of_image.names = of_image.names.saturating_add(key.1.len());
        of_image.named.slots.push(Slot {
            offset,
            size: SLOT,
            name: key.1.clone(),
        });
        let address = Address::new(base.saturating_add(offset));
        self.functions.insert(key, address);
        address
    }

    fn map(&mut self, image: usize, pid: Pid, time: MonotonicNs) -> Result<()> {
        let Some(TextImage { file, .. }) = self.images.get(image) else {
            return Ok(());
        };
        let mapping = MappingRecord {
            time,
            pid,
            tid: pid.main_thread(),
            start: Address::new(BASE.saturating_add(WINDOW.saturating_mul(image as u64))),
            len: WINDOW,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: file.path.clone(),
            build_id: file.build_id.to_vec(),
        };
        self.writer.write(&SessionRecord::Mapping(mapping))?;
        Ok(())
    }
}

/// A name that is not too long; a function without one is `[unknown]`.
fn short(name: &str) -> String {
    let ends = (0..=MAX_NAME.min(name.len())).rev();
    let cut = ends.take(4).find_map(|end| name.get(..end));
    match cut.unwrap_or_default().trim() {
        "" => "[unknown]".to_owned(),
        name => name.to_owned(),
    }
}
