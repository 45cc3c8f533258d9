//! Are the calls shown that a VM has counted?

use super::*;
use crate::common::FIB;
use varid_recording::{ContextCount, ContextCounter, ContextNode, CounterId, Tactic};

/// A recording with counted calls.
pub fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    // What is called most is not what is sampled most.
    fixture.samples(90, (100, 100), &[RUN]);
    fixture.samples(10, (100, 100), &[DRAW]);
    let time = fixture.tick();
    let pid = Pid::new(100);
    let counters = ["calls", "returns", "unwinds"].map(|name| ContextCounter {
        name: name.into(),
        unit: "calls".into(),
    });
    let mut contexts = fixture.writer.create_contexts(&counters).unwrap();
    contexts.add_process(pid, "ART").unwrap();
    for (address, calls) in [(RUN, 1), (DRAW, 19), (FIB, 180)] {
        let node = ContextNode {
            pid,
            tid: None,
            parent: None,
            address: Address::new(address),
            site: None,
            time,
        };
        let node = contexts.add_node(&node).unwrap();
        for counter in [0, 1].map(CounterId) {
            let count = ContextCount {
                counter,
                place: None,
                value: calls,
            };
            contexts.set_count(node, &count).unwrap();
        }
    }
    contexts.end_process(pid, None).unwrap();
    contexts.finish().unwrap();
    fixture.writer.manifest_mut().tactic = Tactic::MethodInvoke;
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn calls_are_shown_from_a_share_of_all_of_them_on() {
    let fixture = fixture();
    let shown = |min_percent| -> Vec<(String, u64)> {
        let view = View {
            min_percent,
            ..by(GroupBy::Calls)
        };
        let report = json(&fixture, &Options::default(), &view);
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            let symbol = row["symbol"].as_str().unwrap();
            let name = symbol.trim_start_matches("org.example.Balls.");
            (name.to_owned(), row["calls"].as_u64().unwrap())
        })
        .collect()
    };
    let all = [("fib(int)", 180), ("draw", 19), ("run", 1)];
    let all = all.map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(shown(0.0), all);
    assert_eq!(shown(0.5), all);
    assert_eq!(shown(0.6), all[..2]);
    assert_eq!(shown(10.0), all[..1]);
    assert_eq!(shown(90.1), []);
    // Counting takes time that the usual profile does not have.
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(text.contains("shares of time are distorted"), "{text}");
}
