//! Describes the VM frame in which each sample was taken.
//!
//! This is the data that the paper's DIM collects (its Table IV), but taken from samples: method, class and source
//! line, address and mapping, thread, stack depth and frame pointer.

use std::{path::PathBuf, sync::Arc};

use varid_model::{Address, FrameAddress, Interval, Layer, Mode, Pid, Tid};
use varid_recording::{CpuMode, NO_UID, Sample, remap};

use crate::{
    fast_hash::FastMap,
    frames::{ImageId, ProfileFrame, ProfileSymbol},
    naming::Resolver,
    shares::SampleShare,
    weights::SampleWeight,
};

/// Line number of native code. Dalvik uses the same value.
const NATIVE_LINE: i64 = -2;

/// Line number if the dex file has no line. Dalvik uses the same value.
const NO_LINE: i64 = -1;

/// A sampled place: an instruction in a VM frame or, in threads without VM frames, in native code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledFrame {
    /// The thread.
    pub thread: SampledThread,
    /// The instruction.
    pub code: SampledCode,
    /// Number of VM frames on the stack, including this one. 0 if this is not a VM frame.
    pub depth: u64,
    /// The VM's frame pointer. 0 if unknown or not a VM frame.
    pub frame: Address,
    /// The layer of its samples.
    pub layer: Layer,
    /// The mapping of the address. None for the kernel or if unknown.
    pub mapping: Option<FrameMapping>,
    /// Own: the instruction was executing. Total: the instruction or its callees were executing.
    pub share: SampleShare,
    /// The part of the total with an approximate instruction.
    pub approximate: SampleWeight,
}

/// The thread of a sampled frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampledThread {
    /// The effective user id of the process. None if unknown.
    pub uid: Option<u32>,
    /// The process: the paper's TGID.
    pub pid: Pid,
    /// The thread: the paper's PID.
    pub tid: Tid,
}

/// The instruction of a sampled frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledCode {
    /// Position in the method in code units, or in a native function in bytes.
    pub pc: u64,
    /// The instruction's address.
    pub vma: Address,
    /// The name of the method or function, without class or parameters.
    pub method: String,
    /// The class descriptor. Empty if there is no class.
    pub class: String,
    /// The source file name. None if unknown.
    pub file: Option<Arc<str>>,
    /// The source line; -2 in native code; -1 if the dex file has none.
    pub line: i64,
}

/// The mapping around a sampled frame's instruction, without parts that were mapped over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMapping {
    /// First address.
    pub start: Address,
    /// First address after the mapping.
    pub end: Address,
    /// The protection and flags with which it was mapped. None if unknown.
    pub mode: Option<Mode>,
    /// The mapped file.
    pub file: PathBuf,
}

/// Identifies a sampled frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    thread: SampledThread,
    /// With the offset in the image, because the address may later belong to another mapping.
    image: Option<ImageId>,
    offset: u64,
    vma: Address,
    depth: u64,
    frame: Address,
}

/// Collects the sampled frames of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledFrames {
    rows: Vec<Row>,
    places: FastMap<FrameKey, usize>,
}

#[derive(Debug, Clone)]
struct Row {
    /// The image of the frame's mapping.
    image: Option<ImageId>,
    frame: SampledFrame,
}

/// The user frame in which a sample was taken.
#[derive(Debug, Clone, Copy)]
struct UserFrame {
    address: FrameAddress,
    /// The number of managed frames, including this one. 0 if this is not a managed frame.
    depth: u64,
}

/// Returns the innermost managed frame of a sample.
fn innermost_managed(resolver: &mut Resolver, sample: &Sample<&[Address]>) -> Option<UserFrame> {
    // In a kernel sample, all managed frames are callers.
    let inner = usize::from(sample.mode == CpuMode::Kernel);
    let is_managed = |frame: &FrameAddress| resolver.is_in_method(sample.pid, *frame);
    let mut frames =
        sample.user.iter().enumerate().map(|(depth, address)| {
            FrameAddress::in_callchain(depth.saturating_add(inner), *address)
        });
    let address = frames.find(is_managed)?;
    let callers = frames.filter(is_managed).count() as u64;
    Some(UserFrame {
        address,
        depth: callers.saturating_add(1),
    })
}

/// Returns the sampled instruction.
fn leaf(sample: &Sample<&[Address]>) -> FrameAddress {
    let chain = match sample.mode {
        CpuMode::Kernel => sample.kernel,
        CpuMode::User => sample.user,
    };
    FrameAddress::Instruction(chain.first().copied().unwrap_or(sample.original_ip))
}

impl SampledFrames {
    /// Adds a sample.
    pub fn add(
        &mut self,
        resolver: &mut Resolver,
        sample: &Sample<&[Address]>,
        weight: SampleWeight,
    ) {
        if let Some(innermost) = innermost_managed(resolver, sample) {
            self.add_user(resolver, sample, innermost, weight);
            return;
        }
        let address = leaf(sample);
        match sample.mode {
            CpuMode::Kernel => self.add_kernel(resolver, sample, address, weight),
            CpuMode::User => {
                let leaf = UserFrame { address, depth: 0 };
                self.add_user(resolver, sample, leaf, weight);
            }
        }
    }

    fn add_user(
        &mut self,
        resolver: &mut Resolver,
        sample: &Sample<&[Address]>,
        UserFrame { address, depth }: UserFrame,
        weight: SampleWeight,
    ) {
        let pid = sample.pid;
        let vma = remap::lookup(address);
        let mapped = resolver.mapping(pid, vma).copied();
        let frame = sample.frame.filter(|_| depth > 0);
        let key = FrameKey {
            thread: thread(sample),
            image: mapped.map(|mapped| mapped.value.image),
            offset: mapped.map_or(vma.get(), |mapped| mapped.value.offset(vma)),
            vma,
            depth,
            frame: frame.unwrap_or_default(),
        };
        let row = self.row(key, || {
            let frame = resolver.user_frames(pid, address).first().copied();
            let named = frame.and_then(|frame| resolver.frame(frame));
            let code = match depth {
                0 => Code::Native,
                _ if remap::contains(vma) => Code::Jni,
                _ => Code::Bytecode,
            };
            let mapping = mapped.map(|Interval { start, end, value }| FrameMapping {
                start,
                end,
                mode: value.mode,
                file: PathBuf::new(),
            });
            SampledFrame {
                mapping,
                ..described(&key, named, code)
            }
        });
        if let Some(row) = row {
            row.share.total.add(weight);
            if address.is_instruction() {
                row.share.own.add(weight);
            }
            if depth > 0 && sample.precision.is_approximate() {
                row.approximate.add(weight);
            }
        }
    }

    fn add_kernel(
        &mut self,
        resolver: &mut Resolver,
        sample: &Sample<&[Address]>,
        leaf: FrameAddress,
        weight: SampleWeight,
    ) {
        let vma = leaf.lookup();
        let key = FrameKey {
            thread: thread(sample),
            image: None,
            offset: vma.get(),
            vma,
            depth: 0,
            frame: Address::default(),
        };
        let row = self.row(key, || {
            let frame = resolver.kernel_frames(leaf).first().copied();
            let named = frame.and_then(|frame| resolver.frame(frame));
            described(&key, named, Code::Native)
        });
        if let Some(row) = row {
            row.share.total.add(weight);
            row.share.own.add(weight);
        }
    }

    fn row(
        &mut self,
        key: FrameKey,
        make: impl FnOnce() -> SampledFrame,
    ) -> Option<&mut SampledFrame> {
        let rows = &mut self.rows;
        let index = *self.places.entry(key).or_insert_with(|| {
            rows.push(Row {
                image: key.image,
                frame: make(),
            });
            rows.len().saturating_sub(1)
        });
        self.rows.get_mut(index).map(|row| &mut row.frame)
    }

    /// Returns the frames, sorted by descending samples. `path` returns the recorded path of an image.
    pub fn finish(self, path: impl Fn(ImageId) -> Option<PathBuf>) -> Vec<SampledFrame> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for Row { image, mut frame } in self.rows {
            match (&mut frame.mapping, image.and_then(&path)) {
                (Some(mapping), Some(path)) => mapping.file = path,
                (mapping, _) => *mapping = None,
            }
            rows.push(frame);
        }
        rows.sort_by(|one, other| {
            let most = other.share.total.samples().cmp(&one.share.total.samples());
            let place = |row: &SampledFrame| {
                let SampledThread { pid, tid, .. } = row.thread;
                (pid, tid, row.code.vma, row.depth, row.frame)
            };
            most.then_with(|| place(one).cmp(&place(other)))
        });
        rows
    }
}

fn thread(sample: &Sample<&[Address]>) -> SampledThread {
    SampledThread {
        uid: Some(sample.uid).filter(|uid| *uid != NO_UID),
        pid: sample.pid,
        tid: sample.tid,
    }
}

/// The kind of code of a sampled frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Bytecode,
    /// A VM frame of a method without bytecode.
    Jni,
    Native,
}

/// Describes an address by its symbol.
fn described(
    key: &FrameKey,
    named: Option<(&ProfileSymbol, &ProfileFrame)>,
    code: Code,
) -> SampledFrame {
    let symbol = named.map(|(symbol, _)| symbol);
    let source = named.and_then(|(_, frame)| frame.line.as_ref());
    let name = symbol.map_or("", |symbol| symbol.name.as_str());
    let (class, method) = match code {
        Code::Bytecode | Code::Jni => split_method_name(name),
        Code::Native => (String::new(), name),
    };
    // The start of a function without a name is unknown. Copies of a run-time function have several starts.
    let known = symbol.filter(|symbol| !symbol.run_time && (symbol.named || symbol.start != 0));
    let bytes = known.map_or(0, |symbol| key.offset.saturating_sub(symbol.start));
    let line = source.map_or(NO_LINE, |source| i64::from(source.line));
    let code = SampledCode {
        // A dex code unit is two bytes.
        pc: match code {
            Code::Bytecode => bytes / 2,
            Code::Jni => 0,
            Code::Native => bytes,
        },
        // The frame of a native method has no position in the method.
        vma: match code {
            Code::Jni => Address::new(key.vma.get().saturating_sub(bytes)),
            Code::Bytecode | Code::Native => key.vma,
        },
        method: method.to_owned(),
        class,
        file: source.map(|source| Arc::clone(&source.file)),
        line: match code {
            Code::Bytecode => line,
            Code::Jni | Code::Native => NATIVE_LINE,
        },
    };
    SampledFrame {
        thread: key.thread,
        code,
        depth: key.depth,
        frame: key.frame,
        layer: symbol.map_or(Layer::Native, |symbol| symbol.layer),
        mapping: None,
        share: SampleShare::default(),
        approximate: SampleWeight::default(),
    }
}

/// `org.example.Balls.fib(int)` is `fib(int)` of `Lorg/example/Balls;`.
fn split_method_name(name: &str) -> (String, &str) {
    // Symbols that could be mistaken for mangled names are quoted.
    let name = name
        .strip_prefix('\'')
        .and_then(|name| name.strip_suffix('\''))
        .unwrap_or(name);
    let parameters = name.find('(').unwrap_or(name.len());
    let class = name.get(..parameters).and_then(|name| name.rfind('.'));
    match class.and_then(|dot| Some((name.get(..dot)?, name.get(dot.saturating_add(1)..)?))) {
        Some((class, method)) => (format!("L{};", class.replace('.', "/")), method),
        None => (String::new(), name),
    }
}

#[cfg(test)]
mod tests {
    use super::split_method_name;

    #[test]
    fn a_symbol_is_its_class_and_its_method() {
        for (symbol, class, method) in [
            ("org.example.Balls.draw", "Lorg/example/Balls;", "draw"),
            (
                "Balls$1.<init>(a.B[],int)",
                "LBalls$1;",
                "<init>(a.B[],int)",
            ),
            ("'_Z1fi.draw'", "L_Z1fi;", "draw"),
            ("app.dex+0x10(", "Lapp;", "dex+0x10("),
            ("draw", "", "draw"),
            ("", "", ""),
        ] {
            assert_eq!(
                split_method_name(symbol),
                (class.to_owned(), method),
                "{symbol}"
            );
        }
    }
}
