//! Makes a session of the trees of VMs.

use std::collections::{HashMap, HashSet};

use varid_exact_agent::record::ThreadRecord;
use varid_instrument::{Counted, MethodNumber};
use varid_model::{Address, CodeUnits, MonotonicNs, Pid, Tid};
use varid_recording::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextSite, ContextWriter,
    CounterId, MethodId, NodeId, SessionRecord, SessionWriter, SiteId, SiteTarget,
};

use crate::{
    call_order::CallOrder,
    class_archive::ClassArchive,
    context::Node,
    error::Result,
    executions::{Leaves, of_instructions},
    names::{Names, Taken},
    tables::{CountedMethod, Tables},
    tree::Tree,
    vms::Vm,
    waiting::{Caller, Visited, Waiting},
};

/// The counters of a session. The second one exists if blocks are counted.
const CALLS: CounterId = CounterId(0);
const BYTECODES: CounterId = CounterId(1);
/// The most values of single instructions. A session has room for twice as many values.
const MAX_VALUES: u64 = 1 << 25;

/// What a session has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Calling contexts.
    pub contexts: u64,
    /// Calls.
    pub calls: u64,
    /// Events of the call order, if it was recorded.
    pub events: Option<u64>,
    /// Why contexts or counts are missing, a sentence for each process.
    pub incomplete: Vec<String>,
}

/// Writes the contexts of VMs, and the names of their methods. The session is not finished by this.
///
/// A tree that is damaged has the contexts that are not, and its process is incomplete.
///
/// # Errors
///
/// The session cannot be written.
pub fn write_session(
    writer: &mut SessionWriter,
    vms: Vec<Vm>,
    counted: Counted,
    start: MonotonicNs,
) -> Result<Summary> {
    let counter = |name: &str| ContextCounter {
        name: name.to_owned(),
        unit: name.to_owned(),
    };
    let counters = match counted {
        Counted::Calls => vec![counter("calls")],
        Counted::Blocks | Counted::Order => vec![counter("calls"), counter("bytecodes")],
    };
    let mut session = Session {
        names: Names::new(writer.dir()),
        contexts: writer.create_contexts(&counters)?,
        classes: ClassArchive::new(writer),
        start,
        summary: Summary::default(),
        values: 0,
        ordered: Vec::new(),
    };
    let mut mapped = HashSet::new();
    for vm in vms {
        let mut records = vec![SessionRecord::Comm {
            time: start,
            pid: vm.pid,
            tid: Tid::new(vm.pid.get()),
            exec: false,
            name: "java".to_owned(),
        }];
        if mapped.insert(vm.pid) {
            records.extend(session.names.mappings(vm.pid, start, writer));
        }
        let threads = vm.tables.threads.values();
        records.extend(threads.map(|thread| SessionRecord::Comm {
            time: session.time_of(Some(thread)),
            pid: vm.pid,
            tid: Tid::new(thread.tid),
            exec: false,
            name: thread.name.clone(),
        }));
        records.sort_by_key(SessionRecord::time);
        for record in &records {
            writer.write(record)?;
        }
        session.add(vm)?;
    }
    session.contexts.finish()?;
    if counted == Counted::Order {
        write_order(writer, session.ordered, &mut session.summary)?;
    }
    let left_out = session.classes.finish()?;
    if left_out > 0 {
        writer.manifest_mut().notes.push(format!(
            "{left_out} class files had no room in the session: 'varid annotate' needs --class-path for their methods"
        ));
    }
    session.names.write(writer)?;
    Ok(session.summary)
}

/// A session that is being written.
struct Session {
    names: Names,
    contexts: ContextWriter,
    classes: ClassArchive,
    start: MonotonicNs,
    summary: Summary,
    /// The values of single instructions that were written.
    values: u64,
    /// The VMs whose order of calls is to be written.
    ordered: Vec<Ordered>,
}

/// A VM whose contexts are in the session, and whose order of calls is to be written.
struct Ordered {
    pid: Pid,
    order: CallOrder,
    tree: Tree,
    threads: HashMap<u64, ThreadRecord>,
}

/// Writes the order of calls of VMs, whose contexts are complete.
fn write_order(writer: &SessionWriter, vms: Vec<Ordered>, summary: &mut Summary) -> Result<()> {
    let nodes = u32::try_from(summary.contexts).unwrap_or(u32::MAX);
    let mut order = writer.create_call_order(nodes)?;
    let mut events = 0_u64;
    for mut vm in vms {
        let written = vm.order.write(&mut vm.tree, &vm.threads, &mut order)?;
        events = events.saturating_add(written.events);
        if !written.incomplete.is_empty() {
            let why = written.incomplete.join("; ");
            summary
                .incomplete
                .push(format!("process {}: {why}", vm.pid));
        }
    }
    summary.events = Some(events);
    order.finish()?;
    Ok(())
}

/// What of a VM is in the session.
struct Process<'v> {
    pid: Pid,
    tables: &'v Tables,
    leaves: Leaves<'v>,
    order: Option<CallOrder>,
    taken: Taken,
    methods: HashMap<MethodNumber, Option<Method>>,
    waiting: Waiting,
    /// Contexts whose methods have no address, because the range is full.
    unnamed: u64,
    /// Contexts whose instructions have no values of their own.
    without_places: u64,
}

/// A method in the session.
#[derive(Debug, Clone)]
struct Method {
    id: MethodId,
    address: Address,
    /// By the index in the method's table. None if no context was called there.
    sites: Vec<Option<SiteId>>,
}

impl Session {
    /// Adds the contexts of a VM.
    fn add(&mut self, vm: Vm) -> Result<()> {
        let mut reasons = reasons_of(&vm.tables);
        let order = match vm.order {
            Some(Ok(order)) => Some(CallOrder::new(vm.pid, order)),
            Some(Err(error)) => {
                reasons.push(error.to_string());
                None
            }
            None => None,
        };
        let mut process = Process {
            pid: vm.pid,
            tables: &vm.tables,
            leaves: Leaves::of(&vm.tables),
            order,
            taken: Taken::default(),
            methods: HashMap::new(),
            waiting: Waiting::default(),
            unnamed: 0,
            without_places: 0,
        };
        self.contexts.add_process(vm.pid, &vm.tables.vm)?;
        if vm.is_running {
            reasons.push("it still runs: what it calls from now on is not counted".to_owned());
        }
        let tree = match vm.tree {
            Ok(mut tree) => {
                let walked = tree.visit(&vm.tables, |thread, caller, node, method| {
                    self.add_node(&mut process, thread, caller, node, method)
                });
                match walked {
                    Err(error @ crate::Error::Recording(_)) => return Err(error),
                    Err(error) => reasons.push(error.to_string()),
                    Ok(()) => {}
                }
                if let Some((count, error)) = &tree.damage {
                    reasons.push(format!("{count} branches are left out, the first: {error}"));
                }
                if tree.lost_aborts > 0 {
                    reasons.push(format!(
                        "{} exceptions had no room in the tree, so bytecodes behind them count that did not run",
                        tree.lost_aborts
                    ));
                }
                if tree.folded > 0 {
                    reasons.push(format!(
                        "{} calls had no room in the tree: --nodes makes it larger",
                        tree.folded
                    ));
                }
                Some(tree)
            }
            Err(error) => {
                reasons.push(error.to_string());
                None
            }
        };
        if process.unnamed > 0 {
            reasons.push(format!(
                "{} contexts are of methods beyond the room for names",
                process.unnamed
            ));
        }
        if process.without_places > 0 {
            reasons.push(format!(
                "the bytecodes of {} contexts are those of their methods, not of single lines",
                process.without_places
            ));
        }
        let incomplete = (!reasons.is_empty()).then(|| reasons.join("; "));
        self.contexts.end_process(vm.pid, incomplete.as_deref())?;
        let sentence = incomplete.map(|why| format!("process {}: {why}", vm.pid));
        self.summary.incomplete.extend(sentence);
        if let Some((order, tree)) = process.order.zip(tree) {
            self.ordered.push(Ordered {
                pid: vm.pid,
                order,
                tree,
                threads: vm.tables.threads,
            });
        }
        Ok(())
    }

    /// Returns a time at which a thread's contexts exist: behind the mappings.
    fn time_of(&self, thread: Option<&ThreadRecord>) -> MonotonicNs {
        let earliest = self.start.get().saturating_add(1);
        let time = thread.map_or(earliest, |thread| thread.time);
        MonotonicNs::new(time.max(earliest))
    }

    /// Adds a node with its counts, and the leaves that it calls. If nothing was counted in it, it waits for one of its callees.
    fn add_node(
        &mut self,
        process: &mut Process<'_>,
        thread: Option<&ThreadRecord>,
        caller: Option<Visited>,
        node: &Node,
        method: &CountedMethod,
    ) -> Result<Visited> {
        let executions: Vec<_> = of_instructions(node, method).collect();
        let is_idle = node.calls == 0 && executions.iter().all(|(_, count)| *count == 0);
        // The order may have a call that a killed VM has not counted.
        if is_idle && process.order.is_none() {
            return Ok(process.waiting.push(caller, node.site, node.method));
        }
        let caller = self.add_callers(process, thread, caller)?;
        let added = self.add_context(process, thread, caller, node.site, node.method)?;
        let this = Caller {
            node: added,
            method: node.method,
        };
        let Some(id) = added else {
            return Ok(Visited::Added(this));
        };
        if let Some(order) = &mut process.order {
            order.add(node, method, id);
        }
        self.set(id, CALLS, None, node.calls)?;
        self.summary.calls = self.summary.calls.saturating_add(node.calls);
        let has_room = self.values < MAX_VALUES;
        if has_room {
            for (bci, count) in &executions {
                self.set(id, BYTECODES, Some(u32::from(*bci)), *count)?;
                self.values = self.values.saturating_add(1);
            }
        } else if !executions.is_empty() {
            let counts = executions.iter().map(|(_, count)| *count);
            self.set(id, BYTECODES, None, counts.fold(0, u64::saturating_add))?;
            process.without_places = process.without_places.saturating_add(1);
        }
        for (site, leaf, calls) in process.leaves.calls(method, &executions) {
            let added = self.add_context(process, thread, Some(this), Some(site), leaf)?;
            if let Some(added) = added {
                self.set(added, CALLS, None, calls)?;
                self.summary.calls = self.summary.calls.saturating_add(calls);
            }
        }
        Ok(Visited::Added(this))
    }

    /// Adds a context and its callers, if they wait.
    fn add_callers(
        &mut self,
        process: &mut Process<'_>,
        thread: Option<&ThreadRecord>,
        of: Option<Visited>,
    ) -> Result<Option<Caller>> {
        let (mut caller, missing) = process.waiting.missing(of);
        for index in missing {
            if let Some(context) = process.waiting.get(index) {
                let added =
                    self.add_context(process, thread, caller, context.site, context.method)?;
                let this = Caller {
                    node: added,
                    method: context.method,
                };
                process.waiting.set_added(index, this);
                caller = Some(this);
            }
        }
        Ok(caller)
    }

    /// Adds a context without counts. None if its method has no address.
    fn add_context(
        &mut self,
        process: &mut Process<'_>,
        thread: Option<&ThreadRecord>,
        caller: Option<Caller>,
        site: Option<usize>,
        number: MethodNumber,
    ) -> Result<Option<NodeId>> {
        let Some(address) = self.method(process, number)?.map(|method| method.address) else {
            process.unnamed = process.unnamed.saturating_add(1);
            return Ok(None);
        };
        let site = match caller.zip(site) {
            Some((caller, index)) => self.site(process, caller.method, index)?,
            None => None,
        };
        self.summary.contexts = self.summary.contexts.saturating_add(1);
        let added = self.contexts.add_node(&ContextNode {
            pid: process.pid,
            tid: thread.map(|thread| Tid::new(thread.tid)),
            parent: caller.and_then(|caller| caller.node),
            address,
            site,
            time: self.time_of(thread),
        })?;
        Ok(Some(added))
    }

    fn set(
        &mut self,
        node: NodeId,
        counter: CounterId,
        place: Option<u32>,
        value: u64,
    ) -> Result<()> {
        if value > 0 {
            let count = ContextCount {
                counter,
                place,
                value,
            };
            self.contexts.set_count(node, &count)?;
        }
        Ok(())
    }

    /// Returns a method in the session, which is added if it is new. None if there is no room for it.
    fn method<'p>(
        &mut self,
        process: &'p mut Process<'_>,
        number: MethodNumber,
    ) -> Result<Option<&'p mut Method>> {
        if !process.methods.contains_key(&number) {
            let method = process.tables.methods.get(&number);
            let named = method.and_then(|method| {
                let address = self.names.address(method, &mut process.taken)?;
                Some((address, method))
            });
            let added = match named {
                Some((address, method)) => {
                    if let (Some(class), Some(offset)) = (
                        process.tables.class_of(method),
                        self.names.offset_in_file(address),
                    ) {
                        self.classes.add(class, offset)?;
                    }
                    let length = u32::from(method.table.code_length);
                    let id = self.contexts.add_method(&ContextMethod {
                        pid: process.pid,
                        address,
                        code: (length > 0).then(|| CodeUnits::new(length)),
                    })?;
                    Some(Method {
                        id,
                        address,
                        sites: vec![None; method.table.sites.len()],
                    })
                }
                None => None,
            };
            process.methods.insert(number, added);
        }
        Ok(process.methods.get_mut(&number).and_then(Option::as_mut))
    }

    /// Returns a call site in the session, which is added if it is new. None if its method has no address.
    fn site(
        &mut self,
        process: &mut Process<'_>,
        number: MethodNumber,
        index: usize,
    ) -> Result<Option<SiteId>> {
        let tables = process.tables;
        let site = tables.methods.get(&number);
        let site = site.and_then(|method| method.table.sites.get(index));
        let Some((method, site)) = self.method(process, number)?.zip(site) else {
            return Ok(None);
        };
        let Some(known) = method.sites.get_mut(index) else {
            return Ok(None);
        };
        if known.is_none() {
            let target = &site.target;
            let target = match target.class.as_str() {
                "" => format!("{}{}", target.name, target.descriptor),
                class => format!("{class}.{}{}", target.name, target.descriptor),
            };
            *known = Some(self.contexts.add_site(&ContextSite {
                method: method.id,
                pc: CodeUnits::new(site.bci.0.into()),
                opcode: site.opcode,
                target: Some(SiteTarget::Name(target)),
            })?);
        }
        Ok(*known)
    }
}

/// Returns the reasons why a VM's counts are incomplete that its tables say.
fn reasons_of(tables: &Tables) -> Vec<String> {
    let mut reasons: Vec<String> = tables
        .failed
        .iter()
        .chain(&tables.damage)
        .cloned()
        .collect();
    if let Some((class, reason)) = tables.not_counted.first() {
        let count = tables.not_counted.len();
        reasons.push(format!(
            "{count} classes are not counted, the first is {class}: {reason}"
        ));
    }
    match tables.plain_methods() {
        0 => {}
        count => reasons.push(format!("the code of {count} methods cannot be rewritten")),
    }
    reasons
}
