//! Does a report begin with what its numbers bear, and with nothing else?

use super::*;
use crate::common::{BLIT, FIB, READ, SQRT, manifest};
use varid_model::{Rate, perf};
use varid_recording::EventDesc;

/// So many samples in a library under a method, and so many in another method.
fn recorded(in_library: u64, elsewhere: u64) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.samples(in_library, (100, 100), &[BLIT, JNI, DRAW + 1, RUN + 1]);
    fixture.samples(elsewhere, (100, 100), &[FIB, RUN + 1]);
    fixture.samples(20, (100, 100), &[SQRT, DRAW + 1, RUN + 1]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn a_report_begins_with_where_most_of_it_is() {
    let fixture = recorded(160, 70);
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    // nativeBlit is the app's method, too, and the innermost.
    let sentence = "64 % is in libskia.so called from org.example.Balls.nativeBlit: look there, not at the app's dex";
    assert_eq!(text.lines().next(), Some(sentence));
    let report = json(&fixture, &Options::default(), &View::default());
    let expected = serde_json::json!({
        "text": sentence, "percent": 64.0, "layer": "native", "image": "libskia.so",
        "caller": "org.example.Balls.nativeBlit",
    });
    assert_eq!(report["finding"], expected);
}

#[test]
fn a_report_of_few_or_of_even_shares_begins_with_its_head() {
    for fixture in [recorded(100, 60), recorded(120, 120), Fixture::full()] {
        let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
        assert!(text.starts_with("Profile of "), "{text}");
        let report = json(&fixture, &Options::default(), &View::default());
        assert_eq!(report.get("finding"), None);
    }
}

#[test]
fn a_report_of_waits_does_not_begin_with_the_scheduler() {
    let software = |config: u32| {
        let mut manifest = manifest();
        let rate = Rate::Period(1_000_000);
        let kind = perf::PERF_TYPE_SOFTWARE;
        manifest.events.first = EventDesc::new("event", rate, kind, u64::from(config));
        let mut fixture = Fixture::with(manifest);
        // All waits end so.
        fixture.kernel_samples(300, (100, 100), &[READ], &[RUN + 1]);
        fixture.writer.finish().unwrap();
        fixture.render(&Options::default(), &View::default(), OutputFormat::Text)
    };
    let text = software(perf::PERF_COUNT_SW_CPU_CLOCK);
    assert!(text.starts_with("100 % is in the kernel"), "{text}");
    let text = software(perf::PERF_COUNT_SW_BPF_OUTPUT);
    assert!(text.starts_with("Profile of "), "{text}");
}
