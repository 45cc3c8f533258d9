//! Checks that filters select the right samples in every view and export, and that excluded samples are counted.

use super::*;
use proptest::prelude::*;
use varid_report::{
    CodeFilter, ExportFormat, ExportRequest, Profile, StackFilter, TaskFilter, TimeSpan, export,
};

fn stacks(stacks: StackFilter) -> Options {
    Options {
        stacks,
        ..Options::default()
    }
}

fn pattern(text: &str) -> Option<NamePattern> {
    Some(NamePattern::new(text).unwrap())
}

fn focus(text: &str) -> Options {
    stacks(StackFilter {
        focus: pattern(text),
        ..StackFilter::default()
    })
}

fn ignore(text: &str) -> Options {
    stacks(StackFilter {
        ignore: pattern(text),
        ..StackFilter::default()
    })
}

fn span(text: &str) -> Options {
    Options {
        time: Some(text.parse().unwrap()),
        ..Options::default()
    }
}

fn app(name: &str) -> Options {
    Options {
        tasks: TaskFilter {
            app: Some(Pattern::new(name)),
            ..TaskFilter::default()
        },
        ..Options::default()
    }
}

fn samples(profile: &Profile) -> u64 {
    profile.weight(profile.events[0].event).samples()
}

#[test]
fn samples_with_a_matching_function_or_image_on_their_stack_count() {
    let fixture = Fixture::full();
    for (options, expected) in [
        (focus(r"Balls\.draw$"), 71),
        (focus("sys_read"), 10),
        (focus("libskia"), 18),
        (focus(r"^java\.|fib"), 30),
        (focus("nowhere"), 0),
        (ignore(r"Balls\.draw$"), 29),
        (ignore("libskia"), 82),
        (ignore("nowhere"), 100),
        (app("balls"), 99),
        (app("oth*"), 1),
    ] {
        let profile = fixture.profile(&options);
        assert_eq!(samples(&profile), expected, "{options:?}");
        let excluded: u64 = profile.events[0].excluded.values().sum();
        assert_eq!(excluded, 100 - expected, "{options:?}");
    }
}

#[test]
fn what_filters_leave_out_is_counted_under_the_first_that_does() {
    let fixture = Fixture::full();
    let options = Options {
        tasks: TaskFilter {
            app: Some(Pattern::new("balls")),
            thread: Some(Pattern::new("balls")),
            ..TaskFilter::default()
        },
        ..stacks(StackFilter {
            focus: pattern("Balls"),
            ignore: pattern("libskia"),
            ..StackFilter::default()
        })
    };
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    let line = "excluded      25, by --app 1, by --focus 1, by --ignore 18, by --thread 5\n";
    assert!(text.contains(line), "{text}");
    let head =
        "75 samples, of 100 in all, by --thread balls --app balls --focus Balls --ignore libskia\n";
    assert!(text.contains(head), "{text}");
    let report = json(&fixture, &options, &View::default());
    let expected = serde_json::json!({"--app": 1, "--focus": 1, "--ignore": 18, "--thread": 5});
    assert_eq!(report["excluded"], expected);
    assert_eq!(report["samples"], 75);
    let unattributed = serde_json::json!({"torn-frames": 3});
    assert_eq!(report["unattributed"], unattributed);
}

#[test]
fn a_view_of_a_layer_or_of_symbols_says_what_it_leaves_out() {
    let fixture = Fixture::full();
    let kernel = View {
        code: CodeFilter {
            layer: Some(Layer::Kernel),
            ..CodeFilter::default()
        },
        ..by(GroupBy::Thread)
    };
    // Tables without code in their rows have the samples whose leaf is there.
    let report = json(&fixture, &Options::default(), &kernel);
    assert_eq!(
        shares(&report, "rows", "thread"),
        HashMap::from([("balls".to_owned(), (10, 10))])
    );
    assert_eq!(report["samples_elsewhere"], 90);
    let text = fixture.render(&Options::default(), &kernel, OutputFormat::Text);
    let line = "excluded      90, 90.00 %, have their leaf outside of --layer kernel; percentages count them\n";
    assert!(text.contains(line), "{text}");
    let sqrt = View {
        code: CodeFilter {
            symbol: pattern("sqrt$"),
            ..CodeFilter::default()
        },
        ..by(GroupBy::Image)
    };
    let report = json(&fixture, &Options::default(), &sqrt);
    let images = shares(&report, "rows", "image");
    assert_eq!(images["core.dex"], (10, 10));
    assert_eq!(images["balls.apk!classes.dex"], (0, 10));
    assert_eq!(images.len(), 2);
}

#[test]
fn exports_have_the_samples_of_a_layer_and_of_symbols_by_their_leaf() {
    let fixture = Fixture::full();
    let kernel = stacks(StackFilter {
        leaf: CodeFilter {
            layer: Some(Layer::Kernel),
            ..CodeFilter::default()
        },
        ..StackFilter::default()
    });
    let fib = stacks(StackFilter {
        leaf: CodeFilter {
            symbol: pattern("fib"),
            ..CodeFilter::default()
        },
        ..StackFilter::default()
    });
    for (options, lines, weight) in [(kernel, 1, "10"), (fib, 1, "20"), (focus("draw"), 5, "")] {
        let mut out = Vec::new();
        let request = ExportRequest {
            weigh: PercentOf::Samples,
            ..ExportRequest::default()
        };
        export(
            &fixture.profile(&options),
            &request,
            ExportFormat::named("folded").unwrap(),
            &mut out,
        )
        .unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.lines().count(), lines, "{out}");
        assert!(out.trim_end().ends_with(weight), "{out}");
    }
}

/// The samples of each symbol by leaf, and the sum of all.
fn leaves(fixture: &Fixture, options: &Options) -> HashMap<String, u64> {
    let report = json(fixture, options, &by(GroupBy::Symbol));
    let mut leaves: HashMap<_, _> = shares(&report, "rows", "symbol")
        .into_iter()
        .map(|(name, (own, _))| (name, own))
        .collect();
    leaves.insert("all".to_owned(), report["samples"].as_u64().unwrap());
    leaves.retain(|_, samples| *samples > 0);
    leaves
}

fn sum(one: HashMap<String, u64>, other: HashMap<String, u64>) -> HashMap<String, u64> {
    let mut sum = one;
    for (name, samples) in other {
        *sum.entry(name).or_default() += samples;
    }
    sum
}

#[test]
fn complementary_filters_have_all_samples_between_them() {
    let fixture = Fixture::full();
    let whole = leaves(&fixture, &Options::default());
    let cases = proptest::test_runner::Config::with_cases(32);
    let expression = prop::sample::select(vec!["draw", "Balls", "lib.*so", "^sys_", "o", "x^"]);
    let milliseconds = 1..130_u64;
    proptest!(cases, |(expression in expression, at in milliseconds)| {
        let halves = sum(
            leaves(&fixture, &focus(expression)),
            leaves(&fixture, &ignore(expression)),
        );
        prop_assert_eq!(&halves, &whole);
        let halves = sum(
            leaves(&fixture, &span(&format!("..{at}ms"))),
            leaves(&fixture, &span(&format!("{at}ms.."))),
        );
        prop_assert_eq!(&halves, &whole);
    });
    let layers = [
        Layer::App,
        Layer::Framework,
        Layer::Vm,
        Layer::Native,
        Layer::Kernel,
    ];
    let of_layer = |layer| {
        let filter = StackFilter {
            leaf: CodeFilter {
                layer: Some(layer),
                ..CodeFilter::default()
            },
            ..StackFilter::default()
        };
        leaves(&fixture, &stacks(filter))
    };
    let all = layers.into_iter().map(of_layer).reduce(sum).unwrap();
    assert_eq!(all, whole);
}

#[test]
fn a_span_of_time_is_that_of_the_sample_table() {
    let fixture = Fixture::full();
    let options = Options {
        sample_table: true,
        ..Options::default()
    };
    let profile = fixture.profile(&options);
    let start = profile.recording.manifest.start_time_ns;
    let (from, to) = (start.get() + 40_000_000, start.get() + 90_000_000);
    let table = profile.samples.as_ref().unwrap();
    let weights = table.weights(MonotonicNs::new(from)..MonotonicNs::new(to));
    let expected = weights.sample_sum(profile.events[0].event).samples();
    assert!(expected > 10 && expected < 90, "{expected}");
    let span: TimeSpan = "40ms..90ms".parse().unwrap();
    let time = Some(span);
    let some = fixture.profile(&Options { time, ..options });
    assert_eq!(samples(&some), expected);
    assert_eq!(some.samples.unwrap().len() as u64, expected);
}
