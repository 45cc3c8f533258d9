use varid_model::{Address, CodeUnits, MonotonicNs, Pid, Rate, Tid};
use varid_recording::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextSite, ContextWriter,
    EventDesc, Manifest, NodeId, SampleSource, SessionReader, SessionTarget, SessionWriter, SiteId,
    TargetKind,
};

use super::*;

const PID: Pid = Pid::new(7);
const INVOKEINTERFACE: u8 = 185;
/// The methods by their number, with the length of their bytecode.
const METHODS: [(&str, Option<u32>); 5] = [
    ("App.main", Some(20)),
    ("Square.area", Some(9)),
    ("Circle.area", Some(5)),
    ("Circle.<clinit>", Some(4)),
    ("Math.abs", None),
];

fn address(method: u64) -> Address {
    Address::new(0x1000 + method * 0x100)
}

/// What writes contexts of the methods.
struct Fixture {
    folder: tempfile::TempDir,
    writer: ContextWriter,
    site: SiteId,
}

impl Fixture {
    fn new(counters: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let event = EventDesc::new("java-calls", Rate::Period(1), 1, 9);
        let target = SessionTarget {
            kind: TargetKind::Command,
            value: "java App".to_owned(),
        };
        let manifest = Manifest::new(event, SampleSource::Agent, target, MonotonicNs::ZERO);
        let mut session = SessionWriter::create(folder.path(), manifest).unwrap();
        let counters = counters.iter().map(|name| ContextCounter {
            name: (*name).to_owned(),
            unit: (*name).to_owned(),
        });
        let counters: Vec<_> = counters.collect();
        let mut writer = session.create_contexts(&counters).unwrap();
        writer.add_process(PID, "a VM").unwrap();
        let ids = (0..).zip(METHODS).map(|(number, (_, size))| {
            let method = ContextMethod {
                pid: PID,
                address: address(number),
                code: size.map(CodeUnits::new),
            };
            writer.add_method(&method).unwrap()
        });
        let ids: Vec<_> = ids.collect();
        let site = ContextSite {
            method: ids[0],
            pc: CodeUnits::new(3),
            opcode: INVOKEINTERFACE,
            target: Some(varid_recording::SiteTarget::Name(
                "Shape.area()I".to_owned(),
            )),
        };
        let site = writer.add_site(&site).unwrap();
        session.finish().unwrap();
        Self {
            folder,
            writer,
            site,
        }
    }

    /// Adds a context. `counts`: the counter, the place, the value.
    fn add(
        &mut self,
        tid: u32,
        parent: Option<NodeId>,
        method: u64,
        counts: &[(u32, Option<u32>, u64)],
    ) -> NodeId {
        let node = ContextNode {
            pid: PID,
            tid: Some(Tid::new(tid)),
            parent,
            address: address(method),
            site: parent.map(|_| self.site),
            time: MonotonicNs::new(1),
        };
        let id = self.writer.add_node(&node).unwrap();
        for (counter, place, value) in counts {
            let count = ContextCount {
                counter: varid_recording::CounterId(*counter),
                place: *place,
                value: *value,
            };
            self.writer.set_count(id, &count).unwrap();
        }
        id
    }

    fn finish(mut self) -> Contexts {
        self.writer.end_process(PID, None).unwrap();
        self.writer.finish().unwrap();
        let session = SessionReader::open(self.folder.path()).unwrap();
        session.contexts().unwrap().unwrap()
    }
}

fn id_of(method: MethodId) -> Option<MetricMethodId> {
    Some(MetricMethodId(u32::try_from(method.index()).unwrap()))
}

/// Metrics without opcodes, which need class files.
fn metrics(contexts: &Contexts) -> Metrics {
    let methods = METHODS.map(|(name, size)| MetricMethod {
        name: name.into(),
        simple_name: name.rsplit('.').next().map(Into::into),
        size: size.map(u64::from),
        symbol: None,
    });
    let tree = MergedTree::new(contexts, id_of);
    Metrics {
        opcodes: tree.has_bytecodes.then(Vec::new),
        sites: counts::sites(&tree, &methods),
        methods: counts::methods(&tree, &methods),
        depth: counts::depth(&tree),
        contexts: counts::contexts(&tree, &methods),
        notes: Vec::new(),
    }
}

/// Two threads call the same: one has two receivers at a call site, which also initialises a class.
fn two_threads() -> Contexts {
    let mut fixture = Fixture::new(&["calls", "bytecodes"]);
    let main = fixture.add(
        1,
        None,
        0,
        &[(0, None, 1), (1, Some(0), 1), (1, Some(3), 11)],
    );
    fixture.add(
        1,
        Some(main),
        1,
        &[(0, None, 6), (1, Some(0), 6), (1, Some(1), 6)],
    );
    let circle = fixture.add(1, Some(main), 2, &[(0, None, 4), (1, Some(0), 4)]);
    fixture.add(1, Some(main), 3, &[(0, None, 1), (1, Some(0), 1)]);
    fixture.add(1, Some(circle), 4, &[(0, None, 4)]);
    let main = fixture.add(2, None, 0, &[(0, None, 1), (1, Some(3), 5)]);
    fixture.add(
        2,
        Some(main),
        1,
        &[(0, None, 5), (1, Some(0), 5), (1, None, 2)],
    );
    fixture.finish()
}

#[test]
fn targets_of_a_site_are_the_methods_that_it_names() {
    let contexts = two_threads();
    let sites = metrics(&contexts).sites;
    let first = sites.first().unwrap();
    assert_eq!((&*first.method, first.bci), ("App.main", 3));
    assert_eq!((first.targets, first.calls), (2, 15));
    assert_eq!(first.declared.as_deref(), Some("Shape.area()I"));
}

#[test]
fn contexts_of_threads_are_merged() {
    let found = metrics(&two_threads());
    let rows = found.contexts.iter();
    let rows: Vec<_> = rows
        .map(|row| {
            (
                row.caller,
                &*row.method,
                row.depth,
                row.calls,
                row.bytecodes,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (None, "App.main", 1, 2, Some(17)),
            (Some(0), "Square.area", 2, 11, Some(19)),
            (Some(0), "Circle.area", 2, 4, Some(4)),
            (Some(0), "Circle.<clinit>", 2, 1, Some(1)),
            (Some(2), "Math.abs", 3, 4, Some(0)),
        ]
    );
    let depth = found.depth.iter();
    let depth: Vec<_> = depth
        .map(|row| (row.depth, row.contexts, row.calls))
        .collect();
    assert_eq!(depth, [(1, 1, 2), (2, 3, 16), (3, 1, 4)]);
    let methods = found.methods.iter();
    let methods: Vec<_> = methods
        .map(|row| (&*row.method, row.size, row.calls))
        .collect();
    assert_eq!(
        methods,
        [
            ("Square.area", Some(9), 11),
            ("Circle.area", Some(5), 4),
            ("Math.abs", None, 4),
            ("App.main", Some(20), 2),
            ("Circle.<clinit>", Some(4), 1),
        ]
    );
}

#[test]
fn executions_of_an_instruction_are_those_of_all_contexts() {
    let contexts = two_threads();
    let counter = contexts.counter(BYTECODES).unwrap();
    let found = opcodes::instructions(&contexts, counter, id_of);
    assert_eq!(found.without_place, 2);
    let value = |method, place| found.methods[&MetricMethodId(method)][&place];
    assert_eq!((value(0, 0), value(0, 3)), (1, 16));
    assert_eq!((value(1, 0), value(1, 1)), (11, 6));
}

#[test]
fn text_and_csv_have_the_first_rows_and_calls_alone_have_no_opcodes() {
    let sections = MetricsSection::ALL;
    let mut text = Vec::new();
    write_metrics_text(&metrics(&two_threads()), &sections, 2, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for part in [
        "targets  calls  site           declared
",
        "      2     15  App.main:3     Shape.area()I
      1      4  Circle.area:3
",
        "calls  bytecodes  size  method\n",
        "   11         19     9  Square.area\n",
        "   11         19      2  App.main:3 > Square.area\n",
        "and 3 more: -n shows them\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut fixture = Fixture::new(&["calls"]);
    let main = fixture.add(1, None, 0, &[(0, None, 1)]);
    fixture.add(1, Some(main), 1, &[(0, None, 3)]);
    let mut csv = Vec::new();
    write_metrics_csv(&metrics(&fixture.finish()), &sections, 1, &mut csv).unwrap();
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "targets,calls,site,declared\n1,3,App.main:3,Shape.area()I\n\n\
         calls,size,method\n3,9,Square.area\n\n\
         calls,contexts,depth\n1,1,1\n\n\
         calls,depth,path\n3,2,App.main:3 > Square.area\n"
    );
}
