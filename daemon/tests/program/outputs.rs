//! Tests every verb that writes to a path of the user's choice with every kind of file at that path.

mod other_users;

use crate::control::support::{Home, NOBODY, User, is_root, one_line_of_failure, open_to};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DEX: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../symbolizer/tests/fixtures/names.dex"
);

/// The previous content of a file.
const OLD: &str = "as it was\n";

/// A home with a session, a dex file and a mapping file.
struct World {
    home: Home,
}

/// A command line, and what it writes. The output's path is the last argument.
struct Verb {
    words: Vec<String>,
    expected: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        let stack =
            |number| format!("main;caller_{number};a_function_with_a_long_name_{number} 3\n");
        let folded: String = (0..300).map(stack).collect();
        fs::write(home.path.join("stacks.folded"), folded).unwrap();
        fs::write(home.path.join("mapping.txt"), "a.B -> c:\n").unwrap();
        fs::copy(DEX, home.path.join("names.dex")).unwrap();
        let world = Self { home };
        let (stacks, session) = (world.path("stacks.folded"), world.path("s"));
        world
            .home
            .ok(&["import", text(&stacks), "-o", text(&session)]);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path.join(name)
    }

    /// Returns all verbs with their output for a new file.
    fn verbs(&self) -> Vec<Verb> {
        let (session, dex) = (self.path("s"), self.path("names.dex"));
        let (session, dex) = (text(&session), text(&dex));
        let words = [
            vec!["export", "-q", "-i", session, "-f", "folded", "-o"],
            vec!["export", "-q", "-i", session, "-f", "pprof", "-o"],
            vec!["report", "-q", "-i", session, "--html"],
            vec!["diff", session, session, "--html"],
            vec!["pack", "-q", session, "-o"],
            vec!["symbols", dex, "--elf"],
            vec!["symbols", dex, "--sym"],
        ];
        let out = self.path("expected");
        let verb = |words: Vec<&str>| {
            let words: Vec<_> = words.into_iter().map(str::to_owned).collect();
            let mut verb = Verb {
                words,
                expected: Vec::new(),
            };
            verb.succeeds(self, &out);
            verb.expected = fs::read(&out).unwrap();
            assert!(verb.expected.len() > 600, "{:?}", verb.words);
            fs::remove_file(&out).unwrap();
            verb
        };
        words.into_iter().map(verb).collect()
    }

    /// Makes a new folder for one verb.
    fn folder(&self) -> tempfile::TempDir {
        tempfile::tempdir_in(&self.home.path).unwrap()
    }
}

impl Verb {
    fn command(&self, world: &World, out: &Path) -> Command {
        let mut words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        words.push(text(out));
        world.home.command(&words)
    }

    fn run(&self, world: &World, out: &Path) -> Output {
        self.command(world, out).output().unwrap()
    }

    /// Writes to `out`, and must print nothing.
    fn succeeds(&self, world: &World, out: &Path) {
        self.is_silent(out, &self.run(world, out));
    }

    fn is_silent(&self, out: &Path, output: &Output) {
        let is_silent = output.status.success() && output.stderr.is_empty();
        assert!(is_silent, "{:?} {out:?}: {output:?}", self.words);
    }

    /// Must fail with a reason that contains these words.
    fn fails(&self, output: &Output, reasons: &[&str]) {
        let said = one_line_of_failure(1, output);
        let has_all = reasons.iter().all(|reason| said.contains(reason));
        assert!(has_all, "{:?}: {said}: {reasons:?}", self.words);
    }

    fn is_in(&self, file: &Path) {
        let found = fs::read(file).unwrap();
        assert!(found == self.expected, "{:?} {file:?}", self.words);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn look(path: &Path) -> Metadata {
    fs::symlink_metadata(path).unwrap()
}

/// Returns the names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn make(program: &str, words: &[&str]) {
    let made = Command::new(program).args(words).status().unwrap();
    assert!(made.success(), "{program} {words:?}");
}

#[test]
fn a_regular_file_is_replaced_whole_with_its_permissions_and_owner() {
    let world = World::new();
    let user = world.folder();
    fs::write(user.path().join("usual"), OLD).unwrap();
    let usual = look(&user.path().join("usual")).mode();
    for verb in world.verbs() {
        let folder = world.folder();
        let out = folder.path().join("out");
        verb.succeeds(&world, &out);
        verb.is_in(&out);
        assert_eq!(look(&out).mode(), usual, "{:?}", verb.words);

        fs::write(&out, OLD).unwrap();
        open_to(&out, 0o640);
        if is_root() {
            chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let (before, reader) = (look(&out), File::open(&out).unwrap());
        verb.succeeds(&world, &out);
        verb.is_in(&out);
        let after = look(&out);
        let about = |file: &Metadata| (file.mode(), file.uid(), file.gid());
        assert_eq!(about(&after), about(&before), "{:?}", verb.words);
        // A reader that has opened the old file can read it to its end.
        assert_eq!(std::io::read_to_string(reader).unwrap(), OLD);
        assert_eq!(names(folder.path()), ["out"], "{:?}", verb.words);
    }
}

#[test]
fn a_symbolic_link_stays_and_what_it_leads_to_is_written() {
    let world = World::new();
    for verb in world.verbs() {
        for exists in [true, false] {
            let folder = world.folder();
            let (elsewhere, links) = (folder.path().join("elsewhere"), folder.path().join("links"));
            fs::create_dir(&elsewhere).unwrap();
            fs::create_dir(&links).unwrap();
            let target = elsewhere.join("target");
            symlink("../elsewhere/target", links.join("relative")).unwrap();
            symlink(&target, links.join("absolute")).unwrap();
            symlink("relative", links.join("of-a-link")).unwrap();
            for link in ["relative", "absolute", "of-a-link"] {
                if exists {
                    fs::write(&target, OLD).unwrap();
                }
                verb.succeeds(&world, &links.join(link));
                assert!(look(&links.join(link)).is_symlink(), "{:?}", verb.words);
                verb.is_in(&target);
                assert_eq!(names(&elsewhere), ["target"], "{:?}", verb.words);
                fs::remove_file(&target).unwrap();
            }
            assert_eq!(names(&links), ["absolute", "of-a-link", "relative"]);
        }
        let folder = world.folder();
        let ring = folder.path().join("ring");
        symlink("ring", &ring).unwrap();
        verb.fails(&verb.run(&world, &ring), &[text(&ring), "symbolic links"]);
    }
}

#[test]
fn a_fifo_is_written_into_and_may_lose_its_reader() {
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let fifo = folder.path().join("fifo");
        make("mkfifo", &[text(&fifo)]);
        let mut writer = verb.command(&world, &fifo);
        let writer = writer.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = writer.spawn().unwrap();
        let mut found = Vec::new();
        File::open(&fifo).unwrap().read_to_end(&mut found).unwrap();
        assert!(found == verb.expected, "{:?}", verb.words);
        verb.is_silent(&fifo, &child.wait_with_output().unwrap());

        let child = writer.spawn().unwrap();
        drop(File::open(&fifo).unwrap());
        verb.is_silent(&fifo, &child.wait_with_output().unwrap());
        assert!(look(&fifo).file_type().is_fifo(), "{:?}", verb.words);
        assert_eq!(names(folder.path()), ["fifo"], "{:?}", verb.words);
    }
}

#[test]
fn a_device_stays_a_device_and_says_that_it_is_full() {
    if !is_root() {
        println!("skipped: outputs that are devices: only root can make one");
        return;
    }
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let (null, full) = (folder.path().join("null"), folder.path().join("full"));
        make("mknod", &[text(&null), "c", "1", "3"]);
        make("mknod", &[text(&full), "c", "1", "7"]);
        let link = folder.path().join("link");
        symlink("null", &link).unwrap();
        let about = || [&null, &full].map(|it| (look(it).ino(), look(it).rdev(), look(it).mode()));
        let before = about();
        verb.succeeds(&world, &null);
        verb.succeeds(&world, &link);
        let output = verb.run(&world, &full);
        verb.fails(&output, &["cannot write", text(&full), "No space left"]);
        assert_eq!(about(), before, "{:?}", verb.words);
        assert_eq!(names(folder.path()), ["full", "link", "null"]);
    }
}

#[test]
fn a_descriptor_is_written_where_it_is() {
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        for own in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            let output = verb.run(&world, Path::new(own));
            verb.is_silent(Path::new(own), &output);
            assert!(output.stdout == verb.expected, "{own}: {:?}", verb.words);
        }
        // A regular file behind a descriptor keeps its previous content.
        let file = folder.path().join("file");
        for own in ["/dev/stdout", "/proc/self/fd/1"] {
            fs::write(&file, OLD).unwrap();
            let opened = OpenOptions::new().append(true).open(&file).unwrap();
            let mut command = verb.command(&world, Path::new(own));
            let output = command.stdout(opened).stderr(Stdio::piped()).output();
            verb.is_silent(Path::new(own), &output.unwrap());
            let wanted = [OLD.as_bytes(), &verb.expected].concat();
            assert!(
                fs::read(&file).unwrap() == wanted,
                "{own}: {:?}",
                verb.words
            );
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 3>&1", "sh"]);
        let command = verb.command(&world, Path::new("/proc/self/fd/3"));
        shell.arg(command.get_program()).args(command.get_args());
        let output = shell.env("VARID_HOME", &world.home.path).output().unwrap();
        verb.is_silent(Path::new("/proc/self/fd/3"), &output);
        assert!(output.stdout == verb.expected, "{:?}", verb.words);
        assert_eq!(names(folder.path()), ["file"], "{:?}", verb.words);
    }
}

#[test]
fn what_cannot_be_written_is_an_error_and_stays() {
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let output = verb.run(&world, &socket);
        verb.fails(&output, &["cannot write", text(&socket), "socket"]);
        assert!(look(&socket).file_type().is_socket(), "{:?}", verb.words);

        let absent = folder.path().join("absent/out");
        let output = verb.run(&world, &absent);
        verb.fails(&output, &["cannot write", text(&absent), "folder"]);
        let slash = folder.path().join("new").join("");
        let output = verb.run(&world, &slash);
        verb.fails(&output, &["cannot write", "folder's name"]);
        // `symbols` writes a file into it.
        if verb.words[0] != "symbols" {
            let output = verb.run(&world, folder.path());
            verb.fails(&output, &[text(folder.path()), "it is a folder"]);
        }
        assert_eq!(names(folder.path()), ["socket"], "{:?}", verb.words);
    }
}

#[test]
fn a_file_that_finds_no_room_leaves_the_old_one_whole() {
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let out = folder.path().join("out");
        fs::write(&out, OLD).unwrap();
        // Files are limited to 512 bytes. Exceeding the limit is an error, because the signal is ignored.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
        let command = verb.command(&world, &out);
        shell.arg(command.get_program()).args(command.get_args());
        let output = shell.env("VARID_HOME", &world.home.path).output().unwrap();
        verb.fails(&output, &[text(&out), "which stays as it was", "too large"]);
        assert_eq!(fs::read_to_string(&out).unwrap(), OLD, "{:?}", verb.words);
        assert_eq!(names(folder.path()), ["out"], "{:?}", verb.words);
    }
}

#[test]
fn who_may_not_write_a_file_or_into_its_folder_is_told_and_both_stay() {
    if !is_root() {
        println!("skipped: outputs that a user may not write: only root can become another user");
        return;
    }
    let world = World::new();
    let user = User::new(&world.home);
    for verb in world.verbs() {
        let folder = world.folder();
        let out = folder.path().join("out");
        fs::write(&out, OLD).unwrap();
        let stays = |modes: (u32, u32), reason: &str| {
            let of_user = |path: &Path, mode| {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
                open_to(path, mode);
            };
            of_user(folder.path(), modes.0);
            of_user(&out, modes.1);
            let before = look(&out);
            let mut words: Vec<&str> = verb.words.iter().map(String::as_str).collect();
            words.push(text(&out));
            // The owner of the session that is read does not matter here.
            make(
                "chmod",
                &[
                    "-R",
                    "o+rX",
                    text(&world.path("s")),
                    text(&world.path("names.dex")),
                ],
            );
            let output = user.command(&words).output().unwrap();
            verb.fails(&output, &["cannot write", text(&out), reason, "denied"]);
            let after = look(&out);
            assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
            assert_eq!(fs::read_to_string(&out).unwrap(), OLD, "{:?}", verb.words);
            assert_eq!(names(folder.path()), ["out"], "{:?}", verb.words);
        };
        stays((0o555, 0o644), "no file can be created in its folder");
        stays((0o755, 0o444), "cannot write");
    }
}

#[test]
fn an_input_and_a_file_of_a_session_are_not_replaced() {
    let world = World::new();
    let session = world.path("s");
    let all = || {
        let find = Command::new("find")
            .arg(&world.home.path)
            .args(["-type", "f"])
            .output();
        let files = String::from_utf8(find.unwrap().stdout).unwrap();
        let mut files: Vec<_> = files.lines().map(PathBuf::from).collect();
        files.sort();
        let content = |path: &PathBuf| fs::read(path).unwrap();
        let contents: Vec<_> = files.iter().map(content).collect();
        (files, contents)
    };
    symlink("s/perf.data", world.path("link")).unwrap();
    let before = all();
    let symbols = session.join("symbols/new.elf");
    let parts = ["perf.data", "session.json", "contexts.data", "calls.tsv"];
    let parts = parts.map(|name| session.join(name));
    let parts = parts.into_iter().chain([symbols, world.path("link")]);
    let verbs = world.verbs();
    for part in parts {
        for verb in &verbs {
            verb.fails(&verb.run(&world, &part), &["belongs to a session"]);
        }
    }
    // A file of the same name in another folder does not belong to a session.
    let free = world.folder();
    verbs[0].succeeds(&world, &free.path().join("perf.data"));
    drop(free);

    let (dex, mapping) = (world.path("names.dex"), world.path("mapping.txt"));
    fs::hard_link(&dex, world.path("same.dex")).unwrap();
    let also_read = |words: &[&str]| {
        let said = world.home.fails(words);
        assert!(
            said.contains("also read by this command"),
            "{words:?}: {said}"
        );
    };
    also_read(&["symbols", text(&dex), "--elf", text(&dex)]);
    also_read(&[
        "symbols",
        text(&dex),
        "--sym",
        text(&world.path("same.dex")),
    ]);
    fs::remove_file(world.path("same.dex")).unwrap();
    let (session, mapping) = (text(&session), text(&mapping));
    for verb in [
        &["export", "-f", "folded", session, "-o"][..],
        &["report", session, "--html"],
        &["diff", session, session, "--html"],
    ] {
        let names = [mapping, "--mapping", mapping];
        also_read(&[verb, &names].concat());
    }
    assert!(all() == before, "something was written");
}

#[test]
fn the_manual_s_pages_go_the_same_way() {
    let world = World::new();
    let folder = world.folder();
    let (pages, link) = (folder.path().join("pages"), folder.path().join("page"));
    fs::create_dir(&pages).unwrap();
    symlink("../page", pages.join("varid.1")).unwrap();
    world.home.ok(&["man-pages", text(&pages)]);
    assert!(look(&pages.join("varid.1")).is_symlink());
    assert!(fs::read_to_string(&link).unwrap().contains("varid"));
    let is_page = |name: &String| name.starts_with("varid") && name.ends_with(".1");
    assert!(names(&pages).iter().all(is_page), "{:?}", names(&pages));
    // A socket cannot be written: the message names the page.
    fs::remove_file(pages.join("varid.1")).unwrap();
    let _listener = UnixListener::bind(pages.join("varid.1")).unwrap();
    let said = world.home.fails(&["man-pages", text(&pages)]);
    assert!(
        said.contains("varid.1") && said.contains("socket"),
        "{said}"
    );
}

#[test]
fn an_import_needs_a_folder_of_its_own() {
    let world = World::new();
    let stacks = world.path("stacks.folded");
    let fifo = world.path("fifo");
    make("mkfifo", &[text(&fifo)]);
    for out in [&fifo, &stacks] {
        let before = look(out);
        let said = world
            .home
            .fails(&["import", text(&stacks), "-o", text(out)]);
        assert!(
            said.contains(text(out)) && said.contains("not a folder"),
            "{said}"
        );
        assert_eq!(
            (look(out).ino(), look(out).mode()),
            (before.ino(), before.mode())
        );
    }
    // An import must not replace its own input.
    let (session, perf_data) = (world.path("s"), world.path("s/perf.data"));
    let before = fs::read(&perf_data).unwrap();
    let said = world
        .home
        .fails(&["import", text(&perf_data), "-o", text(&session)]);
    assert!(said.contains("holds what is imported"), "{said}");
    assert!(fs::read(&perf_data).unwrap() == before);
}
