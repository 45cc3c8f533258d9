//! varid symbols as a user runs it: lists, answers, conversions, and broken files.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DEX: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../symbolizer/tests/fixtures/names.dex"
);
const ITEMS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../symbolizer/tests/fixtures/items.dex"
);
const JAR: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../symbolizer/tests/fixtures/container/small.jar"
);

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("varid-symbols-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn symbols(words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_varid"))
        .arg("symbols")
        .args(words)
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Returns the output of a command that must succeed without a message.
fn ok(words: &[&str], input: &str) -> String {
    let output = symbols(words, input);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the standard output and the error lines of a command that must fail.
fn fails(words: &[&str]) -> (String, Vec<String>) {
    let output = symbols(words, "");
    assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    let complaints = String::from_utf8(output.stderr).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, complaints.lines().map(str::to_owned).collect())
}

fn functions(words: &[&str]) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ok(words, "")).unwrap();
    assert_eq!(document["version"], 1);
    document["images"].as_array().unwrap()[0]["functions"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn every_function_that_is_listed_is_what_is_at_its_address() {
    let in_archive = format!("{JAR}!classes.dex");
    for file in [DEX, ITEMS, &in_archive] {
        let functions = functions(&[file, "--json"]);
        assert!(!functions.is_empty());
        for function in functions {
            let answer = ok(
                &[
                    file,
                    "--at",
                    &format!("{:x}", function["address"].as_u64().unwrap()),
                ],
                "",
            );
            let (_, answered) = answer.trim_end().split_once(": ").unwrap();
            let name = function["name"].as_str().unwrap();
            assert!(
                answered == name || answered.starts_with(&format!("{name} at ")),
                "{answered}: {name}"
            );
        }
    }
}

#[test]
fn a_substitute_elf_file_answers_as_its_dex_file() {
    let folder = Folder::new("elf");
    let (elf, sym) = (folder.file("items.elf"), folder.file("items.sym"));
    assert_eq!(ok(&[DEX, "--elf", &elf, "--sym", &sym], ""), "");
    let functions = functions(&[DEX, "--json"]);
    let text = std::fs::read_to_string(&sym).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#')).count(),
        functions.len()
    );
    let addresses: String = functions
        .iter()
        .map(|function| format!("{:#x}\n", function["address"].as_u64().unwrap()))
        .collect();
    let ours = ok(&[DEX, "--at", "-"], &addresses);
    assert_eq!(ours.lines().count(), functions.len());
    // Debuggers find sources by package, but a dex file contains only the file name.
    let theirs = ok(&[&elf, "--at", "-"], &addresses);
    assert_eq!(ours, theirs.replace(" at org/example/", " at "));
}

#[test]
fn several_dex_files_are_written_to_a_folder_and_one_of_an_archive_to_a_file() {
    let folder = Folder::new("many");
    let out = folder.file("out");
    ok(&[DEX, ITEMS, "--elf", &out], "");
    let mut names: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["items.elf", "names.elf"]);
    // Two files with the same name: the second one is refused, and the first one is kept.
    let (_, complaints) = fails(&[DEX, DEX, "--sym", &folder.file("twice")]);
    assert!(
        complaints.len() == 1 && complaints[0].contains("another one's already"),
        "{complaints:?}"
    );
    let listed = ok(&[JAR], "");
    let image = listed.split_once(": dex").unwrap().0;
    let entry = image
        .strip_prefix(JAR)
        .and_then(|rest| rest.strip_prefix('!'))
        .unwrap();
    ok(
        &[&format!("{JAR}!/{entry}"), "--elf", &folder.file("one.elf")],
        "",
    );
    assert!(Path::new(&folder.file("one.elf")).is_file());
}

#[test]
fn what_is_broken_is_said_in_a_line_and_the_rest_is_shown() {
    let folder = Folder::new("broken");
    let cut = folder.file("cut.dex");
    let dex = std::fs::read(DEX).unwrap();
    std::fs::write(&cut, &dex[..dex.len() - 100]).unwrap();
    let (text, complaints) = fails(&[
        "/nonexistent",
        &cut,
        "/dev/null",
        DEX,
        &format!("{JAR}!nothing"),
    ]);
    assert_eq!(text, ok(&[DEX], ""));
    assert_eq!(complaints.len(), 4, "{complaints:?}");
    assert!(
        complaints[1].contains("cut.dex")
            && complaints[1].contains("file_size")
            && complaints[1].contains("0x20"),
        "{complaints:?}"
    );
    assert!(complaints[2].contains("not a regular file"));
    assert!(complaints[3].contains("no dex file called 'nothing'"));
}

#[test]
fn an_address_that_is_none_does_not_stop_the_others() {
    let output = symbols(&[DEX, "--at", "0", "five", "1"], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "0x0: ??\n0x1: ??\n"
    );
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "varid: 'five' is no hexadecimal address\n"
    );
    // The image of the address must be specified.
    assert_eq!(
        symbols(&[DEX, ITEMS, "--at", "0"], "").status.code(),
        Some(2)
    );
}

#[test]
fn an_elf_file_shows_its_functions() {
    let own = env!("CARGO_BIN_EXE_varid");
    let functions = functions(&[own, "--json"]);
    let main = functions
        .iter()
        .find(|function| function["name"] == "main")
        .expect("a main");
    let address = format!("{:x}", main["address"].as_u64().unwrap());
    let answer: Value = serde_json::from_str(&ok(&[own, "--json", "--at", &address], "")).unwrap();
    let frames = answer["addresses"][0]["frames"].as_array().unwrap();
    assert_eq!(frames.last().unwrap()["function"], "main");
}

/// A mapping for the fixture's class and the name of its method.
#[test]
fn stack_traces_frames_and_dex_files_have_the_names_of_the_source() {
    let folder = Folder::new("mapping");
    let mapping = folder.file("mapping.txt");
    let text = "# compiler: R8\norg.source.BallsKt -> org.example.Balls:\n    \
        1:99:void org.source.Inner.inlined():7:7 -> draw\n    1:99:void paint():12 -> draw\n";
    std::fs::write(&mapping, text).unwrap();
    let trace = "x.Y: what\n\tat org.example.Balls.draw(SourceFile:3)\n\t... 2 more";
    let retraced = "x.Y: what\n\tat org.source.Inner.inlined(Inner.java:7)\n\
        \tat org.source.BallsKt.paint(Balls.kt:12)\n\t... 2 more";
    let file = folder.file("trace");
    std::fs::write(&file, trace).unwrap();
    assert_eq!(ok(&["--mapping", &mapping], trace), retraced);
    assert_eq!(ok(&["--mapping", &mapping, "-"], trace), retraced);
    assert_eq!(ok(&["--mapping", &mapping, &file], ""), retraced);
    assert_eq!(
        ok(
            &["--mapping", &mapping, "--at", "org.example.Balls.draw:3"],
            ""
        ),
        "at org.source.Inner.inlined(Inner.java:7)\nat org.source.BallsKt.paint(Balls.kt:12)\n"
    );
    let recorded = functions(&[DEX, "--json"]);
    let draw = |functions: &[Value], name: &str| {
        let mut all = functions.iter();
        let of_name = all.find(|function| function["name"].as_str().unwrap().starts_with(name));
        of_name.expect(name)["address"].as_u64().unwrap()
    };
    let at = draw(&recorded, "org.example.Balls.draw");
    let renamed = functions(&[DEX, "--json", "--mapping", &mapping]);
    assert_eq!(draw(&renamed, "org.source.BallsKt.paint"), at);
    let answer = ok(
        &[DEX, "--mapping", &mapping, "--at", &format!("{at:x}")],
        "",
    );
    let [inner, outer] = answer.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(
        inner.ends_with(": org.source.Inner.inlined at Inner.java:7"),
        "{answer}"
    );
    assert!(
        outer.ends_with("(inlined by) org.source.BallsKt.paint at BallsKt.java:12"),
        "{answer}"
    );
    // Nothing to retrace, and a missing file.
    assert_eq!(symbols(&[], "").status.code(), Some(2));
    let (_, complaints) = fails(&["--mapping", &folder.file("none")]);
    assert!(
        complaints[0].contains("none: cannot read"),
        "{complaints:?}"
    );
}

#[test]
fn a_vdex_file_without_dex_files_says_where_they_are() {
    let folder = Folder::new("vdex");
    let vdex = folder.file("base.vdex");
    // Version 021 without a section for dex files.
    std::fs::write(&vdex, [b"vdex021\x00000\x00".as_slice(), &[0; 28]].concat()).unwrap();
    let (_, complaints) = fails(&[&vdex]);
    assert!(
        complaints[0].contains("in the APK or .jar"),
        "{complaints:?}"
    );
}
