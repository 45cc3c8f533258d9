//! Checks that a sample counts for the service of its process at the time of the sample.

use super::schema::valid;
use super::*;

#[test]
fn samples_count_for_the_service_of_their_process_and_time() {
    let mut fixture = Fixture::new();
    let member = |pid, since_ns, service: Option<&str>| Membership {
        pid: Pid::new(pid),
        since_ns,
        service: service.map(str::to_owned),
    };
    fixture.samples(3, (100, 100), &[DRAW]);
    let later = fixture.tick();
    fixture.samples(2, (100, 101), &[DRAW]);
    fixture.samples(4, (200, 200), &[DRAW]);
    let manifest = fixture.writer.manifest_mut();
    manifest.target.kind = TargetKind::Several;
    manifest.memberships = vec![
        member(100, MonotonicNs::ZERO, Some("media")),
        member(100, later, Some("video")),
    ];
    manifest.counts.filtered = [("method".to_owned(), 5)].into();
    manifest.changes = vec![
        ConfigurationChange {
            time_ns: MonotonicNs::new(1_500_000_000),
            changed: vec!["methods".to_owned()],
            waiting: vec!["events".to_owned()],
            configuration: String::new(),
            error: None,
        },
        ConfigurationChange {
            time_ns: MonotonicNs::new(2_001_000_000),
            changed: Vec::new(),
            waiting: Vec::new(),
            configuration: String::new(),
            error: Some("varid.toml:1:2: no".to_owned()),
        },
    ];
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &by(GroupBy::Service));
    let rows: Vec<_> = report["rows"].as_array().unwrap().iter().collect();
    let of = |row: &serde_json::Value| {
        (
            row["service"].as_str().map(str::to_owned),
            row["self"].as_u64(),
        )
    };
    let found: Vec<_> = rows.into_iter().map(of).collect();
    let expected = [
        (None, Some(4)),
        (Some("media".to_owned()), Some(3)),
        (Some("video".to_owned()), Some(2)),
    ];
    assert_eq!(found, expected);
    assert_eq!(report["filtered"]["method"], 5);
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../schema/report.schema.json")).unwrap();
    valid(&schema, &schema, &report).unwrap();
    let text = fixture.render(
        &Options::default(),
        &by(GroupBy::Service),
        OutputFormat::Text,
    );
    for line in [
        "filtered      by method 5",
        "1.499 s after the start the configuration changed methods; has another events for the next session",
        "2.000 s after the start the configuration was wrong and changed nothing: varid.toml:1:2: no",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let csv = fixture.render(
        &Options::default(),
        &by(GroupBy::Service),
        OutputFormat::Csv,
    );
    assert!(
        csv.starts_with("service,self,") && csv.contains("\nmedia,3,"),
        "{csv}"
    );
}
