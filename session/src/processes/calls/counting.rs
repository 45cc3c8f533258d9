//! Reads the counts of one VM, names its methods, and writes both into the session's contexts.data.

use super::missing::Missing;
use crate::processes::tracked::Tracked;
use crate::recorder::{Recorder, RecorderError};
use varid_model::{Address, CodeUnits, MonotonicNs, Pid};
use varid_recording::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextWriter, CounterId, NodeId,
};
use varid_tunnel::abi::{self, Call};
use varid_tunnel::calls::{CallsFile, Counted};
use varid_tunnel::control::ControlPage;
use varid_vm::{ManagedProcess, Method};

/// The counters of each method, in the order of [`values`].
const COUNTERS: [&str; 3] = ["calls", "returns", "unwinds"];

/// Returns the counters of a session's contexts.data.
pub fn counters() -> Vec<ContextCounter> {
    let counter = |name: &str| ContextCounter {
        name: name.to_owned(),
        unit: "calls".to_owned(),
    };
    COUNTERS.map(counter).to_vec()
}

/// A VM that counts.
#[derive(Debug)]
pub struct Counting {
    /// The number of the session for which the VM counts. A new number resets the counts.
    pub session: u64,
    /// The name of the VM and its build.
    vm: String,
    /// None if another profiler holds the control page, or it cannot be opened. A note says so.
    pub control: Option<ControlPage>,
    pub file: Option<CallsFile>,
    pub counted: Counted,
    /// The method of each entry of the counts. None if it could not be named.
    methods: Vec<Option<NamedMethod>>,
    /// The state of each method in contexts.data. None if it has no name there.
    written: Vec<Option<WrittenCounts>>,
    /// Whether contexts.data has the process.
    is_listed: bool,
}

/// A method, identified by its address in samples.
#[derive(Debug, Clone, Copy)]
struct NamedMethod {
    address: Address,
    /// The time from which the address belongs to the method.
    time: MonotonicNs,
    /// The length of the method's bytecode. None if it has no bytecode.
    code: Option<CodeUnits>,
}

/// The node and the latest values of a method in contexts.data.
#[derive(Debug, Clone, Copy)]
struct WrittenCounts {
    node: NodeId,
    values: [u64; COUNTERS.len()],
}

impl Counting {
    /// Makes a VM that counts for this session. Its control page holds the order.
    pub fn new(session: u64, vm: String, control: Option<ControlPage>) -> Self {
        Self {
            session,
            vm,
            control,
            file: None,
            counted: Counted::default(),
            methods: Vec::new(),
            written: Vec::new(),
            is_listed: false,
        }
    }

    /// Reads the counts, if they are this session's.
    pub fn read(&mut self) {
        match self.file.as_ref().map(CallsFile::read) {
            // 0: the VM has counted since its start, and has not read the session's number yet.
            Some(Ok(counted)) if [self.session, 0].contains(&counted.session) => {
                self.counted = counted;
            }
            Some(Err(error)) => tracing::warn!("{error}"),
            Some(Ok(_)) | None => {}
        }
    }

    /// Finds the methods of new entries, and writes the names of their addresses.
    pub fn name(
        &mut self,
        tracked: &mut Tracked,
        recorder: &mut Recorder,
        time: MonotonicNs,
    ) -> Result<(), RecorderError> {
        let mut named = Ok(());
        let known = self.methods.len();
        for call in self.counted.calls.iter().skip(known) {
            let method = method_of(call, time, &mut tracked.managed, recorder);
            if let Some(NamedMethod { address, .. }) = method {
                let (managed, written) = (&mut tracked.managed, &mut tracked.written);
                named = named.and(recorder.name(address, time, managed, written));
            }
            self.methods.push(method);
        }
        named
    }

    /// Adds the process and its new methods to contexts.data, each as a node without a parent.
    pub fn add_methods(
        &mut self,
        pid: Pid,
        contexts: &mut ContextWriter,
    ) -> Result<(), RecorderError> {
        if self.file.is_none() {
            return Ok(());
        }
        if !self.is_listed {
            contexts.add_process(pid, &self.vm)?;
            self.is_listed = true;
        }
        for method in self.methods.iter().skip(self.written.len()) {
            let written = match method {
                Some(method) => Some(WrittenCounts {
                    node: method.add_node(pid, contexts)?,
                    values: [0; COUNTERS.len()],
                }),
                None => None,
            };
            self.written.push(written);
        }
        Ok(())
    }

    /// Writes the counts that have changed. Excluded methods have counts of 0.
    pub fn write_counts(&mut self, contexts: &mut ContextWriter) -> Result<(), RecorderError> {
        for (call, written) in self.counted.calls.iter().zip(&mut self.written) {
            let Some(WrittenCounts {
                node,
                values: known,
            }) = written
            else {
                continue;
            };
            for (counter, (value, known)) in (0..).zip(values(call).into_iter().zip(known)) {
                if value != *known {
                    let count = ContextCount {
                        counter: CounterId(counter),
                        place: None,
                        value,
                    };
                    contexts.set_count(*node, &count)?;
                    *known = value;
                }
            }
        }
        Ok(())
    }

    /// Writes new methods and counts, and the end of the process.
    pub fn end(&mut self, pid: Pid, contexts: &mut ContextWriter) -> Result<(), RecorderError> {
        self.add_methods(pid, contexts)?;
        self.write_counts(contexts)?;
        if self.is_listed {
            contexts.end_process(pid, self.incomplete().as_deref())?;
        }
        Ok(())
    }

    /// Returns the reasons why counts are incomplete, if they are.
    fn incomplete(&self) -> Option<String> {
        let [(_, uncounted), _, (_, unnamed)] = self.missing();
        let reasons = [
            (self.counted.refused > 0).then(|| "its VM could not do what it was told".to_owned()),
            (uncounted > 0).then(|| {
                let most = abi::MAX_CALLS;
                format!("its VM counts {most} methods, and {uncounted} calls, returns and unwinds are of others")
            }),
            (unnamed > 0).then(|| {
                format!("{unnamed} calls, returns and unwinds are of methods that could not be named")
            }),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns the number of missing events by reason.
    pub fn missing(&self) -> [(Missing, u64); 3] {
        let unnamed = self.counted.calls.iter().enumerate();
        let unnamed = unnamed
            .filter(|(index, _)| self.methods.get(*index).is_none_or(Option::is_none))
            .fold(0u64, |sum, (_, call)| sum.saturating_add(events(call)));
        [
            (Missing::Room, self.counted.uncounted),
            (Missing::Log, self.counted.unlogged),
            (Missing::Name, unnamed),
        ]
    }
}

impl NamedMethod {
    fn add_node(&self, pid: Pid, contexts: &mut ContextWriter) -> Result<NodeId, RecorderError> {
        let address = self.address;
        contexts.add_method(&ContextMethod {
            pid,
            address,
            code: self.code,
        })?;
        let node = ContextNode {
            pid,
            tid: None,
            parent: None,
            address,
            site: None,
            time: self.time,
        };
        Ok(contexts.add_node(&node)?)
    }
}

/// Returns the values of a method's counters.
fn values(call: &Call) -> [u64; COUNTERS.len()] {
    match call.flags & abi::CALL_LEFT_OUT == 0 {
        true => [call.invokes, call.returns, call.unwinds],
        false => [0; COUNTERS.len()],
    }
}

/// Returns the number of calls, returns and unwinds of a method.
fn events(call: &Call) -> u64 {
    let ends = call.returns.saturating_add(call.unwinds);
    call.invokes.saturating_add(ends)
}

/// Returns the method of an entry, with its address in samples of the process from `time` on.
fn method_of(
    call: &Call,
    time: MonotonicNs,
    managed: &mut ManagedProcess,
    recorder: &mut Recorder,
) -> Option<NamedMethod> {
    let method = managed.counted_method(call);
    let address = match &method {
        Method::Known {
            code: Some(code), ..
        } => {
            let space = &mut managed.process.space;
            match call.index {
                // The entry stands for any of the methods that share the code.
                abi::NO_INDEX => code.start,
                _ => method.own_address(code.start, space),
            }
        }
        Method::Known {
            image,
            index,
            code: None,
        } => recorder.remap.slot(image, *index)?,
        Method::InMemory(_) | Method::Runtime | Method::Unknown | Method::Gone => return None,
    };
    Some(NamedMethod {
        address: Address::new(address),
        time,
        code: method.code_length(),
    })
}

#[cfg(test)]
mod tests;
