//! What is known of the VM's frame in which each sample was taken?
//!
//! The data that the paper's DIM collects (its Table IV), from the samples themselves: which
//! method, class and source line, at which address of which mapping, in whose thread, how deep
//! in its stack and where its frame lies.

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

/// Instead of a line: the code is native, no bytecode. Dalvik has the same number for it.
const NATIVE_LINE: i64 = -2;

/// Instead of a line: the dex file has none. Dalvik has the same number for it.
const NO_LINE: i64 = -1;

/// A place where a thread was sampled: an instruction in a frame of its VM or, in threads that
/// have none, of native code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledFrame {
    /// The effective user id of the process; none: it is not known.
    pub uid: Option<u32>,
    /// The process: the paper's TGID.
    pub pid: Pid,
    /// The thread: the paper's PID.
    pub tid: Tid,
    /// Where in its method: in code units, of native functions in bytes.
    pub pc: u64,
    /// The instruction's address.
    pub vma: Address,
    /// The method's or function's name alone.
    pub method: String,
    /// The descriptor of its class; empty: it has none.
    pub class: String,
    /// The source file's name; none: it is not known.
    pub file: Option<Arc<str>>,
    /// The source line; -2 in native code; -1 if the dex file has none.
    pub line: i64,
    /// Frames of the VM on the stack, this one among them; 0: this one is none.
    pub depth: u64,
    /// Where the frame lies: the VM's frame pointer; 0: nowhere, or there is none.
    pub frame: Address,
    /// What its samples count for.
    pub layer: Layer,
    /// The mapping that the address is in; none: the kernel's, or an unknown one.
    pub mapping: Option<FrameMapping>,
    /// Own: the instruction itself ran. Total: it, or what it had called.
    pub share: SampleShare,
    /// The part of the total in which the instruction is one near that which executed.
    pub approximate: SampleWeight,
}

/// What is left of a mapping around a sampled frame's instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMapping {
    /// First address.
    pub start: Address,
    /// First address behind it.
    pub end: Address,
    /// What the process may do with it, as it was mapped; none: it is not known.
    pub mode: Option<Mode>,
    /// The mapped file.
    pub file: PathBuf,
}

/// Frames are different if any of these is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    owner: (Pid, Tid, u32),
    /// With the offset in the image, as something else may be mapped at the address later.
    image: Option<ImageId>,
    offset: u64,
    vma: Address,
    depth: u64,
    frame: Address,
}

/// Collects the sampled frames of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledFrames {
    /// Each with the image that its mapping shows.
    rows: Vec<(Option<ImageId>, SampledFrame)>,
    places: FastMap<FrameKey, usize>,
}

/// The number of a sample's managed frames, and the innermost of them.
fn managed_frames(
    resolver: &mut Resolver,
    sample: &Sample<&[Address]>,
) -> (u64, Option<FrameAddress>) {
    // A kernel sample's managed frames are all callers of the kernel's.
    let inner = usize::from(sample.mode == CpuMode::Kernel);
    let is_managed = |frame: &FrameAddress| resolver.is_in_method(sample.pid, *frame);
    let mut frames =
        sample.user.iter().enumerate().map(|(depth, address)| {
            FrameAddress::in_callchain(depth.saturating_add(inner), *address)
        });
    let innermost = frames.find(is_managed);
    let callers = frames.filter(is_managed).count() as u64;
    match innermost {
        Some(_) => (callers.saturating_add(1), innermost),
        None => (0, None),
    }
}

impl SampledFrames {
    /// A further sample.
    pub fn add(
        &mut self,
        resolver: &mut Resolver,
        sample: &Sample<&[Address]>,
        weight: SampleWeight,
    ) {
        let pid = sample.pid;
        let (depth, innermost) = managed_frames(resolver, sample);
        let found = match innermost {
            Some(found) => found,
            None => {
                let kernel = sample.mode == CpuMode::Kernel;
                let chain = if kernel { sample.kernel } else { sample.user };
                let leaf = chain.first().copied().unwrap_or(sample.original_ip);
                let leaf = FrameAddress::Instruction(leaf);
                if kernel {
                    self.add_kernel(resolver, sample, leaf, weight);
                    return;
                }
                leaf
            }
        };
        let vma = remap::lookup(found);
        let mapped = resolver.mapping(pid, vma).copied();
        let frame = sample.frame.filter(|_| depth > 0);
        let key = FrameKey {
            owner: owner(sample),
            image: mapped.map(|mapped| mapped.value.image),
            offset: mapped.map_or(vma.get(), |mapped| mapped.value.offset(vma)),
            vma,
            depth,
            frame: frame.unwrap_or_default(),
        };
        let row = self.row(key, || {
            let frame = resolver.user_frames(pid, found).first().copied();
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
            if found.is_instruction() {
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
            owner: owner(sample),
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
            rows.push((key.image, make()));
            rows.len().saturating_sub(1)
        });
        self.rows.get_mut(index).map(|(_, row)| row)
    }

    /// The frames, those with the most samples first. `path`: where an image was.
    pub fn finish(self, path: impl Fn(ImageId) -> Option<PathBuf>) -> Vec<SampledFrame> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (image, mut row) in self.rows {
            match (&mut row.mapping, image.and_then(&path)) {
                (Some(mapping), Some(path)) => mapping.file = path,
                (mapping, _) => *mapping = None,
            }
            rows.push(row);
        }
        rows.sort_by(|one, other| {
            let most = other.share.total.samples().cmp(&one.share.total.samples());
            let place = |row: &SampledFrame| (row.pid, row.tid, row.vma, row.depth, row.frame);
            most.then_with(|| place(one).cmp(&place(other)))
        });
        rows
    }
}

const fn owner(sample: &Sample<&[Address]>) -> (Pid, Tid, u32) {
    (sample.pid, sample.tid, sample.uid)
}

/// What kind of code a sampled frame is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Bytecode,
    /// A VM's frame of a method without bytecode.
    Jni,
    Native,
}

/// What the symbol at an address says of it.
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
    // Where a function without a name begins is not known; copies of one that was made at run time begin in many places.
    let known = symbol.filter(|symbol| !symbol.run_time && (symbol.named || symbol.start != 0));
    let bytes = known.map_or(0, |symbol| key.offset.saturating_sub(symbol.start));
    let line = source.map_or(NO_LINE, |source| i64::from(source.line));
    let (pid, tid, uid) = key.owner;
    SampledFrame {
        uid: Some(uid).filter(|uid| *uid != NO_UID),
        pid,
        tid,
        // A code unit of a dex file is two bytes.
        pc: match code {
            Code::Bytecode => bytes / 2,
            Code::Jni => 0,
            Code::Native => bytes,
        },
        // A native method's frame says nothing of where in it.
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
    // Symbols that readers could take for mangled ones stand in quotes.
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
