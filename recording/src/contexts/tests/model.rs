//! Property test: all parts that are added are read again.

use std::collections::{BTreeMap, HashMap};

use proptest::{collection::vec, option, prelude::*};
use varid_model::{CodeUnits, Tid};

use super::*;

const COUNTERS: u32 = 3;

/// A part to add. References are taken modulo the number of existing parts.
#[derive(Debug, Clone)]
enum Part {
    Process(u32, String),
    End(usize, Option<String>),
    Method(usize, u64, Option<u32>),
    Site(u32, u32, u8, Option<SiteTarget>),
    Node {
        process: usize,
        tid: Option<u32>,
        parent: Option<u32>,
        address: u64,
        site: Option<u32>,
        later: u64,
    },
    Count(u32, u32, Option<u32>, u64),
    Switch(u64, u32, u32),
    Trace(usize, Option<u32>, Vec<u8>),
    Flush,
}

fn part() -> impl Strategy<Value = Part> {
    // Few addresses, so that nodes share methods, and differences of all sizes.
    let address = prop_oneof![0..20u64, any::<u64>()];
    let number = || (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift);
    let name = "[a-z/;()äß]{0,12}";
    let target = prop_oneof![
        name.prop_map(SiteTarget::Name),
        any::<u32>().prop_map(|method| SiteTarget::Method(MethodId(method))),
    ];
    prop_oneof![
        2 => (1..5u32, name).prop_map(|(pid, vm)| Part::Process(pid, vm)),
        1 => (any::<usize>(), option::of(name)).prop_map(|(process, why)| Part::End(process, why)),
        2 => (any::<usize>(), address.clone(), option::of(any::<u32>()))
            .prop_map(|(process, address, code)| Part::Method(process, address, code)),
        3 => (any::<u32>(), any::<u32>(), any::<u8>(), option::of(target))
            .prop_map(|(method, pc, opcode, target)| Part::Site(method, pc, opcode, target)),
        9 => (any::<usize>(), option::of(any::<u32>()), option::of(any::<u32>()), address, option::of(any::<u32>()), 0..3u64)
            .prop_map(|(process, tid, parent, address, site, later)| Part::Node { process, tid, parent, address, site, later }),
        9 => (any::<u32>(), 0..COUNTERS, option::of(0..5u32), number())
            .prop_map(|(node, counter, place, value)| Part::Count(node, counter, place, value)),
        1 => (number(), any::<u32>(), any::<u32>()).prop_map(|(time, from, to)| Part::Switch(time, from, to)),
        1 => (any::<usize>(), option::of(any::<u32>()), vec(any::<u8>(), 0..20))
            .prop_map(|(process, tid, bytes)| Part::Trace(process, tid, bytes)),
        2 => Just(Part::Flush),
    ]
}

/// The added parts, stored in the simplest form.
#[derive(Default)]
struct Model {
    processes: Vec<ContextProcess>,
    /// The processes that have not ended.
    open: Vec<Pid>,
    methods: Vec<ContextMethod>,
    sites: Vec<ContextSite>,
    nodes: Vec<ContextNode>,
    counts: BTreeMap<(u32, u32, Option<u32>), u64>,
    switches: Vec<ThreadSwitch>,
    traces: Vec<(Pid, Option<Tid>, Vec<u8>)>,
    /// The method at each address.
    at: HashMap<(Pid, Address), MethodId>,
}

/// Selects one of the existing parts.
fn one<T: Copy>(of: &[T], number: usize) -> Option<T> {
    of.get(number.checked_rem(of.len())?).copied()
}

fn number(of: usize, number: u32) -> Option<u32> {
    number.checked_rem(u32::try_from(of).unwrap())
}

impl Model {
    /// Adds a part to both the model and the writer, if the parts that it refers to exist.
    fn add(&mut self, writer: &mut ContextWriter, part: Part) -> Option<()> {
        match part {
            Part::Process(pid, vm) => self.add_process(writer, Pid::new(pid), vm),
            Part::End(process, why) => {
                let pid = one(&self.open, process)?;
                writer.end_process(pid, why.as_deref()).unwrap();
                self.open.retain(|open| *open != pid);
                let process = self.processes.iter_mut().find(|known| known.pid == pid)?;
                process.incomplete = process.incomplete.take().or(why);
            }
            Part::Method(process, address, code) => {
                let method = ContextMethod {
                    pid: one(&self.open, process)?,
                    address: Address::new(address),
                    code: code.map(CodeUnits::new),
                };
                let id = writer.add_method(&method).unwrap();
                self.add_method(id, method);
            }
            Part::Site(method, pc, opcode, target) => {
                let methods = self.methods.len();
                let target = target.map(|target| match target {
                    SiteTarget::Method(MethodId(method)) => {
                        SiteTarget::Method(MethodId(number(methods, method).unwrap_or(0)))
                    }
                    name @ SiteTarget::Name(_) => name,
                });
                let site = ContextSite {
                    method: MethodId(number(methods, method)?),
                    pc: CodeUnits::new(pc),
                    opcode,
                    target,
                };
                let id = writer.add_site(&site).unwrap();
                assert_eq!(id.index(), self.sites.len());
                self.sites.push(site);
            }
            Part::Node { .. } => self.add_node(writer, part)?,
            Part::Count(node, counter, place, value) => {
                let node = NodeId(number(self.nodes.len(), node)?);
                let pid = self.nodes[node.index()].pid;
                self.open.contains(&pid).then_some(())?;
                writer
                    .set_count(node, &count(counter, place, value))
                    .unwrap();
                self.counts.insert((node.0, counter, place), value);
            }
            Part::Switch(time, from, to) => {
                let switch = ThreadSwitch {
                    time: MonotonicNs::new(time),
                    from: Tid::new(from),
                    to: Tid::new(to),
                };
                writer.add_switch(&switch).unwrap();
                self.switches.push(switch);
            }
            Part::Trace(process, tid, bytes) => {
                let (pid, tid) = (one(&self.open, process)?, tid.map(Tid::new));
                writer
                    .add_trace(pid, tid, TraceCompression::Zstd, &bytes)
                    .unwrap();
                self.traces.push((pid, tid, bytes));
            }
            Part::Flush => writer.flush().unwrap(),
        }
        Some(())
    }

    fn add_process(&mut self, writer: &mut ContextWriter, pid: Pid, vm: String) {
        writer.add_process(pid, &vm).unwrap();
        if !self.open.contains(&pid) {
            self.open.push(pid);
        }
        match self.processes.iter_mut().find(|known| known.pid == pid) {
            Some(process) => process.vm = vm,
            None => self.processes.push(ContextProcess {
                pid,
                vm,
                incomplete: None,
            }),
        }
    }

    fn add_method(&mut self, id: MethodId, method: ContextMethod) {
        assert_eq!(id.index(), self.methods.len());
        self.at.insert((method.pid, method.address), id);
        self.methods.push(method);
    }

    fn add_node(&mut self, writer: &mut ContextWriter, part: Part) -> Option<()> {
        let Part::Node {
            process,
            tid,
            parent,
            address,
            site,
            later,
        } = part
        else {
            return None;
        };
        let pid = one(&self.open, process)?;
        let parents: Vec<u32> = (0u32..)
            .zip(&self.nodes)
            .filter_map(|(id, node)| (node.pid == pid).then_some(id))
            .collect();
        let latest = self.nodes.last().map_or(0, |node| node.time.get());
        let node = ContextNode {
            pid,
            tid: tid.map(Tid::new),
            parent: parent
                .and_then(|parent| one(&parents, parent as usize))
                .map(NodeId),
            address: Address::new(address),
            site: site
                .and_then(|site| number(self.sites.len(), site))
                .map(SiteId),
            time: MonotonicNs::new(latest + later),
        };
        let id = writer.add_node(&node).unwrap();
        assert_eq!(id.index(), self.nodes.len());
        if !self.at.contains_key(&(pid, node.address)) {
            let method = ContextMethod {
                pid,
                address: node.address,
                code: None,
            };
            self.add_method(MethodId::at(self.methods.len()), method);
        }
        self.nodes.push(node);
        Some(())
    }

    fn assert_is(mut self, dir: &Path) {
        let found = read_folder(dir);
        for process in &mut self.processes {
            if self.open.contains(&process.pid) && process.incomplete.is_none() {
                let listed = found
                    .processes()
                    .iter()
                    .find(|found| found.pid == process.pid);
                let why = listed.unwrap().incomplete.clone().expect("no end");
                assert!(why.contains("no end"), "{why}");
                process.incomplete = Some(why);
            }
        }
        assert_eq!(found.damage(), None);
        assert_eq!(found.counters().len(), COUNTERS as usize);
        assert_eq!(found.processes(), self.processes);
        assert_eq!(found.methods(), self.methods);
        assert_eq!(found.sites(), self.sites);
        assert_eq!(found.nodes(), self.nodes);
        assert_eq!(found.switches(), self.switches);
        let counts = found.node_ids().flat_map(|node| {
            let counts = found.counts(node).iter();
            counts.map(move |count| ((node.0, count.counter.0, count.place), count.value))
        });
        let counts: Vec<_> = counts.collect();
        self.counts.retain(|_, value| *value != 0);
        assert_eq!(counts, self.counts.into_iter().collect::<Vec<_>>());
        for (id, node) in found.node_ids().zip(found.nodes()) {
            let method = found.method(found.method_of(id).unwrap()).unwrap();
            assert_eq!((method.pid, method.address), (node.pid, node.address));
        }
        let traces = found.traces().iter().map(|trace| {
            let bytes = read_trace(dir, trace).unwrap();
            assert_eq!(trace.compression, TraceCompression::Zstd);
            assert_eq!(trace.len() as usize, bytes.len());
            (trace.pid, trace.tid, bytes)
        });
        assert_eq!(traces.collect::<Vec<_>>(), self.traces);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(parts in vec(part(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path(), COUNTERS);
        let mut model = Model::default();
        for part in parts {
            // A part whose references are missing is not added.
            let _ = model.add(&mut writer, part);
        }
        writer.finish().unwrap();
        model.assert_is(dir.path());
    }
}
