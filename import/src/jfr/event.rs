//! The events that are samples.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{
    clock::Clock,
    constants::Constants,
    cursor::Cursor,
    metadata::{ClassId, Metadata},
    value::{Decoder, Fields},
};

/// The event with facts about the VM.
const VM: &str = "jdk.JVMInformation";

/// What a sample of an event weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// One sample, or as many as a field says.
    Samples(Option<&'static str>),
    /// The bytes that a field says.
    Bytes(&'static str),
    /// Its duration in nanoseconds.
    Duration,
}

/// An event whose occurrences are samples.
#[derive(Debug)]
pub(crate) struct EventKind {
    pub(crate) name: &'static str,
    /// The field with the sampled thread.
    thread: &'static str,
    pub(crate) weight: Weight,
}

impl EventKind {
    const fn of_thread(name: &'static str, weight: Weight) -> Self {
        Self {
            name,
            thread: "eventThread",
            weight,
        }
    }

    const fn of_sampler(name: &'static str, weight: Weight) -> Self {
        Self {
            name,
            thread: "sampledThread",
            weight,
        }
    }

    /// All of them, in the order of a session's events.
    pub(crate) const ALL: [Self; 10] = [
        Self::of_sampler("jdk.ExecutionSample", Weight::Samples(None)),
        Self::of_sampler("jdk.NativeMethodSample", Weight::Samples(None)),
        Self::of_sampler("profiler.WallClockSample", Weight::Samples(Some("samples"))),
        Self::of_thread("jdk.ObjectAllocationSample", Weight::Bytes("weight")),
        Self::of_thread("jdk.ObjectAllocationInNewTLAB", Weight::Bytes("tlabSize")),
        Self::of_thread(
            "jdk.ObjectAllocationOutsideTLAB",
            Weight::Bytes("allocationSize"),
        ),
        Self::of_thread("jdk.JavaMonitorEnter", Weight::Duration),
        Self::of_thread("jdk.JavaMonitorWait", Weight::Duration),
        Self::of_thread("jdk.ThreadPark", Weight::Duration),
        Self::of_thread("jdk.ThreadSleep", Weight::Duration),
    ];
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JavaSample {
    /// The index of its event in [`EventKind::ALL`].
    pub(crate) kind: usize,
    /// The end of the event in nanoseconds since 1970.
    pub(crate) time: u64,
    /// The number of the thread.
    pub(crate) thread: i64,
    /// The number of the stack.
    pub(crate) stack: i64,
    pub(crate) weight: u64,
}

/// What the VM says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VmFacts {
    /// The process.
    pub(crate) pid: i64,
    /// The main class or file, and its arguments.
    pub(crate) arguments: Rc<str>,
}

/// What events of a chunk refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) metadata: &'c Metadata,
    pub(super) constants: &'c Constants,
    pub(super) clock: Clock,
}

/// The events of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) samples: Vec<JavaSample>,
    /// Number of events that have another form than their metadata say.
    pub(crate) malformed: u64,
    /// Number of other events, by their classes.
    pub(crate) others: BTreeMap<ClassId, u64>,
    pub(crate) vm: Option<VmFacts>,
    /// What is read of the events of each class. None: nothing.
    wanted: HashMap<ClassId, Option<Wanted>>,
}

/// What is read of an event.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Sample(usize),
    Vm,
}

impl Wanted {
    fn of(name: &str) -> Option<Self> {
        let mut kinds = EventKind::ALL.iter();
        let kind = kinds.position(|kind| kind.name == name);
        kind.map(Self::Sample).or((name == VM).then_some(Self::Vm))
    }
}

impl Sampled {
    /// Adds an event of a class.
    pub(super) fn add(&mut self, class: ClassId, body: Cursor<'_>, context: Context<'_>) {
        let wanted = self.wanted.entry(class);
        let wanted = *wanted.or_insert_with(|| Wanted::of(context.metadata.event_name(class)?));
        let Some(wanted) = wanted else {
            let count = self.others.entry(class).or_default();
            *count = count.saturating_add(1);
            return;
        };
        let fields = Decoder::new(body, context.metadata).record(class);
        let found = fields.as_ref().and_then(|fields| match wanted {
            Wanted::Sample(kind) => {
                self.samples.push(sample(kind, fields, context.clock)?);
                Some(())
            }
            Wanted::Vm => {
                self.vm = Some(vm(fields, context.constants)?);
                Some(())
            }
        });
        if found.is_none() {
            self.malformed = self.malformed.saturating_add(1);
        }
    }

    /// Sorts the samples by time. Each thread has a buffer, which it writes when that is full.
    pub(super) fn sort(&mut self) {
        self.samples.sort_by_key(|sample| sample.time);
    }
}

fn sample(kind: usize, fields: &Fields<'_>, clock: Clock) -> Option<JavaSample> {
    let of_kind = EventKind::ALL.get(kind)?;
    let duration = fields.number("duration").unwrap_or(0).max(0);
    let end = fields.number("startTime")?.saturating_add(duration);
    let positive = |number: i64| u64::try_from(number).ok();
    Some(JavaSample {
        kind,
        time: clock.time(end),
        thread: fields.constant(of_kind.thread).unwrap_or(0),
        stack: fields.constant("stackTrace").unwrap_or(0),
        weight: match of_kind.weight {
            Weight::Samples(None) => 1,
            Weight::Samples(Some(field)) => fields.number(field).map_or(Some(1), positive)?,
            Weight::Bytes(field) => positive(fields.number(field)?)?,
            Weight::Duration => clock.duration(duration),
        },
    })
}

fn vm(fields: &Fields<'_>, constants: &Constants) -> Option<VmFacts> {
    let arguments = fields.text("javaArguments");
    let arguments = arguments.map(|text| constants.text(&text));
    Some(VmFacts {
        pid: fields.number("pid")?,
        arguments: arguments.unwrap_or_else(|| "".into()),
    })
}
