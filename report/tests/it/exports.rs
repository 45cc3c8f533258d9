//! Checks that exports conform to their formats for any recording, and their output.

use crate::common::{APP_ID, BLIT, DRAW, FIB, Fixture, JNI, KERNEL, READ, RUN, decoded, elf, slot};
use varid_model::{Pid, Tid};
use varid_recording::SessionRecord;
use varid_report::{
    Content, Error, ExportFormat, ExportRequest, NameOptions, Need, Options, TaskFilter, export,
};

fn options() -> Options {
    Options {
        sample_table: true,
        names: NameOptions {
            lines: true,
            ..NameOptions::default()
        },
        ..Options::default()
    }
}

fn named(format: &str) -> &'static ExportFormat {
    ExportFormat::named(format).unwrap()
}

fn exported(fixture: &Fixture, options: &Options, format: &ExportFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let request = ExportRequest::default();
    export(&fixture.profile(options), &request, format, &mut out).unwrap();
    out
}

fn text(fixture: &Fixture, format: &str) -> String {
    String::from_utf8(exported(fixture, &options(), named(format))).unwrap()
}

/// Two threads, all layers except the framework, recursion, a marker of an unknown image, and losses.
fn small() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.samples(2, (100, 100), &[DRAW, RUN + 1]);
    fixture.kernel_samples(
        1,
        (100, 100),
        &[READ, KERNEL + 0x11],
        &[BLIT, JNI, DRAW + 1],
    );
    fixture.samples(1, (100, 101), &[FIB, FIB + 1, FIB + 1, RUN + 1]);
    let time = fixture.tick();
    fixture.write(&SessionRecord::Lost { time, count: 7 });
    fixture.samples(1, (200, 200), &[RUN]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn text_formats_stay_as_they_are() {
    let fixture = small();
    for name in [
        "folded",
        "flamegraph",
        "firefox",
        "speedscope",
        "jsonl",
        "callgrind",
        "dot",
        "chrome",
    ] {
        let mut text = text(&fixture, name);
        if let (Some(style), Some(end)) = (text.find("<style>"), text.find("</style>")) {
            text.replace_range(style..end, "<style>…");
        }
        if let (Some(script), Some(end)) = (text.find("<![CDATA["), text.find("</script>")) {
            text.replace_range(script..end, "…");
        }
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_page_has_the_samples_with_their_frames_and_threads() {
    let fixture = small();
    let page = exported(&fixture, &options(), named("html"));
    let folder = fixture.dir.path().to_str().unwrap();
    insta::assert_snapshot!("html", decoded(&page, 0).replace(folder, "DIR"));
}

#[test]
fn a_layer_has_one_colour_in_all_viewers() {
    let fixture = small();
    let text = |format| text(&fixture, format);
    let (page, picture) = (text("html"), text("flamegraph"));
    let graph = text("dot");
    for (layer, light, dark) in [
        ("app", "#6399f1", "#5f94ef"),
        ("framework", "#ccd8e8", "#9db0da"),
        ("vm", "#f1cb46", "#e6ae52"),
        ("native", "#78d7a4", "#93d9b9"),
        ("kernel", "#e6755d", "#d37460"),
    ] {
        for colour in [light, dark] {
            assert!(page.contains(&format!("--{layer}: {colour};")), "{layer}");
            let rule = format!(".{layer} rect {{ fill: {colour}; }}");
            assert!(picture.contains(&rule), "{layer}");
        }
        // The graph only has the layers of its nodes.
        let is_drawn = !["framework", "vm"].contains(&layer);
        assert_eq!(graph.contains(light), is_drawn, "{layer}");
    }
}

/// Names with a special meaning for browsers, shells, spreadsheets, viewers and parsers.
pub const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "]]></script><script>alert(2)</script>",
    "a\"b'c\\\"d\\",
    "=cmd|'/C calc'!A0",
    "x; y 99\nfn=(1) forged",
    "\u{1b}[2J\u{202e}\u{9b}31m",
    "(1) compressed",
    "\\N\\G -> n0 [label=\"forged\"]",
    "&lt;b&gt; ${jndi:x} {{marker.data}}",
];

/// A method and a thread for each hostile name. Each method calls the next one.
pub fn hostile() -> Fixture {
    let mut fixture = Fixture::new();
    let slots = HOSTILE.iter().zip(1..);
    let slots = slots.map(|(name, place)| slot(place * 0x100, name));
    elf(
        &fixture.writer.symbols().join("app.elf"),
        &APP_ID,
        slots.collect(),
    );
    let app = DRAW - 0x1010;
    let user: Vec<u64> = (1..=HOSTILE.len() as u64)
        .map(|place| app + place * 0x100 + 0x11)
        .collect();
    for (name, tid) in HOSTILE.iter().zip(100..) {
        let time = fixture.tick();
        fixture.write(&SessionRecord::Comm {
            time,
            pid: Pid::new(100),
            tid: Tid::new(tid),
            exec: false,
            name: (*name).to_owned(),
        });
        fixture.samples(1, (100, tid), &user);
    }
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn hostile_names_are_names_and_nothing_else() {
    let fixture = hostile();
    let profile = fixture.profile(&options());
    let symbols = profile.frames.symbols();
    let recorded = |name: &str| symbols.iter().any(|symbol| symbol.name.contains(name));
    assert!(recorded("<script>alert(1)"), "{symbols:?}");
    for format in ExportFormat::all() {
        let out = exported(&fixture, &options(), format);
        let out = String::from_utf8_lossy(&out);
        assert!(
            format.content == Content::Binary || !out.contains('\u{1b}'),
            "{format:?}"
        );
        assert!(!out.contains('\u{202e}'), "{format:?}");
    }

    let folded = text(&fixture, "folded");
    for line in folded.lines() {
        assert_eq!(line.split(';').count(), 1 + HOSTILE.len(), "{line}");
        assert!(line.ends_with(" 1000000"), "{line}");
    }
    assert_eq!(folded.lines().count(), HOSTILE.len());

    let svg = text(&fixture, "flamegraph");
    assert_eq!(svg.matches("<script").count(), 1, "{svg}");
    assert_eq!(svg.matches("]]>").count(), 1, "{svg}");
    assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));

    let dot = text(&fixture, "dot");
    for line in dot.lines().filter(|line| line.contains("label=")) {
        // Outside strings there is one attribute list.
        let mut outside = String::new();
        let (mut quoted, mut escaped) = (false, false);
        for character in line.chars() {
            match character {
                '"' if !escaped => quoted = !quoted,
                _ if !quoted => outside.push(character),
                _ => {}
            }
            escaped = quoted && character == '\\' && !escaped;
        }
        assert!(!quoted, "{line}");
        assert_eq!(outside.matches('[').count(), 1, "{line}");
    }

    let callgrind = text(&fixture, "callgrind");
    let forged = callgrind.lines().filter(|line| *line == "fn=(1) forged");
    assert_eq!(forged.count(), 0, "{callgrind}");
    assert!(callgrind.contains(") (1) compressed\n"), "{callgrind}");

    let page = text(&fixture, "html");
    assert!(!page.contains("alert("), "{page}");
    let page = decoded(page.as_bytes(), 0);
    assert!(page.contains("<script>alert(1)</script>"), "{page}");

    let lines = text(&fixture, "jsonl");
    assert_eq!(lines.lines().count(), 1 + HOSTILE.len());
    for format in ["firefox", "speedscope", "chrome"] {
        let json: serde_json::Value = serde_json::from_str(&text(&fixture, format)).unwrap();
        let json = json.to_string();
        assert!(json.contains("<script>alert(1)</script>"), "{json}");
    }
}

#[test]
fn a_session_without_samples_is_exported() {
    let mut fixture = Fixture::new();
    fixture.writer.finish().unwrap();
    for format in ExportFormat::all() {
        let out = exported(&fixture, &options(), format);
        match format.name {
            "folded" => assert!(out.is_empty()),
            "firefox" | "speedscope" | "chrome" => {
                serde_json::from_slice::<serde_json::Value>(&out).unwrap();
            }
            _ => assert!(!out.is_empty(), "{format:?}"),
        }
    }
}

#[test]
fn exports_have_the_samples_that_the_options_select() {
    let fixture = Fixture::full();
    let options = Options {
        tasks: TaskFilter {
            pid: Some(Pid::new(200)),
            ..TaskFilter::default()
        },
        ..options()
    };
    let out = exported(&fixture, &options, named("folded"));
    assert_eq!(out, b"other;org.example.Balls.run 1000000\n");
}

#[test]
fn a_format_with_samples_is_not_made_of_sums() {
    let fixture = small();
    let profile = fixture.profile(&Options::default());
    for format in ExportFormat::all() {
        let made = export(&profile, &ExportRequest::default(), format, &mut Vec::new());
        let refused = matches!(made, Err(Error::NoSampleTable));
        assert_eq!(refused, format.needs(Need::Samples), "{format:?} {made:?}");
    }
}

#[test]
fn a_disk_that_is_full_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let profile = small().profile(&options());
    for format in ExportFormat::all() {
        let made = export(&profile, &ExportRequest::default(), format, &mut Full);
        assert!(matches!(made, Err(Error::Output(_))), "{format:?} {made:?}");
    }
}
