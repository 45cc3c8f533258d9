//! Codes samples, each by those before it.

use std::collections::HashMap;

use super::numbers::{Numbers, bits};
use super::range_coder::{Coder, Probability};
use super::recent::{Recent, context};
use super::sample::{END, MAX_CHAIN, Raw, SampleWords};
use crate::format::{CONTEXT_KERNEL, CONTEXT_USER, misc};

/// What is known of the samples so far.
///
/// Every function codes with an encoder or a decoder. With a decoder, the fields of the sample are what was left of another one, and only
/// what was coded may decide what is coded next.
#[derive(Debug)]
pub struct Samples {
    task: u64,
    tasks: HashMap<u64, Task>,
    /// The words of their callchains.
    words: usize,
    cpus: HashMap<u64, Cpu>,
    periods: HashMap<u64, u64>,
    same: [Probability; 6],
    fields: Recent,
    field: Numbers,
    times: Numbers,
    period: Numbers,
    chains: Chains,
    /// The sampled instructions, by the leaf of the callchain.
    addresses: Recent,
    address: Numbers,
    last_address: u64,
    /// The last frame pointer, by the callers of a stack.
    frames: HashMap<u64, u64>,
    frame: Numbers,
    last_frame: u64,
}

/// What is known of a thread: what its last sample had.
#[derive(Debug, Default)]
struct Task {
    shape: Shape,
    uid: u64,
    chain: Vec<u64>,
}

/// What a thread's samples have in common, mostly.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Shape {
    misc: u64,
    id: u64,
    cpu: u64,
    raw_len: u64,
}

/// What is known of a processor.
#[derive(Debug, Default, Clone, Copy)]
struct Cpu {
    time: u64,
    /// The bits of the last difference to the expected time.
    bits: u32,
}

/// Which of [`Samples::same`] is meant.
#[derive(Debug, Clone, Copy)]
enum Same {
    Shape,
    Period,
    Leaf,
    Address,
    Frame,
    Uid,
}

/// The most threads, processors, events and stacks of which the last sample is known. Beyond that, all are forgotten.
const MAX_KNOWN: usize = 1 << 14;
/// The most words of the callchains of these threads.
const MAX_WORDS: usize = 1 << 20;
/// The most bits of a difference in time that are a context of their own.
const TIME_BITS: u32 = 40;

impl Samples {
    pub fn new() -> Self {
        Self {
            task: 0,
            tasks: HashMap::new(),
            words: 0,
            cpus: HashMap::new(),
            periods: HashMap::new(),
            same: [Probability::default(); 6],
            fields: Recent::new(1),
            field: Numbers::new(1),
            times: Numbers::new((TIME_BITS / 2).saturating_add(1) as usize),
            period: Numbers::new(1),
            chains: Chains::new(),
            addresses: Recent::new(1),
            address: Numbers::new(1),
            last_address: 0,
            frames: HashMap::new(),
            frame: Numbers::new(1),
            last_frame: 0,
        }
    }

    /// Codes a sample.
    ///
    /// # Errors
    ///
    /// The decoded callchain is longer than one of a record.
    pub fn code(
        &mut self,
        coder: &mut impl Coder,
        sample: &mut SampleWords,
    ) -> Result<(), &'static str> {
        sample.task = self.field(coder, u64::MAX, self.task, sample.task);
        self.task = sample.task;
        let mut task = self.tasks.remove(&sample.task).unwrap_or_default();
        self.words = self.words.saturating_sub(task.chain.len());
        self.shape(coder, &mut task, sample);
        self.time(coder, sample);
        self.chains
            .code(coder, &mut task.chain, &mut sample.chain)?;
        self.instruction(coder, sample);
        self.raw(coder, &mut task, sample);
        self.words = self.words.saturating_add(task.chain.len());
        if self.tasks.len() >= MAX_KNOWN || self.words > MAX_WORDS {
            self.tasks.clear();
            self.words = task.chain.len();
        }
        self.tasks.insert(sample.task, task);
        Ok(())
    }

    fn is_same(&mut self, coder: &mut impl Coder, of: Same, same: bool) -> bool {
        match self.same.get_mut(of as usize) {
            Some(probability) => coder.bit(probability, same),
            None => same,
        }
    }

    /// Codes a field that has few values.
    fn field(&mut self, coder: &mut impl Coder, name: u64, last: u64, value: u64) -> u64 {
        let context = context(&[name, last]);
        let found = self.fields.find(coder, context, 0, value);
        found.unwrap_or_else(|| {
            let value = self.field.code_from(coder, 0, last, value);
            self.fields.insert(context, value);
            value
        })
    }

    fn shape(&mut self, coder: &mut impl Coder, task: &mut Task, sample: &mut SampleWords) {
        let shape = Shape {
            misc: sample.misc,
            id: sample.id,
            cpu: sample.cpu,
            raw_len: sample.raw.len,
        };
        if !self.is_same(coder, Same::Shape, shape == task.shape) {
            task.shape = Shape {
                misc: self.field(coder, 0, task.shape.misc, shape.misc),
                id: self.field(coder, 1, task.shape.id, shape.id),
                cpu: self.field(coder, 2, task.shape.cpu, shape.cpu),
                raw_len: self.field(coder, 3, task.shape.raw_len, shape.raw_len),
            };
        }
        sample.misc = task.shape.misc & u64::from(u16::MAX);
        sample.id = task.shape.id;
        sample.cpu = task.shape.cpu;
        sample.raw.len = task.shape.raw_len.min(Raw::MOST as u64);
    }

    /// Codes the period, and the time by how late the sample came: samples of a processor are a period apart if it counts time.
    fn time(&mut self, coder: &mut impl Coder, sample: &mut SampleWords) {
        limit(&mut self.periods);
        limit(&mut self.cpus);
        let last = self.periods.get(&sample.id).copied().unwrap_or(0);
        sample.period = match self.is_same(coder, Same::Period, sample.period == last) {
            true => last,
            false => self.period.code_from(coder, 0, last, sample.period),
        };
        self.periods.insert(sample.id, sample.period);
        let cpu = self.cpus.entry(sample.cpu).or_default();
        let expected = cpu.time.wrapping_add(sample.period);
        let row = (cpu.bits.min(TIME_BITS) / 2) as usize;
        sample.time = self.times.code_from(coder, row, expected, sample.time);
        let late = sample.time.wrapping_sub(expected).cast_signed();
        *cpu = Cpu {
            time: sample.time,
            bits: bits(late.unsigned_abs()),
        };
    }

    /// Codes the sampled instruction, which is the leaf of the callchain mostly, and what the PMU saw.
    fn instruction(&mut self, coder: &mut impl Coder, sample: &mut SampleWords) {
        let leaf = leaf(sample.misc, &sample.chain);
        sample.ip = match self.is_same(coder, Same::Leaf, sample.ip == leaf) {
            true => leaf,
            false => self.address.code_from(coder, 0, leaf, sample.ip),
        };
        if self.is_same(coder, Same::Address, sample.addr == sample.ip) {
            sample.addr = sample.ip;
            return;
        }
        let found = self.addresses.find(coder, sample.ip, 0, sample.addr);
        sample.addr = found.unwrap_or_else(|| {
            let address = self
                .address
                .code_from(coder, 0, self.last_address, sample.addr);
            self.addresses.insert(sample.ip, address);
            address
        });
        self.last_address = sample.addr;
    }

    /// Codes the user id, the frame pointer, which is that of the same callers mostly, and the flags.
    fn raw(&mut self, coder: &mut impl Coder, task: &mut Task, sample: &mut SampleWords) {
        let [uid, frame, flags] = &mut sample.raw.words;
        let len = sample.raw.len;
        if len > 0 {
            if !self.is_same(coder, Same::Uid, *uid == task.uid) {
                task.uid = self.field.code_from(coder, 0, task.uid, *uid);
            }
            *uid = task.uid;
        }
        if len > 1 {
            limit(&mut self.frames);
            let mut callers = sample.chain.iter().rev().skip(1).copied();
            let [second, third] = [callers.next(), callers.next()].map(Option::unwrap_or_default);
            let depth = sample.chain.len() as u64;
            let callers = context(&[sample.task, depth, second, third]);
            let last = self.frames.get(&callers).copied().unwrap_or(0);
            *frame = match self.is_same(coder, Same::Frame, *frame == last) {
                true => last,
                false => self.frame.code_from(coder, 0, self.last_frame, *frame),
            };
            self.last_frame = *frame;
            self.frames.insert(callers, *frame);
        }
        if len > 2 {
            *flags = self.field.code(coder, 0, *flags);
        }
    }
}

/// Forgets what is known if it is much.
fn limit<V>(known: &mut HashMap<u64, V>) {
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
}

/// Returns the leaf of a callchain in a mode, or 0.
fn leaf(mode: u64, chain: &[u64]) -> u64 {
    let context = match mode & u64::from(misc::CPUMODE_MASK) == u64::from(misc::KERNEL) {
        true => CONTEXT_KERNEL,
        false => CONTEXT_USER,
    };
    let at = chain.iter().rposition(|word| *word == context);
    let leaf = at.and_then(|at| chain.get(at.checked_sub(1)?));
    leaf.copied().unwrap_or(0)
}

/// What is known of callchains.
#[derive(Debug)]
struct Chains {
    /// How many frames of the thread's last stack have returned.
    returned: Numbers,
    last_returned: u32,
    /// The frames that followed two callers.
    after_two: Recent,
    /// The frames that followed a caller.
    after_one: Recent,
    frame: Numbers,
    last_frame: u64,
}

/// The most bits of a number of frames that are a context of their own.
const RETURNED_BITS: u32 = 14;

impl Chains {
    fn new() -> Self {
        Self {
            returned: Numbers::new(RETURNED_BITS.saturating_add(1) as usize),
            last_returned: 0,
            after_two: Recent::new(3),
            after_one: Recent::new(3),
            frame: Numbers::new(1),
            last_frame: 0,
        }
    }

    /// Codes a callchain by the thread's last one, which it replaces.
    fn code(
        &mut self,
        coder: &mut impl Coder,
        last: &mut Vec<u64>,
        chain: &mut Vec<u64>,
    ) -> Result<(), &'static str> {
        let both = last.iter().zip(chain.iter());
        let common = both.take_while(|(last, this)| last == this).count();
        let returned = last.len().saturating_sub(common) as u64;
        let row = self.last_returned.min(RETURNED_BITS) as usize;
        let returned = self.returned.code(coder, row, returned);
        self.last_returned = bits(returned);
        let returned = usize::try_from(returned).unwrap_or(usize::MAX);
        last.truncate(last.len().saturating_sub(returned));
        // Where frames have returned, another one was called.
        let mut variant = returned.min(1);
        loop {
            let word = chain.get(last.len()).copied().unwrap_or(END);
            let word = self.word(coder, last, variant, word);
            variant = 2;
            if word == END {
                break;
            }
            if last.len() >= MAX_CHAIN {
                return Err("a callchain that is longer than a record");
            }
            last.push(word);
        }
        chain.clone_from(last);
        Ok(())
    }

    /// Codes the word behind others.
    fn word(&mut self, coder: &mut impl Coder, before: &[u64], variant: usize, word: u64) -> u64 {
        let mut callers = before.iter().rev().copied();
        let [first, second] = [callers.next().unwrap_or(0), callers.next().unwrap_or(0)];
        let two = context(&[first, second]);
        if let Some(found) = self.after_two.find(coder, two, variant, word) {
            return found;
        }
        let found = self.after_one.find(coder, first, variant, word);
        let word = found.unwrap_or_else(|| {
            let near = self.after_one.first(first).filter(|near| *near != END);
            let near = near.unwrap_or(self.last_frame);
            let word = self.frame.code_from(coder, 0, near, word);
            self.last_frame = word;
            self.after_one.insert(first, word);
            word
        });
        self.after_two.insert(two, word);
        word
    }
}
