//! What is known of the VM's frame in which each sample was taken?
//!
//! The data that the paper's DIM collects (its Table IV), from the samples themselves: which
//! method, class and source line, at which address of which mapping, in whose thread, how deep
//! in its stack and where its frame lies.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use varid_model::{Address, FrameAddress, Layer, Mode};
use varid_recording::{CpuMode, NO_UID, Sample, remap};

use crate::{
    place::{Place, Symbol},
    resolve::Resolver,
    tables::ImageId,
    tree::{Share, Weight},
};

/// Instead of a line: the code is native, no bytecode. Dalvik has the same number for it.
pub const NATIVE_LINE: i64 = -2;

/// Instead of a line: the dex file tells none. Dalvik has the same number for it.
pub const NO_LINE: i64 = -1;

/// A place where a thread was sampled: an instruction in a frame of its VM or, in threads that
/// have none, of native code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dim {
    /// The effective user id of the process; none: it is not known.
    pub uid: Option<u32>,
    /// The process: the paper's TGID.
    pub pid: u32,
    /// The thread: the paper's PID.
    pub tid: u32,
    /// Where in its method: in code units, of native functions in bytes.
    pub pc: u64,
    /// The instruction's address.
    pub vma: u64,
    /// The method's or function's name alone.
    pub method: String,
    /// The descriptor of its class; empty: it has none.
    pub class: String,
    /// The source file's name; none: it is not known.
    pub file: Option<Arc<str>>,
    /// The source line, [`NATIVE_LINE`] or [`NO_LINE`].
    pub line: i64,
    /// Frames of the VM on the stack, this one among them; 0: this one is none.
    pub depth: u64,
    /// Where the frame lies: the VM's frame pointer; 0: nowhere, or there is none.
    pub frame: u64,
    /// What its samples count for.
    pub layer: Layer,
    /// The mapping that the address is in; none: the kernel's, or an unknown one.
    pub map: Option<Map>,
    /// Own: the instruction itself ran. Total: it, or what it had called.
    pub share: Share,
}

/// A stretch of a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What the process may do with it, as it was mapped; none: it is not known.
    pub mode: Option<Mode>,
    /// The mapped file.
    pub file: PathBuf,
}

/// What makes a place another one.
type Key = (Whose, Where, u64, u64);
/// Process, thread, user.
type Whose = (u32, u32, u32);
/// Image and offset, so that what is mapped later at the same address is something else; address.
type Where = (Option<ImageId>, u64, u64);

/// Collects the places of samples.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    rows: Vec<(Option<ImageId>, Dim)>,
    places: HashMap<Key, usize>,
}

impl Collected {
    /// A further sample.
    pub fn add(&mut self, resolver: &mut Resolver, sample: &Sample, weight: Weight) {
        // A kernel sample's managed frames are all callers of the kernel's.
        let kernel = sample.mode == CpuMode::Kernel;
        let is_managed = |frame: &FrameAddress| {
            let address = remap::lookup(*frame).get();
            let stretch = resolver.mapped(sample.pid.get(), address);
            stretch.is_some_and(|stretch| resolver.is_managed(stretch.mapped.image, address))
        };
        let inner = usize::from(kernel);
        let mut frames = sample.user.iter().enumerate().map(|(depth, address)| {
            FrameAddress::in_callchain(depth.saturating_add(inner), *address)
        });
        let innermost = frames.find(is_managed);
        let managed = frames.filter(is_managed);
        let (depth, found) = match innermost {
            Some(found) => ((managed.count() as u64).saturating_add(1), found),
            None if !kernel => {
                let leaf = sample.user.first().copied();
                let leaf = leaf.unwrap_or(sample.original_ip);
                (0, FrameAddress::Instruction(leaf))
            }
            None => {
                let leaf = sample.kernel.first().copied();
                return self.in_kernel(
                    resolver,
                    sample,
                    leaf.unwrap_or(sample.original_ip).get(),
                    weight,
                );
            }
        };
        let vma = remap::lookup(found).get();
        let stretch = resolver.mapped(sample.pid.get(), vma);
        let image = stretch.map(|stretch| stretch.mapped.image);
        let offset = stretch.map_or(vma, |stretch| stretch.mapped.offset(vma));
        let frame = sample.frame.filter(|_| depth > 0);
        let frame = frame.map_or(0, Address::get);
        let key = (whose(sample), (image, offset, vma), depth, frame);
        let row = self.row(key, || {
            let place = resolver.user(sample.pid.get(), found).first().copied();
            let managed = depth > 0;
            let bytecode = managed && !remap::contains(Address::new(vma));
            let named = place.and_then(|place| resolver.place(place));
            let map = stretch.map(|stretch| Map {
                start: stretch.start,
                end: stretch.end,
                mode: stretch.mapped.mode,
                file: PathBuf::new(),
            });
            Dim {
                map,
                ..described(sample, vma, offset, named, (managed, bytecode))
            }
        });
        if let Some((_, row)) = row {
            (row.depth, row.frame) = (depth, frame);
            row.share.total.add(weight);
            if found.is_instruction() {
                row.share.own.add(weight);
            }
        }
    }

    fn in_kernel(&mut self, resolver: &mut Resolver, sample: &Sample, ip: u64, weight: Weight) {
        let key = (whose(sample), (None, ip, ip), 0, 0);
        let row = self.row(key, || {
            let place = resolver
                .kernel(FrameAddress::Instruction(Address::new(ip)))
                .first()
                .copied();
            let named = place.and_then(|place| resolver.place(place));
            described(sample, ip, ip, named, (false, false))
        });
        if let Some((_, row)) = row {
            row.share.total.add(weight);
            row.share.own.add(weight);
        }
    }

    fn row(&mut self, key: Key, make: impl FnOnce() -> Dim) -> Option<&mut (Option<ImageId>, Dim)> {
        let (_, (image, ..), ..) = key;
        let rows = &mut self.rows;
        let index = *self.places.entry(key).or_insert_with(|| {
            rows.push((image, make()));
            rows.len().saturating_sub(1)
        });
        self.rows.get_mut(index)
    }

    /// The places, those with the most samples first. `path`: where an image was.
    pub fn finish(self, path: impl Fn(ImageId) -> Option<PathBuf>) -> Vec<Dim> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (image, mut row) in self.rows {
            match (&mut row.map, image.and_then(&path)) {
                (Some(map), Some(path)) => map.file = path,
                (map, _) => *map = None,
            }
            rows.push(row);
        }
        rows.sort_by(|one, other| {
            let most = other.share.total.samples.cmp(&one.share.total.samples);
            let place = |row: &Dim| (row.pid, row.tid, row.vma, row.depth, row.frame);
            most.then_with(|| place(one).cmp(&place(other)))
        });
        rows
    }
}

const fn whose(sample: &Sample) -> Whose {
    (sample.pid.get(), sample.tid.get(), sample.uid)
}

/// What the symbol at an address says of it.
fn described(
    sample: &Sample,
    vma: u64,
    offset: u64,
    named: Option<(&Symbol, &Place)>,
    (managed, bytecode): (bool, bool),
) -> Dim {
    let symbol = named.map(|(symbol, _)| symbol);
    let location = named.and_then(|(_, place)| place.location.as_ref());
    let name = symbol.map_or("", |symbol| symbol.name.as_str());
    let (class, method) = if managed {
        split(name)
    } else {
        (String::new(), name)
    };
    let bytes = symbol.map_or(0, |symbol| offset.saturating_sub(symbol.start));
    let line = location.map_or(NO_LINE, |location| i64::from(location.line));
    Dim {
        uid: Some(sample.uid).filter(|uid| *uid != NO_UID),
        pid: sample.pid.get(),
        tid: sample.tid.get(),
        // A code unit of a dex file is two bytes.
        pc: match (managed, bytecode) {
            (_, true) => bytes / 2,
            (false, false) => bytes,
            (true, false) => 0,
        },
        // A native method's frame says nothing of where in it.
        vma: if managed && !bytecode {
            vma.saturating_sub(bytes)
        } else {
            vma
        },
        method: method.to_owned(),
        class,
        file: location.map(|location| Arc::clone(&location.file)),
        line: if bytecode { line } else { NATIVE_LINE },
        depth: 0,
        frame: 0,
        layer: symbol.map_or(Layer::Native, |symbol| symbol.layer),
        map: None,
        share: Share::default(),
    }
}

/// `org.example.Balls.fib(int)` is `fib(int)` of `Lorg/example/Balls;`.
fn split(name: &str) -> (String, &str) {
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
    use super::split;

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
            assert_eq!(split(symbol), (class.to_owned(), method), "{symbol}");
        }
    }
}
